/* main.c: noria-bench WORKLOAD [--workers N] [--ops N] [--batch N] [--warmup N] [...]
 *
 * Runs the workload once unmeasured with `warmup` operations (a tenth, if not given), then
 * measured, and prints one JSON line. */
#include "micro/micro.h"

static const struct workload {
  const char* name;
  uint64_t ops;
  uint64_t batch;
  void (*run)(bench_run* run);
  int cold; /* has no operations to warm up with, or must not */
} workloads[] = {
    {"spawn_many", 1000000, 10000, spawn_many, 0},
    {"spawn_remote", 1000000, 10000, spawn_remote, 0},
    {"yield_many", 1000000, 1000000, yield_many, 0},
    {"ping_pong", 200000, 1000, ping_pong, 0},
    {"chained_spawn", 1000000, 1000000, chained_spawn, 0},
    {"unbalanced_producer", 100000, 10000, unbalanced_producer, 0},
    {"fork_join_fib", 1, 1, fork_join_fib, 1},
    {"uneven_tree", 1, 1, uneven_tree, 1},
    {"wake_latency", 1000, 1000, wake_latency, 0},
    {"light_load", 1000, 1000, light_load, 0},
    {"timer_churn", 1000000, 10000, timer_churn, 0},
    {"timer_reset", 1000000, 10000, timer_reset, 0},
    {"timer_fire", 100000, 100000, timer_fire, 0},
    {"blocking", 200000, 200000, blocking, 0},
    {"blocking_seq", 10000, 1, blocking_seq, 0},
    {"idle_task_bytes", 100000, 1000, idle_task_bytes, 1},
    {"timer_bytes", 100000, 1000, timer_bytes, 1},
    {"startup", 100, 1, startup, 1},
};

static const struct workload* find(const char* name) {
  for (size_t i = 0; i < sizeof workloads / sizeof *workloads; i++) {
    if (strcmp(name, workloads[i].name) == 0) return &workloads[i];
  }
  return NULL;
}

static void report(const char* name, const bench_run* run) {
  bench_json_open(name, "noria", run->workers);
  bench_json_number("ops", (double)run->ops);
  bench_json_number("batch", (double)run->batch);
  for (size_t i = 0; i < run->figure_count; i++) bench_json_number(run->figures[i].name, run->figures[i].value);
  if (run->wall_ns > 0) bench_json_number("ns_per_op", (double)run->wall_ns / (double)run->ops);
  if (run->cpu_ns > 0) bench_json_number("cpu_ns_per_op", (double)run->cpu_ns / (double)run->ops);
  bench_json_close();
}

int main(int argc, char** argv) {
  const struct workload* workload = argc > 1 ? find(argv[1]) : NULL;
  if (workload == NULL) {
    fprintf(stderr, "usage: noria-bench WORKLOAD [--workers N] [--ops N] [--batch N] [--warmup N]\n");
    return 2;
  }
  bench_run run = {.argc = argc, .argv = argv};
  run.workers = (uint32_t)bench_option(&run, "--workers", 1);
  run.ops = bench_option(&run, "--ops", workload->ops);
  run.batch = bench_option(&run, "--batch", workload->batch);
  if (run.batch > run.ops) run.batch = run.ops;
  noria_runtime_options options = {.size = sizeof options, .workers = run.workers};
  BENCH_CHECK(noria_runtime_new(&options, &run.rt) == NORIA_OK);

  bench_run warmup = run;
  warmup.ops = workload->cold ? 0 : bench_option(&run, "--warmup", run.ops / 10);
  if (warmup.batch > warmup.ops) warmup.batch = warmup.ops;
  if (warmup.ops > 0) workload->run(&warmup);
  workload->run(&run);
  report(workload->name, &run);
  BENCH_CHECK(noria_runtime_free(run.rt) == NORIA_OK);
  return 0;
}
