/* time.c: workloads of the timer wheel. */
#include "micro/micro.h"

enum { kMaxBatch = 1000000 };

/* timer_churn: sleeps of 1 s to 10 min are made and polled once (so that a waker waits in each), a
 * batch of them at a time, then all dropped before any is due. An operation is one sleep from make
 * to drop. */

static noria_future* sleeps[kMaxBatch];
static uint64_t churn_random = 88172645463325252u;

static void timer_churn_begin(rounds* r, const noria_cx* cx) {
  uint64_t batch = r->run->batch;
  BENCH_CHECK(batch <= kMaxBatch);
  for (uint64_t i = 0; i < batch; i++) {
    uint64_t milliseconds = 1000 + bench_random(&churn_random) % 599000;
    BENCH_CHECK(noria_sleep(r->run->rt, milliseconds * 1000000, &sleeps[i]) == NORIA_OK);
    BENCH_CHECK(noria_future_poll(sleeps[i], cx) == NORIA_PENDING);
  }
  for (uint64_t i = 0; i < batch; i++) noria_future_drop(sleeps[i]);
  gate_pass(&r->gate); /* lets other tasks run between two rounds */
}

void timer_churn(bench_run* run) { rounds_run(run, 1, timer_churn_begin, NULL); }

/* timer_reset: timers that are armed and have a waker left in them are armed anew, one after the other, for other deadlines;
 * an operation is one reset. A round goes through all of them. */

static noria_timer* timers[kMaxBatch];

static uint64_t reset_deadline_ns(uint64_t now_ns) {
  return now_ns + (1000 + bench_random(&churn_random) % 599000) * 1000000;
}

static int32_t timers_arm_poll(void* state, const noria_cx* cx) {
  bench_run* run = state;
  uint64_t now_ns = bench_now_ns();
  for (uint64_t i = 0; i < run->batch; i++) {
    BENCH_CHECK(noria_timer_new(run->rt, &timers[i]) == NORIA_OK);
    BENCH_CHECK(noria_timer_reset(timers[i], reset_deadline_ns(now_ns)) == NORIA_OK);
    BENCH_CHECK(noria_timer_poll_wait(timers[i], cx) == NORIA_PENDING);
  }
  return NORIA_READY;
}

/* Where the newest round began: the deadlines that it drew can be drawn again. */
static uint64_t round_random, round_now_ns;

static void timer_reset_begin(rounds* r, const noria_cx* cx) {
  (void)cx;
  uint64_t now_ns = bench_now_ns();
  round_random = churn_random;
  round_now_ns = now_ns;
  for (uint64_t i = 0; i < r->run->batch; i++)
    BENCH_CHECK(noria_timer_reset(timers[i], reset_deadline_ns(now_ns)) == NORIA_OK);
  gate_pass(&r->gate); /* lets other tasks run between two rounds */
}

void timer_reset(bench_run* run) {
  static const noria_task_vtable arm = {sizeof arm, 0, timers_arm_poll, NULL, NULL, "arm"};
  BENCH_CHECK(run->batch <= kMaxBatch);
  run_root(run->rt, &arm, run);
  rounds_run(run, 1, timer_reset_begin, NULL);
  churn_random = round_random;
  for (uint64_t i = 0; i < run->batch; i++) {
    uint64_t deadline_ns, wanted_ns = reset_deadline_ns(round_now_ns);
    BENCH_CHECK(noria_timer_deadline(timers[i], &deadline_ns) == NORIA_OK && deadline_ns == wanted_ns);
    BENCH_CHECK(noria_timer_drop(timers[i]) == NORIA_OK);
  }
}

/* timer_fire: one task a timer; the deadlines lie 10 us apart, in a second that begins half a
 * second after the first task was spawned, and are armed in shuffled order. Lateness is the time
 * from the deadline to the poll that sees it. CPU is taken over the second, not over the spawning.
 */

