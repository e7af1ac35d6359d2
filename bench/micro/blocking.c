/* blocking.c: jobs that do nothing on the blocking pool: all at once, and one after the other. */
#include "micro/micro.h"

static int32_t one(void* arg) {
  (void)arg;
  return 1;
}

/* The answer of a job, which is awaited; NORIA_PENDING if it is not there. */
static int32_t job_poll(noria_future* future, const noria_cx* cx, uint64_t* sum) {
  int32_t answer;
  if (noria_future_poll(future, cx) == NORIA_PENDING) return NORIA_PENDING;
  BENCH_CHECK(noria_future_result(future, &answer, sizeof answer) == NORIA_OK);
  noria_future_drop(future);
  *sum += (uint64_t)answer;
  return NORIA_READY;
}

/* blocking: the root gives `ops` jobs to the pool, then awaits them in order; each answers 1, and the sum must be right. */

typedef struct jobs {
  bench_run* run;
  noria_future** futures;
  uint64_t awaited;
  uint64_t sum;
} jobs;

static void jobs_start(jobs* j) {
  bench_begin(j->run);
  j->futures = malloc(j->run->ops * sizeof *j->futures);
  BENCH_CHECK(j->futures != NULL);
  for (uint64_t i = 0; i < j->run->ops; i++)
    BENCH_CHECK(noria_spawn_blocking(j->run->rt, one, NULL, NULL, &j->futures[i]) == NORIA_OK);
}

static int32_t jobs_poll(void* state, const noria_cx* cx) {
  jobs* j = state;
  if (j->futures == NULL) jobs_start(j);
  for (; j->awaited < j->run->ops; j->awaited++) {
    if (job_poll(j->futures[j->awaited], cx, &j->sum) == NORIA_PENDING) return NORIA_PENDING;
  }
  free(j->futures);
  bench_end(j->run);
  return NORIA_READY;
}

void blocking(bench_run* run) {
  static const noria_task_vtable root = {sizeof root, 0, jobs_poll, NULL, NULL, "jobs"};
  jobs j = {.run = run};
  run_root(run->rt, &root, &j);
  BENCH_CHECK(j.sum == run->ops);
}

/* blocking_seq: `batch` tasks, each of which awaits a job before it gives the next. */

typedef struct sequence {
  noria_runtime* rt;
  gate* gate;
  noria_future* job;
  uint64_t jobs;
  uint64_t sum;
} sequence;

static int32_t sequence_poll(void* state, const noria_cx* cx) {
  sequence* s = state;
  while (s->sum < s->jobs) {
    if (s->job == NULL) BENCH_CHECK(noria_spawn_blocking(s->rt, one, NULL, NULL, &s->job) == NORIA_OK);
    if (job_poll(s->job, cx, &s->sum) == NORIA_PENDING) return NORIA_PENDING;
    s->job = NULL;
  }
  gate_pass(s->gate);
  return NORIA_READY;
}

static void sequences_begin(rounds* r, const noria_cx* cx) {
  static const noria_task_vtable task = {sizeof task, 0, sequence_poll, NULL, NULL, "sequence"};
  (void)cx;
  for (uint64_t i = 0; i < r->passes; i++) {
    sequence s = {.rt = r->run->rt, .gate = &r->gate, .jobs = r->run->ops / r->passes};
    spawn_with(s.rt, &task, &s, sizeof s);
  }
}

void blocking_seq(bench_run* run) {
  bench_run all = *run; /* one round of all operations */
  all.batch = all.ops;
  rounds_run(&all, run->batch, sequences_begin, NULL);
  run->wall_ns = all.wall_ns;
  run->cpu_ns = all.cpu_ns;
}
