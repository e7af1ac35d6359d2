/* tasks.c: workloads of the scheduler: spawning, yielding, waking each other. */
#include <pthread.h>
#include <semaphore.h>

#include "micro/micro.h"

/* spawn_many: the root spawns batches of tasks that do nothing but pass the gate. */

static int32_t pass_poll(void* state, const noria_cx* cx) {
  (void)cx;
  gate_pass(state);
  return NORIA_READY;
}

static const noria_task_vtable pass_task = {sizeof pass_task, 0, pass_poll, NULL, NULL, "pass"};

static void spawn_many_begin(rounds* r, const noria_cx* cx) {
  (void)cx;
  noria_runtime* rt = r->run->rt;
  for (uint64_t i = 0; i < r->passes; i++) BENCH_CHECK(noria_spawn(rt, &pass_task, &r->gate, NULL) == NORIA_OK);
}

void spawn_many(bench_run* run) { rounds_run(run, run->batch, spawn_many_begin, NULL); }

/* spawn_remote: the same from threads that are no workers; they share the batch, and the last task of a thread's part posts
 * its semaphore. */

typedef struct spawner {
  bench_run* run;
  uint64_t part; /* of each batch */
  pthread_t thread;
  _Atomic uint64_t remaining;
  sem_t open;
} spawner;

static int32_t remote_poll(void* state, const noria_cx* cx) {
  (void)cx;
  spawner* s = state;
  /* ORDER: acq_rel, as gate_pass; the semaphore publishes it to the waiting thread. */
  if (atomic_fetch_sub_explicit(&s->remaining, 1, memory_order_acq_rel) == 1) sem_post(&s->open);
  return NORIA_READY;
}

static void* spawner_main(void* arg) {
  static const noria_task_vtable task = {sizeof task, 0, remote_poll, NULL, NULL, "remote"};
  spawner* s = arg;
  for (uint64_t done = 0; done < s->run->ops; done += s->run->batch) {
    /* ORDER: relaxed, spawning publishes it. */
    atomic_store_explicit(&s->remaining, s->part, memory_order_relaxed);
    for (uint64_t i = 0; i < s->part; i++) BENCH_CHECK(noria_spawn(s->run->rt, &task, s, NULL) == NORIA_OK);
    while (sem_wait(&s->open) != 0) {
    }
  }
  return NULL;
}

void spawn_remote(bench_run* run) {
  enum { kMaxSpawners = 64 };
  static spawner spawners[kMaxSpawners]; /* outlive a task that still leaves its semaphore */
  uint64_t count = bench_option(run, "--spawners", 1);
  BENCH_CHECK(count > 0 && count <= kMaxSpawners && run->batch % count == 0);
  bench_begin(run);
  for (uint64_t i = 0; i < count; i++) {
    spawner* s = &spawners[i];
    s->run = run;
    s->part = run->batch / count;
    BENCH_CHECK(sem_init(&s->open, 0, 0) == 0);
    if (i > 0) BENCH_CHECK(pthread_create(&s->thread, NULL, spawner_main, s) == 0);
  }
  spawner_main(&spawners[0]);
  for (uint64_t i = 1; i < count; i++) pthread_join(spawners[i].thread, NULL);
  bench_end(run);
}

/* yield_many: 1,000 tasks that yield until all of them together have yielded `batch` times. */

enum { kYieldTasks = 1000 };

typedef struct yielder {
  uint64_t left;
  gate* gate;
} yielder;

static int32_t yield_poll(void* state, const noria_cx* cx) {
  yielder* y = state;
  if (y->left > 0) {
    y->left--;
    return noria_yield(cx);
  }
  gate_pass(y->gate);
  return NORIA_READY;
}

static const noria_task_vtable yield_task = {sizeof yield_task, 0, yield_poll, NULL, NULL, "yield"};

static void yield_many_begin(rounds* r, const noria_cx* cx) {
  (void)cx;
  for (uint64_t i = 0; i < r->passes; i++) {
    void* state;
    noria_task* task;
    BENCH_CHECK(noria_task_new(r->run->rt, &yield_task, sizeof(yielder), _Alignof(yielder), &state, &task) == NORIA_OK);
    *(yielder*)state = (yielder){.left = r->run->batch / r->passes, .gate = &r->gate};
    BENCH_CHECK(noria_task_start(task) == NORIA_OK);
    noria_task_detach(task);
  }
}

