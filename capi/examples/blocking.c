/* blocking.c: what to do with code that blocks: a library that reads files, a long computation.
 *
 * A task must not block: its worker would poll nothing else. Such code goes to the blocking pool,
 * whose threads may wait as long as they like, and the task awaits the result like any other future. */
#define _DEFAULT_SOURCE /* usleep, with -std=c99 too */
#include <errno.h>
#include <noria/async.h>
#include <noria/noria.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { JOBS = 4, POOL_THREADS = 2 };

typedef struct Job {
  uint32_t from, to; /* counts the primes in [from, to) */
} Job;

/* Runs on a pool thread. What it returns is the future's result. */
static int32_t count_primes(void *arg) {
  const Job *job = arg;
  int32_t count = 0;
  for (uint32_t n = job->from; n < job->to; n++) {
    uint32_t divisor = 2;
    while (divisor * divisor <= n && n % divisor != 0) divisor++;
    count += n >= 2 && divisor * divisor > n;
  }
  usleep(20000); /* and then it waits a bit, as code that blocks does */
  return count;
}

/* Runs instead of the job when the job is given up before it began. */
static void given_up(void *arg) {
  (void)arg;
  puts("a job was cancelled before it began");
}

typedef struct Program {
  noria_frame frame;
  noria_runtime *rt;
  Job jobs[JOBS];
  noria_future *all;
  noria_future *op;
  int32_t count;
  int32_t primes;
} Program;

/* Starts the jobs, of which as many run at a time as the pool has threads, and makes one future of them. */
static int32_t start_jobs(Program *p) {
  noria_future *each[JOBS];
  for (uint32_t i = 0; i < JOBS; i++) {
    p->jobs[i] = (Job){i * 25000, (i + 1) * 25000};
    int32_t status = noria_spawn_blocking(p->rt, count_primes, NULL, &p->jobs[i], &each[i]);
    if (status != NORIA_OK) {
      while (i > 0) noria_future_drop(each[--i]);
      return status;
    }
  }
  return noria_join_all(p->rt, each, JOBS, &p->all);
}

static int32_t occupy_pool(Program *p) {
  int32_t status = NORIA_OK;
  for (int i = 0; i < POOL_THREADS && status == NORIA_OK; i++) {
    status = noria_spawn_blocking(p->rt, count_primes, NULL, &p->jobs[0], NULL); /* NULL: nobody waits */
  }
  return status;
}

static int32_t program_poll(void *state, const noria_cx *cx) {
  Program *p = state;
  NORIA_BEGIN(&p->frame, cx);

  /* Several jobs at once. */
  NORIA_TRY(&p->frame, start_jobs(p));
  NORIA_TRY(&p->frame, noria_future_poll(p->all, cx));
  for (size_t i = 0; i < JOBS; i++) {
    if (noria_join_all_result(p->all, i, &p->count, sizeof p->count) == NORIA_OK) p->primes += p->count;
  }
  printf("%d primes below 100000, counted by %d jobs\n", p->primes, JOBS);

  /* A job too many: all threads of the pool are busy with others, which nobody waits for. Cancelling it now
   * means that it never begins. */
  NORIA_TRY(&p->frame, occupy_pool(p));
  NORIA_TRY(&p->frame, noria_spawn_blocking(p->rt, count_primes, given_up, &p->jobs[1], &p->op));
  noria_future_cancel(p->op);
  NORIA_AWAIT_FUTURE(&p->frame, p->op, &p->count, sizeof p->count);
  if (p->frame.status != -ECANCELED) NORIA_RETURN(&p->frame, -EPROTO);

  /* In the middle of a function that cannot be cut at an await, the worker's place can be given away
   * instead: its tasks, timers and I/O pass to another thread while this one blocks. */
  NORIA_TRY(&p->frame, noria_block_in_place(count_primes, &p->jobs[0], &p->count));
  printf("%d primes below 25000, counted in place\n", p->count);
  NORIA_END(&p->frame);
}

static void program_drop(void *state) {
  Program *p = state;
  if (p->op != NULL) noria_future_drop(p->op);
  if (p->all != NULL) noria_future_drop(p->all);
}

static const noria_task_vtable program_vtable = {
    .size = sizeof(noria_task_vtable), .poll = program_poll, .drop = program_drop, .name = "program"};

int main(void) {
  noria_runtime_options options = {.size = sizeof options, .pool_user_threads = POOL_THREADS};
  noria_runtime *rt;
  if (noria_runtime_new(&options, &rt) != NORIA_OK) return EXIT_FAILURE;
  static Program program; /* jobs refer to it: it outlives the runtime */
  program.rt = rt;

  /* Spawned, so that it runs on a worker; this thread waits for its end. */
  noria_task *task = NULL;
  noria_future *end = NULL;
  noria_join_result ended = {.error = -1};
  int32_t status = noria_spawn(rt, &program_vtable, &program, &task);
  if (status == NORIA_OK) status = noria_task_join(task, &end);
  if (status == NORIA_OK) {
    noria_future_wait(end, NORIA_FOREVER);
    status = noria_future_result(end, &ended, sizeof ended);
    if (status == NORIA_OK) status = ended.error;
    noria_future_drop(end);
  }
  if (status != NORIA_OK) fprintf(stderr, "blocking: %s\n", noria_error_message(status));
  if (task != NULL) noria_task_detach(task);

  /* The jobs that nobody waits for may still run: shutdown waits for them, up to ten seconds. */
  noria_runtime_shutdown(rt, UINT64_C(10000000000), NULL);
  noria_runtime_release(rt);
  return status == NORIA_OK && program.primes == 9592 ? EXIT_SUCCESS : EXIT_FAILURE;
}
