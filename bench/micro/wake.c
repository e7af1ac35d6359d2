/* wake.c: how long it takes from a wake by a foreign thread to the poll of the task, and what a few of them cost. */
#include <sched.h>

#include "micro/micro.h"

enum { kBurnNs = 10000 };

typedef struct sleeper {
  noria_notify* notify;
  noria_waiter waiter;
  uint64_t left;            /* wakes to come */
  _Atomic uint64_t sent_ns; /* when the last wake was made */
  _Atomic uint64_t seen;    /* wakes that were polled */
  uint64_t* latency_ns;
} sleeper;

static int32_t sleeper_poll(void* state, const noria_cx* cx) {
  sleeper* s = state;
  while (s->left > 0) {
    int32_t ready = noria_notify_poll_wait(s->notify, cx, &s->waiter);
    if (ready != NORIA_READY) return ready;
    uint64_t now = bench_now_ns();
    /* ORDER: relaxed, the wake publishes it; only this task writes `seen`. */
    uint64_t seen = atomic_load_explicit(&s->seen, memory_order_relaxed);
    s->latency_ns[seen] = now - atomic_load_explicit(&s->sent_ns, memory_order_relaxed);
    s->left--;
    /* ORDER: release, the waking thread may go on; pairs with its acquire. */
    atomic_store_explicit(&s->seen, seen + 1, memory_order_release);
  }
  return NORIA_READY;
}

static int32_t burner_poll(void* stop, const noria_cx* cx) {
  /* ORDER: relaxed, a late view means one more turn. */
  if (atomic_load_explicit((_Atomic int*)stop, memory_order_relaxed)) return NORIA_READY;
  bench_burn_ns(kBurnNs);
  return noria_yield(cx);
}

static void sleep_ns(uint64_t duration_ns) {
  struct timespec duration = {(time_t)(duration_ns / 1000000000), (long)(duration_ns % 1000000000)};
  nanosleep(&duration, NULL);
}

/* Wakes the sleeper so often, each time after a pause and when it has seen the one before. */
static void wake_all(sleeper* s, uint64_t wakes, uint64_t interval_ns) {
  for (uint64_t i = 0; i < wakes; i++) {
    do {
      sleep_ns(interval_ns);
      /* ORDER: acquire, pairs with the release in sleeper_poll. */
    } while (atomic_load_explicit(&s->seen, memory_order_acquire) != i);
    /* ORDER: relaxed, the wake publishes it. */
    atomic_store_explicit(&s->sent_ns, bench_now_ns(), memory_order_relaxed);
    BENCH_CHECK(noria_notify_one(s->notify) == NORIA_OK);
  }
}

static noria_future* spawn_joined(noria_runtime* rt, const noria_task_vtable* vtable, void* state) {
  noria_task* task;
  noria_future* join;
  BENCH_CHECK(noria_spawn(rt, vtable, state, &task) == NORIA_OK);
  BENCH_CHECK(noria_task_join(task, &join) == NORIA_OK);
  noria_task_detach(task);
  return join;
}

static void join(noria_future* future) {
  BENCH_CHECK(noria_future_wait(future, NORIA_FOREVER) == NORIA_OK);
  noria_future_drop(future);
}

/* Wakes a sleeper run->ops times; `latency_ns` gets what each took. */
static void wakes(bench_run* run, uint64_t* latency_ns) {
  static const noria_task_vtable task = {sizeof task, 0, sleeper_poll, NULL, NULL, "sleeper"};
  sleeper s = {.left = run->ops, .latency_ns = latency_ns};
  BENCH_CHECK(noria_notify_new(run->rt, &s.notify) == NORIA_OK);
  noria_future* done = spawn_joined(run->rt, &task, &s);
  wake_all(&s, run->ops, bench_option(run, "--interval-us", 300) * 1000);
  join(done);
  BENCH_CHECK(atomic_load(&s.seen) == run->ops);
  noria_notify_drop(s.notify);
}

void wake_latency(bench_run* run) {
  static const noria_task_vtable task = {sizeof task, 0, burner_poll, NULL, NULL, "burner"};
  _Atomic int stop = 0;
  uint64_t load = bench_option(run, "--load", 0);
  noria_future** burners = calloc(load + 1, sizeof *burners);
  uint64_t* latency_ns = calloc(run->ops, sizeof *latency_ns);
  BENCH_CHECK(burners != NULL && latency_ns != NULL);
  for (uint64_t i = 0; i < load; i++) burners[i] = spawn_joined(run->rt, &task, &stop);
  wakes(run, latency_ns);
  atomic_store(&stop, 1);
  for (uint64_t i = 0; i < load; i++) join(burners[i]);
  bench_figure(run, "p50_us", (double)bench_percentile(latency_ns, run->ops, 0.5) / 1e3);
  bench_figure(run, "p99_us", (double)bench_percentile(latency_ns, run->ops, 0.99) / 1e3);
  bench_figure(run, "p999_us", (double)bench_percentile(latency_ns, run->ops, 0.999) / 1e3);
  free(burners);
  free(latency_ns);
}

void light_load(bench_run* run) {
  uint64_t* latency_ns = calloc(run->ops, sizeof *latency_ns);
  BENCH_CHECK(latency_ns != NULL);
  uint64_t wall_ns = bench_now_ns(), own_ns = bench_clock_ns(CLOCK_THREAD_CPUTIME_ID), all_ns = bench_cpu_ns();
  wakes(run, latency_ns);
  all_ns = bench_cpu_ns() - all_ns;
  own_ns = bench_clock_ns(CLOCK_THREAD_CPUTIME_ID) - own_ns;
  wall_ns = bench_now_ns() - wall_ns;
  bench_figure(run, "cpu_percent", 100.0 * (double)(all_ns - own_ns) / (double)wall_ns);
  free(latency_ns);
}
