/* noria_service.c: noria-service [--workers N]: a service on Noria that burns CPU when a message asks for it.
 *
 * A task a connection reads messages of 64 bytes and sends each back: byte 0 is 0 (echo), 1 (burn first, in the handler) or
 * 2 (burn first, on the blocking pool), bytes 4 to 7 how many microseconds. Meanwhile it probes itself: a task sleeps for 1 ms
 * again and again, a foreign thread spawns a task every ms, and a handler spawns 8 before it burns. Prints its port,
 * serves until SIGTERM, then prints the longest delays. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "common/bench.h"
#include "noria/noria.h"

enum { kMessageBytes = 64, kBurnInline = 1, kBurnOnPool = 2, kSpawned = 8, kMillisecondNs = 1000000 };

static noria_runtime* runtime;
static _Atomic uint64_t messages, timer_max_ns, task_max_ns, spawned_max_ns;
static _Atomic int stop;

/* Delays count from the first message on. ORDER: relaxed throughout, statistics. */
static void note(_Atomic uint64_t* longest, uint64_t delay_ns) {
  uint64_t seen = atomic_load_explicit(longest, memory_order_relaxed);
  if (atomic_load_explicit(&messages, memory_order_relaxed) == 0) return;
  while (delay_ns > seen &&
         !atomic_compare_exchange_weak_explicit(longest, &seen, delay_ns, memory_order_relaxed, memory_order_relaxed)) {
  }
}

typedef struct probe {
  _Atomic uint64_t* longest;
  uint64_t spawned_ns;
} probe;

static int32_t probe_poll(void* state, const noria_cx* cx) {
  (void)cx;
  probe* p = state;
  note(p->longest, bench_now_ns() - p->spawned_ns);
  return NORIA_READY;
}

static void spawn_probe(_Atomic uint64_t* longest) {
  static const noria_task_vtable task_kind = {sizeof task_kind, 0, probe_poll, NULL, NULL, "probe"};
  void* state;
  noria_task* task;
  BENCH_CHECK(noria_task_new(runtime, &task_kind, sizeof(probe), _Alignof(probe), &state, &task) == NORIA_OK);
  *(probe*)state = (probe){.longest = longest, .spawned_ns = bench_now_ns()};
  BENCH_CHECK(noria_task_start(task) == NORIA_OK);
  noria_task_detach(task);
}

typedef struct connection {
  noria_tcp* tcp;
  noria_future* job; /* the burn on the pool */
  size_t length;     /* of the message, as far as it came */
  size_t sent;
  uint32_t burn_us;
  int ready; /* the message is to be sent back */
  unsigned char message[kMessageBytes];
} connection;

static int32_t burn(void* arg) {
  bench_burn_ns((uint64_t)((connection*)arg)->burn_us * 1000);
  return 0;
}

static int32_t receive(connection* c, const noria_cx* cx) {
  size_t count;
  while (c->length < kMessageBytes) {
    int32_t result = noria_tcp_poll_read(c->tcp, cx, c->message + c->length, kMessageBytes - c->length, &count);
    if (result != NORIA_READY) return result;
    if (count == 0) return -1; /* the end */
    c->length += count;
  }
  return NORIA_READY;
}

/* What the message asks for. */
static int32_t work(connection* c, const noria_cx* cx) {
  if (c->job == NULL) {
    atomic_fetch_add_explicit(&messages, 1, memory_order_relaxed); /* ORDER: relaxed, a statistic */
    c->burn_us = 0;
    for (int i = 3; i >= 0; i--) c->burn_us = c->burn_us << 8 | c->message[4 + i];
    if (c->message[0] == kBurnInline) {
      for (int i = 0; i < kSpawned; i++) spawn_probe(&spawned_max_ns);
      burn(c);
    }
    if (c->message[0] != kBurnOnPool) return NORIA_READY;
    BENCH_CHECK(noria_spawn_blocking(runtime, burn, NULL, c, &c->job) == NORIA_OK);
  }
  int32_t result = noria_future_poll(c->job, cx);
  if (result != NORIA_READY) return result;
  noria_future_drop(c->job);
  c->job = NULL;
  return NORIA_READY;
}

static int32_t connection_poll(void* state, const noria_cx* cx) {
  connection* c = state;
  for (;;) {
    size_t count;
    int32_t result = receive(c, cx);
    if (result == NORIA_READY && !c->ready) result = work(c, cx);
    if (result == NORIA_PENDING) return result;
    if (result < 0) return NORIA_READY;
    c->ready = 1;
    while (c->sent < kMessageBytes) {
      result = noria_tcp_poll_write(c->tcp, cx, c->message + c->sent, kMessageBytes - c->sent, &count);
      if (result == NORIA_PENDING) return result;
      if (result < 0) return NORIA_READY;
      c->sent += count;
    }
    c->length = c->sent = 0;
    c->ready = 0;
  }
}