enum { kFireLeadNs = 500000000, kFireStepNs = 10000, kFireStride = 7919 };

typedef struct fire {
  bench_run* run;
  gate gate;
  uint64_t origin_ns; /* the start, on CLOCK_MONOTONIC, which is the runtime's clock too */
  uint64_t* lateness_ns;
  int started;
} fire;

typedef struct firing {
  fire* fire;
  uint64_t index;
  noria_future* sleep;
} firing;

static int32_t firing_poll(void* state, const noria_cx* cx) {
  firing* f = state;
  fire* all = f->fire;
  uint64_t after_ns = kFireLeadNs + f->index * kFireStepNs;
  if (f->sleep == NULL) BENCH_CHECK(noria_sleep_until(all->run->rt, all->origin_ns + after_ns, &f->sleep) == NORIA_OK);
  int32_t ready = noria_future_poll(f->sleep, cx);
  if (ready == NORIA_PENDING) return ready;
  uint64_t now = bench_now_ns();
  BENCH_CHECK(ready == NORIA_READY && now >= all->origin_ns + after_ns);
  all->lateness_ns[f->index] = now - (all->origin_ns + after_ns);
  noria_future_drop(f->sleep);
  gate_pass(&all->gate);
  return NORIA_READY;
}

static const noria_task_vtable firing_task = {sizeof firing_task, 0, firing_poll, NULL, NULL, "firing"};

static int32_t fire_poll(void* state, const noria_cx* cx) {
  fire* all = state;
  if (all->started) return gate_is_open(&all->gate) ? NORIA_READY : NORIA_PENDING;
  all->started = 1;
  gate_shut(&all->gate, all->run->ops, cx);
  for (uint64_t i = 0; i < all->run->ops; i++) {
    void* place;
    noria_task* task;
    BENCH_CHECK(noria_task_new(all->run->rt, &firing_task, sizeof(firing), _Alignof(firing), &place, &task) ==
                NORIA_OK);
    *(firing*)place = (firing){.fire = all, .index = i * kFireStride % all->run->ops};
    BENCH_CHECK(noria_task_start(task) == NORIA_OK);
    noria_task_detach(task);
  }
  return NORIA_PENDING;
}

static const noria_task_vtable fire_task = {sizeof fire_task, 0, fire_poll, NULL, NULL, "fire"};

void timer_fire(bench_run* run) {
  fire all = {.run = run};
  noria_task* task;
  noria_future* join;
  BENCH_CHECK(run->ops % kFireStride != 0); /* the stride must visit every index */
  all.lateness_ns = calloc(run->ops, sizeof *all.lateness_ns);
  BENCH_CHECK(all.lateness_ns != NULL);
  all.origin_ns = bench_now_ns();
  BENCH_CHECK(noria_spawn(run->rt, &fire_task, &all, &task) == NORIA_OK);
  uint64_t begin_ns = all.origin_ns + kFireLeadNs;
  struct timespec begin = {(time_t)(begin_ns / 1000000000), (long)(begin_ns % 1000000000)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &begin, NULL) != 0) {
  }
  run->cpu_ns = bench_cpu_ns();
  BENCH_CHECK(noria_task_join(task, &join) == NORIA_OK);
  BENCH_CHECK(noria_future_wait(join, NORIA_FOREVER) == NORIA_OK);
  run->cpu_ns = bench_cpu_ns() - run->cpu_ns;
  noria_future_drop(join);
  noria_task_detach(task);
  bench_figure(run, "lateness_p50_us", (double)bench_percentile(all.lateness_ns, run->ops, 0.5) / 1e3);
  bench_figure(run, "lateness_p99_us", (double)bench_percentile(all.lateness_ns, run->ops, 0.99) / 1e3);
  bench_figure(run, "lateness_max_us", (double)bench_percentile(all.lateness_ns, run->ops, 1) / 1e3);
  free(all.lateness_ns);
}
