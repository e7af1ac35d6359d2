/* report.h: what the proxy did, once it has ended. */
#ifndef PROXY_REPORT_H
#define PROXY_REPORT_H

#include <noria/noria.h>
#include <stdio.h>

#include "demo.h"
#include "serve.h"

typedef struct Outcome {
  uint64_t began_ns;
  uint64_t drain_ns; /* when it stopped to accept */
  uint64_t ended_ns;
  bool drained;   /* all connections had ended by themselves */
  uint64_t rests; /* of the listener, out of descriptors */
  noria_metrics metrics;
  noria_shutdown_report shutdown;
} Outcome;

/* `demo` is NULL when there was none. */
void report_print(Proxy *proxy, const Outcome *outcome, FILE *out);
void report_print_json(Proxy *proxy, const Outcome *outcome, Demo *demo, FILE *out);

#endif