static void connection_drop(void* state) {
  connection* c = state;
  BENCH_CHECK(c->job == NULL); /* the load waits for all answers */
  noria_tcp_drop(c->tcp);
}

static int32_t accept_poll(void* listener, const noria_cx* cx) {
  static const noria_task_vtable task_kind = {sizeof task_kind, 0,    connection_poll,
                                              connection_drop,  NULL, "connection"};
  noria_tcp* tcp;
  int32_t result;
  while ((result = noria_tcp_poll_accept(listener, cx, &tcp)) == NORIA_READY) {
    void* state;
    noria_task* task;
    BENCH_CHECK(noria_task_new(runtime, &task_kind, sizeof(connection), _Alignof(connection), &state, &task) ==
                NORIA_OK);
    *(connection*)state = (connection){.tcp = tcp};
    BENCH_CHECK(noria_task_start(task) == NORIA_OK);
    noria_task_detach(task);
  }
  return result;
}

typedef struct ticker {
  noria_timer* timer;
  uint64_t deadline_ns;
} ticker;

static int32_t ticker_poll(void* state, const noria_cx* cx) {
  ticker* t = state;
  for (;;) {
    if (t->deadline_ns != 0) {
      if (noria_timer_poll_wait(t->timer, cx) != NORIA_READY) return NORIA_PENDING;
      note(&timer_max_ns, bench_now_ns() - t->deadline_ns);
    }
    t->deadline_ns = bench_now_ns() + kMillisecondNs;
    BENCH_CHECK(noria_timer_reset(t->timer, t->deadline_ns) == NORIA_OK);
  }
}

static void* spawner_main(void* arg) {
  (void)arg;
  /* ORDER: relaxed, one turn more does no harm. */
  while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
    struct timespec pause = {0, kMillisecondNs};
    nanosleep(&pause, NULL);
    spawn_probe(&task_max_ns);
  }
  return NULL;
}

static noria_tcp_listener* listen_anywhere(void) {
  noria_future* future;
  noria_tcp_listener* listener;
  noria_address address;
  BENCH_CHECK(noria_tcp_listen(runtime, "127.0.0.1:0", NULL, &future) == NORIA_OK);
  BENCH_CHECK(noria_future_result(future, &listener, sizeof listener) == NORIA_OK);
  noria_future_drop(future);
  BENCH_CHECK(noria_tcp_listener_address(listener, &address) == NORIA_OK);
  printf("port %u\n", address.port);
  fflush(stdout);
  return listener;
}

static void report(uint32_t workers) {
  noria_metrics metrics = {.size = sizeof metrics};
  BENCH_CHECK(noria_runtime_metrics(runtime, &metrics) == NORIA_OK);
  bench_json_open("service", "noria", workers);
  bench_json_number("messages", (double)atomic_load(&messages));
  bench_json_number("timer_max_us", (double)atomic_load(&timer_max_ns) / 1e3);
  bench_json_number("task_max_us", (double)atomic_load(&task_max_ns) / 1e3);
  bench_json_number("spawned_max_us", (double)atomic_load(&spawned_max_ns) / 1e3);
  bench_json_number("steals_per_100_polls", 100.0 * (double)metrics.steals / (double)metrics.polls);
  bench_json_close();
}

int main(int argc, char** argv) {
  static const noria_task_vtable accept_task = {sizeof accept_task, 0, accept_poll, NULL, NULL, "accept"};
  static const noria_task_vtable ticker_task = {sizeof ticker_task, 0, ticker_poll, NULL, NULL, "ticker"};
  uint32_t workers = (uint32_t)bench_argument(argc, argv, "--workers", 1);
  noria_runtime_options options = {.size = sizeof options, .workers = workers};
  ticker t = {.deadline_ns = 0};
  pthread_t spawner;
  sigset_t signals;
  int signal_number;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, NULL); /* before there are other threads */
  BENCH_CHECK(noria_runtime_new(&options, &runtime) == NORIA_OK);
  BENCH_CHECK(noria_timer_new(runtime, &t.timer) == NORIA_OK);
  BENCH_CHECK(noria_spawn(runtime, &ticker_task, &t, NULL) == NORIA_OK);
  noria_tcp_listener* listener = listen_anywhere();
  BENCH_CHECK(noria_spawn(runtime, &accept_task, listener, NULL) == NORIA_OK);
  BENCH_CHECK(pthread_create(&spawner, NULL, spawner_main, NULL) == 0);
  sigwait(&signals, &signal_number);
  atomic_store(&stop, 1);
  pthread_join(spawner, NULL);
  report(workers);
  BENCH_CHECK(noria_runtime_free(runtime) == NORIA_OK);
  noria_timer_drop(t.timer);
  noria_tcp_listener_drop(listener);
  return 0;
}
