/* options.h: the command line of noria-proxy. */
#ifndef PROXY_OPTIONS_H
#define PROXY_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UPSTREAMS_MAX 64

typedef struct Options {
  const char *listen; /* "host:port" */
  const char *upstreams[UPSTREAMS_MAX];
  size_t upstream_count;
  uint64_t max_connections;
  uint64_t connect_timeout_ns; /* 0: never, here and below */
  uint64_t idle_timeout_ns;
  uint64_t drain_timeout_ns;
  uint32_t workers; /* 0: as many as the machine gives */
  bool json;
  bool quiet;
  bool demo;
  uint64_t demo_ns;
} Options;

enum options_outcome { OPTIONS_RUN = 0, OPTIONS_DONE = 1, OPTIONS_WRONG = 2 };

/* Fills `out`, which keeps pointers into argv. OPTIONS_DONE: help or version was printed;
 * OPTIONS_WRONG: what is wrong was told on stderr. */
enum options_outcome options_parse(int argc, char **argv, Options *out);

#endif
