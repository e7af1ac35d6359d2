/* frame.c: what the workloads share: gate, rounds, roots, figures. */
#include "micro/micro.h"

uint64_t bench_option(const bench_run* run, const char* name, uint64_t fallback) {
  return bench_argument(run->argc, run->argv, name, fallback);
}

void bench_figure(bench_run* run, const char* name, double value) {
  BENCH_CHECK(run->figure_count < kFigures);
  run->figures[run->figure_count].name = name;
  run->figures[run->figure_count++].value = value;
}

static int by_value(const void* a, const void* b) {
  uint64_t x = *(const uint64_t*)a, y = *(const uint64_t*)b;
  return (x > y) - (x < y);
}

uint64_t bench_percentile(uint64_t* values, uint64_t count, double share) {
  uint64_t index = (uint64_t)((double)count * share);
  qsort(values, count, sizeof *values, by_value);
  return values[index < count ? index : count - 1];
}

void bench_begin(bench_run* run) {
  run->cpu_ns = bench_cpu_ns();
  run->wall_ns = bench_now_ns();
}

void bench_end(bench_run* run) {
  run->wall_ns = bench_now_ns() - run->wall_ns;
  run->cpu_ns = bench_cpu_ns() - run->cpu_ns;
}

void gate_shut(gate* g, uint64_t count, const noria_cx* cx) {
  BENCH_CHECK(noria_waker_clone(cx->waker, &g->waker) == NORIA_OK);
  /* ORDER: relaxed, who will pass is spawned after this, and spawning publishes it. */
  atomic_store_explicit(&g->remaining, count, memory_order_relaxed);
}

int gate_is_open(gate* g) {
  /* ORDER: acquire, pairs with the last gate_pass: what the passers did is seen. */
  return atomic_load_explicit(&g->remaining, memory_order_acquire) == 0;
}

void gate_pass(gate* g) {
  noria_waker waker = g->waker; /* after the last pass the gate may be shut anew, with another waker */
  /* ORDER: acq_rel, each pass releases its work to the root, the last one has seen the waker. */
  uint64_t before = atomic_fetch_sub_explicit(&g->remaining, 1, memory_order_acq_rel);
  BENCH_CHECK(before != 0); /* more passes than things */
  if (before == 1) noria_waker_wake(&waker);
}

static int32_t rounds_poll(void* state, const noria_cx* cx) {
  rounds* r = state;
  bench_run* run = r->run;
  if (r->done == 0) bench_begin(run);
  if (!gate_is_open(&r->gate)) return NORIA_PENDING;
  if (r->done >= run->ops) {
    bench_end(run);
    return NORIA_READY;
  }
  r->done += run->batch;
  gate_shut(&r->gate, r->passes, cx);
  r->begin(r, cx);
  return NORIA_PENDING;
}

void rounds_run(bench_run* run, uint64_t passes, void (*begin)(rounds*, const noria_cx*), void* data) {
  static const noria_task_vtable root = {sizeof root, 0, rounds_poll, NULL, NULL, "root"};
  rounds r = {.run = run, .begin = begin, .passes = passes, .data = data};
  run_root(run->rt, &root, &r);
}

void run_root(noria_runtime* rt, const noria_task_vtable* vtable, void* state) {
  noria_task* task;
  noria_future* join;
  noria_join_result result;
  BENCH_CHECK(noria_spawn(rt, vtable, state, &task) == NORIA_OK);
  BENCH_CHECK(noria_task_join(task, &join) == NORIA_OK);
  BENCH_CHECK(noria_future_wait(join, NORIA_FOREVER) == NORIA_OK);
  BENCH_CHECK(noria_future_result(join, &result, sizeof result) == NORIA_OK);
  BENCH_CHECK(result.kind == NORIA_JOIN_DONE);
  noria_future_drop(join);
  noria_task_detach(task);
}

void spawn_with(noria_runtime* rt, const noria_task_vtable* vtable, const void* state, size_t size) {
  void* place;
  noria_task* task;
  BENCH_CHECK(noria_task_new(rt, vtable, size, _Alignof(uint64_t), &place, &task) == NORIA_OK);
  memcpy(place, state, size);
  BENCH_CHECK(noria_task_start(task) == NORIA_OK);
  noria_task_detach(task);
}
