/* micro.h: the frame of the micro benchmarks of Noria.
 *
 * Most workloads run in rounds: a root task, itself on a worker, starts `batch` things and waits
 * until the last of them has passed a gate (an atomic counter and the root's waker), then starts
 * the next round. The peers have the same rounds and the same gate. */
#ifndef NORIA_BENCH_MICRO_H
#define NORIA_BENCH_MICRO_H

#include <stdatomic.h>

#include "common/bench.h"
#include "noria/noria.h"

enum { kFigures = 4 };

typedef struct bench_run {
  noria_runtime* rt;
  uint32_t workers;
  uint64_t ops;   /* operations of the whole run */
  uint64_t batch; /* operations of a round */
  uint64_t wall_ns;
  uint64_t cpu_ns;
  int argc;
  char** argv;
  struct {
    const char* name;
    double value;
  } figures[kFigures]; /* beyond, or instead of, the time an operation */
  size_t figure_count;
} bench_run;

/* The number behind `name` on the command line. */
uint64_t bench_option(const bench_run* run, const char* name, uint64_t fallback);

/* Adds a figure to the JSON line. */
void bench_figure(bench_run* run, const char* name, double value);

/* Sorts `values` and gives the one that `share` of them lie below. */
uint64_t bench_percentile(uint64_t* values, uint64_t count, double share);

void bench_begin(bench_run* run); /* wall and CPU clock */
void bench_end(bench_run* run);

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
  void* data;
} rounds;

/* Runs `begin` in rounds of run->batch operations until run->ops are done, and times it from
 * inside. `data` is for `begin`. */
void rounds_run(bench_run* run, uint64_t passes, void (*begin)(rounds*, const noria_cx*), void* data);

/* Spawns `vtable` around `state` from this thread, and blocks until it is done. */
void run_root(noria_runtime* rt, const noria_task_vtable* vtable, void* state);

/* Spawns a detached task with a copy of `state` inside it. */
void spawn_with(noria_runtime* rt, const noria_task_vtable* vtable, const void* state, size_t size);

void spawn_many(bench_run* run);
void spawn_remote(bench_run* run);
void yield_many(bench_run* run);
void ping_pong(bench_run* run);
void chained_spawn(bench_run* run);
void unbalanced_producer(bench_run* run);
void fork_join_fib(bench_run* run);
void uneven_tree(bench_run* run);
void wake_latency(bench_run* run);
void light_load(bench_run* run);
void timer_churn(bench_run* run);
void timer_reset(bench_run* run);
void timer_fire(bench_run* run);
void blocking(bench_run* run);
void blocking_seq(bench_run* run);
void idle_task_bytes(bench_run* run);
void timer_bytes(bench_run* run);
void startup(bench_run* run);

#endif
