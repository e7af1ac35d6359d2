/* status.h: the task that tells, again and again, how the proxy is doing. */
#ifndef PROXY_STATUS_H
#define PROXY_STATUS_H

#include <noria/async.h>
#include <noria/noria.h>

#include "serve.h"

typedef struct Sample {
  uint64_t at_ns;
  uint64_t accepted;
  uint64_t to_upstream_bytes;
  uint64_t to_client_bytes;
  uint64_t requests;
  uint64_t steals;
  uint64_t parks;
} Sample;

typedef struct Status {
  noria_frame frame;
  Proxy *proxy;
  noria_interval *interval;
  noria_future *pause;
  noria_task *task;
  Sample first;
  Sample last;
} Status;

/* Starts it; `period_ns` between two lines. `status` must stay where it is until status_stop. */
int32_t status_start(Status *status, Proxy *proxy, uint64_t period_ns);

/* Ends the task: await the future, then call status_close. */
int32_t status_stop(Status *status, noria_future **out);
void status_close(Status *status);

#endif