void yield_many(bench_run* run) { rounds_run(run, kYieldTasks, yield_many_begin, NULL); }

/* ping_pong: each pair: the first task makes two oneshots, spawns the second, sends on one and
 * waits for the answer on the other. An operation is a pair. */

typedef struct pong {
  noria_oneshot_receiver* ping;
  noria_oneshot_sender* answer;
} pong;

typedef struct ping {
  noria_runtime* rt;
  gate* gate;
  noria_oneshot_receiver* answer; /* NULL before the first poll */
} ping;

static int32_t pong_poll(void* state, const noria_cx* cx) {
  pong* p = state;
  void* value;
  int32_t ready = noria_oneshot_poll_receive(p->ping, cx, &value);
  if (ready != NORIA_READY) return ready;
  noria_oneshot_receiver_drop(p->ping);
  return noria_oneshot_send(p->answer, NULL);
}

static const noria_task_vtable pong_task = {sizeof pong_task, 0, pong_poll, NULL, NULL, "pong"};

static void ping_start(ping* p) {
  noria_oneshot_sender* send_ping;
  void* state;
  noria_task* task;
  BENCH_CHECK(noria_task_new(p->rt, &pong_task, sizeof(pong), _Alignof(pong), &state, &task) == NORIA_OK);
  pong* other = state;
  BENCH_CHECK(noria_oneshot_new(p->rt, NULL, &send_ping, &other->ping) == NORIA_OK);
  BENCH_CHECK(noria_oneshot_new(p->rt, NULL, &other->answer, &p->answer) == NORIA_OK);
  BENCH_CHECK(noria_task_start(task) == NORIA_OK);
  noria_task_detach(task);
  BENCH_CHECK(noria_oneshot_send(send_ping, NULL) == NORIA_OK);
}

static int32_t ping_poll(void* state, const noria_cx* cx) {
  ping* p = state;
  void* value;
  if (p->answer == NULL) ping_start(p);
  int32_t ready = noria_oneshot_poll_receive(p->answer, cx, &value);
  if (ready == NORIA_PENDING) return ready;
  BENCH_CHECK(ready == NORIA_READY);
  noria_oneshot_receiver_drop(p->answer);
  gate_pass(p->gate);
  return NORIA_READY;
}

static const noria_task_vtable ping_task = {sizeof ping_task, 0, ping_poll, NULL, NULL, "ping"};

static void ping_pong_begin(rounds* r, const noria_cx* cx) {
  (void)cx;
  for (uint64_t i = 0; i < r->passes; i++) {
    void* state;
    noria_task* task;
    BENCH_CHECK(noria_task_new(r->run->rt, &ping_task, sizeof(ping), _Alignof(ping), &state, &task) == NORIA_OK);
    *(ping*)state = (ping){.rt = r->run->rt, .gate = &r->gate};
    BENCH_CHECK(noria_task_start(task) == NORIA_OK);
    noria_task_detach(task);
  }
}

void ping_pong(bench_run* run) { rounds_run(run, run->batch, ping_pong_begin, NULL); }

/* chained_spawn: each task spawns the next one and ends; the last passes the gate. */

typedef struct chain {
  noria_runtime* rt;
  gate* gate;
  uint64_t left; /* one task at a time owns it */
} chain;

static int32_t chain_poll(void* state, const noria_cx* cx);
static const noria_task_vtable chain_task = {sizeof chain_task, 0, chain_poll, NULL, NULL, "chain"};

static int32_t chain_poll(void* state, const noria_cx* cx) {
  (void)cx;
  chain* c = state;
  if (--c->left == 0) {
    gate_pass(c->gate);
  } else {
    BENCH_CHECK(noria_spawn(c->rt, &chain_task, c, NULL) == NORIA_OK);
  }
  return NORIA_READY;
}

static void chained_spawn_begin(rounds* r, const noria_cx* cx) {
  (void)cx;
  static chain c;
  c = (chain){.rt = r->run->rt, .gate = &r->gate, .left = r->run->batch};
  BENCH_CHECK(noria_spawn(c.rt, &chain_task, &c, NULL) == NORIA_OK);
}

void chained_spawn(bench_run* run) { rounds_run(run, 1, chained_spawn_begin, NULL); }
