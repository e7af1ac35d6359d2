/* main.c: noria-bench WORKLOAD [--workers N] [--ops N] [--batch N] [--warmup N]
 *
 * Runs the workload once unmeasured with `warmup` operations (a tenth, if not given), then
 * measured, and prints one JSON line. */
#include "micro/micro.h"

static const struct workload {
  const char* name;
  uint64_t ops;
  uint64_t batch;
  void (*run)(bench_run* run);
} workloads[] = {
    {"spawn_many", 1000000, 10000, spawn_many},         {"spawn_remote", 1000000, 10000, spawn_remote},
    {"yield_many", 1000000, 1000000, yield_many},       {"ping_pong", 200000, 1000, ping_pong},
    {"chained_spawn", 1000000, 1000000, chained_spawn}, {"timer_churn", 1000000, 10000, timer_churn},
    {"timer_fire", 100000, 100000, timer_fire},         {"blocking", 200000, 200000, blocking},
};

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
  if (atomic_fetch_sub_explicit(&g->remaining, 1, memory_order_acq_rel) == 1) noria_waker_wake(&waker);
}

static int32_t rounds_poll(void* state, const noria_cx* cx) {
  rounds* r = state;
  bench_run* run = r->run;
  if (r->done == 0) {
    run->cpu_ns = bench_cpu_ns();
    run->wall_ns = bench_now_ns();
  }
  if (!gate_is_open(&r->gate)) return NORIA_PENDING;
  if (r->done >= run->ops) {
    run->wall_ns = bench_now_ns() - run->wall_ns;
    run->cpu_ns = bench_cpu_ns() - run->cpu_ns;
    return NORIA_READY;
  }
  r->done += run->batch;
  gate_shut(&r->gate, r->passes, cx);
  r->begin(r, cx);
  return NORIA_PENDING;
}

void rounds_run(bench_run* run, uint64_t passes, void (*begin)(rounds*, const noria_cx*)) {
  static const noria_task_vtable root = {sizeof root, 0, rounds_poll, NULL, NULL, "root"};
  rounds r = {.run = run, .begin = begin, .passes = passes};
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

static void report(const struct workload* workload, const bench_run* run, uint64_t workers) {
  bench_json_open(workload->name, "noria", workers);
  bench_json_number("ops", (double)run->ops);
  bench_json_number("batch", (double)run->batch);
  if (workload->run == timer_fire) {
    bench_json_number("lateness_p50_us", (double)run->lateness_ns[0] / 1e3);
    bench_json_number("lateness_p99_us", (double)run->lateness_ns[1] / 1e3);
    bench_json_number("lateness_max_us", (double)run->lateness_ns[2] / 1e3);
  } else {
    bench_json_number("ns_per_op", (double)run->wall_ns / (double)run->ops);
  }
  bench_json_number("cpu_ns_per_op", (double)run->cpu_ns / (double)run->ops);
  bench_json_close();
}

int main(int argc, char** argv) {
  const struct workload* workload = NULL;
  for (size_t i = 0; argc > 1 && i < sizeof workloads / sizeof *workloads; i++) {
    if (strcmp(argv[1], workloads[i].name) == 0) workload = &workloads[i];
  }
  if (workload == NULL) {
    fprintf(stderr, "usage: noria-bench WORKLOAD [--workers N] [--ops N] [--batch N] [--warmup N]\n");
    return 2;
  }
  uint32_t workers = (uint32_t)bench_argument(argc, argv, "--workers", 1);
  noria_runtime_options options = {.size = sizeof options, .workers = workers};
  bench_run run = {.ops = bench_argument(argc, argv, "--ops", workload->ops)};
  run.batch = bench_argument(argc, argv, "--batch", workload->batch);
  if (run.batch > run.ops) run.batch = run.ops;
  BENCH_CHECK(noria_runtime_new(&options, &run.rt) == NORIA_OK);

  bench_run warmup = run;
  warmup.ops = bench_argument(argc, argv, "--warmup", run.ops / 10);
  if (warmup.batch > warmup.ops) warmup.batch = warmup.ops;
  if (warmup.ops > 0) workload->run(&warmup);
  workload->run(&run);
  report(workload, &run, workers);
  BENCH_CHECK(noria_runtime_free(run.rt) == NORIA_OK);
  return 0;
}
