/* blocking.c: blocking: the root gives `ops` jobs that do nothing to the pool, then awaits them in
 * order; each answers 1, and the sum must be right. */
#include "micro/micro.h"

static int32_t one(void* arg) {
  (void)arg;
  return 1;
}

typedef struct jobs {
  bench_run* run;
  noria_future** futures;
  uint64_t awaited;
  uint64_t sum;
} jobs;

static void jobs_start(jobs* j) {
  j->run->cpu_ns = bench_cpu_ns();
  j->run->wall_ns = bench_now_ns();
  j->futures = malloc(j->run->ops * sizeof *j->futures);
  BENCH_CHECK(j->futures != NULL);
  for (uint64_t i = 0; i < j->run->ops; i++)
    BENCH_CHECK(noria_spawn_blocking(j->run->rt, one, NULL, NULL, &j->futures[i]) == NORIA_OK);
}

static int32_t jobs_poll(void* state, const noria_cx* cx) {
  jobs* j = state;
  if (j->futures == NULL) jobs_start(j);
  for (; j->awaited < j->run->ops; j->awaited++) {
    noria_future* future = j->futures[j->awaited];
    int32_t answer;
    if (noria_future_poll(future, cx) == NORIA_PENDING) return NORIA_PENDING;
    BENCH_CHECK(noria_future_result(future, &answer, sizeof answer) == NORIA_OK);
    noria_future_drop(future);
    j->sum += (uint64_t)answer;
  }
  free(j->futures);
  j->run->wall_ns = bench_now_ns() - j->run->wall_ns;
  j->run->cpu_ns = bench_cpu_ns() - j->run->cpu_ns;
  return NORIA_READY;
}

void blocking(bench_run* run) {
  static const noria_task_vtable root = {sizeof root, 0, jobs_poll, NULL, NULL, "jobs"};
  jobs j = {.run = run};
  run_root(run->rt, &root, &j);
  BENCH_CHECK(j.sum == run->ops);
}
