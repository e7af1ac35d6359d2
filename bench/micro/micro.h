/* micro.h: the frame of the micro benchmarks of Noria.
 *
 * Most workloads run in rounds: a root task, itself on a worker, starts `batch` things and waits
 * until the last of them has passed a gate (an atomic counter and the root's waker), then starts
 * the next round. The Tokio peer has the same rounds and the same gate. */
#ifndef NORIA_BENCH_MICRO_H
#define NORIA_BENCH_MICRO_H

#include <stdatomic.h>

#include "common/bench.h"
#include "noria/noria.h"

typedef struct bench_run {
  noria_runtime* rt;
  uint64_t ops;   /* operations of the whole run */
  uint64_t batch; /* operations of a round */
  uint64_t wall_ns;
  uint64_t cpu_ns;
  uint64_t lateness_ns[3]; /* timer_fire: p50, p99, max */
} bench_run;

/* A counter that wakes one task when it reaches zero. */
typedef struct gate {
  _Atomic uint64_t remaining;
  noria_waker waker;
} gate;

/* Shuts the gate for `count` passes; the polled task's waker is left for the last of them. */
void gate_shut(gate* g, uint64_t count, const noria_cx* cx);
int gate_is_open(gate* g);
void gate_pass(gate* g);

typedef struct rounds {
  bench_run* run;
  gate gate;
  uint64_t done;                                            /* operations of the rounds begun */
  void (*begin)(struct rounds* rounds, const noria_cx* cx); /* starts what will pass the gate `passes` times */
  uint64_t passes;
} rounds;

/* Runs `begin` in rounds of run->batch operations until run->ops are done, and times it from
 * inside. */
void rounds_run(bench_run* run, uint64_t passes, void (*begin)(rounds*, const noria_cx*));

/* Spawns `vtable` around `state` from this thread, and blocks until it is done. */
void run_root(noria_runtime* rt, const noria_task_vtable* vtable, void* state);

void spawn_many(bench_run* run);
void spawn_remote(bench_run* run);
void yield_many(bench_run* run);
void ping_pong(bench_run* run);
void chained_spawn(bench_run* run);
void timer_churn(bench_run* run);
void timer_fire(bench_run* run);
void blocking(bench_run* run);

#endif
