/* stats.h: what the proxy counts. Written by all workers, read by the status line and the report. */
#ifndef PROXY_STATS_H
#define PROXY_STATS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "options.h"

typedef struct Counter {
  _Atomic uint64_t value;
} Counter;

void counter_add(Counter *counter, uint64_t n);
void counter_raise(Counter *counter, uint64_t to); /* to the greater of the two */
uint64_t counter_get(const Counter *counter);

/* Times from 1 ns to centuries, eight steps for each doubling: right to an eighth. */
enum { HISTOGRAM_STEPS = 8, HISTOGRAM_BUCKETS = 64 * HISTOGRAM_STEPS };

typedef struct Histogram {
  Counter buckets[HISTOGRAM_BUCKETS];
  Counter longest_ns;
} Histogram;

void histogram_add(Histogram *histogram, uint64_t ns);
uint64_t histogram_count(const Histogram *histogram);
uint64_t histogram_quantile(const Histogram *histogram, double quantile); /* 0 when empty */

/* In which part of its life a connection failed. */
typedef enum Phase { PHASE_ACCEPT, PHASE_CONNECT, PHASE_COPY } Phase;

const char *phase_name(Phase phase);

typedef struct Failure {
  Phase phase;
  int32_t error;
  uint64_t count;
} Failure;

/* One for each phase and error: Linux has 133, Noria a dozen of its own. */
enum { FAILURES_MAX = 512 };

typedef struct Stats {
  Counter accepted;
  Counter finished;
  Counter failed; /* of the finished: those that did not end by themselves */
  Counter cut;    /* of the finished: still open when the proxy ended */
  Counter most;   /* open at once */
  Counter to_upstream_bytes;
  Counter to_client_bytes;
  Counter requests; /* counted by the demo's load only */
  Histogram connect;
  Counter upstream_connections[UPSTREAMS_MAX];
  Counter upstream_failures[UPSTREAMS_MAX];
  pthread_mutex_t failures_lock;
  Failure failures[FAILURES_MAX]; /* guarded by failures_lock */
  size_t failure_count;           /* likewise */
} Stats;

void stats_init(Stats *stats);
uint64_t stats_open(const Stats *stats); /* connections now */
void stats_failed(Stats *stats, Phase phase, int32_t error);
/* Copies the failures, most frequent first; returns how many. */
size_t stats_failures(Stats *stats, Failure *out);

#endif
