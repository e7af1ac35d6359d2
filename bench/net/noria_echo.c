/* noria_echo.c: noria-echo [--workers N] [--buffer B]: a TCP echo server on Noria, in poll forms, a task a
 * connection.
 *
 * Each connection has a buffer of B bytes, 32 KiB by default: read, write all, again. The Tokio peer and epoll_echo.c
 * do the same. Prints its port, serves until SIGTERM, then prints what it did. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "common/bench.h"
#include "noria/noria.h"

static size_t buffer_bytes;

static _Atomic uint64_t total_bytes, total_connections;

typedef struct connection {
  noria_tcp* tcp;
  uint64_t bytes;
  size_t length; /* what the buffer holds */
  size_t sent;   /* how much of it is on its way back */
  char* buffer;
} connection;

static int32_t connection_poll(void* state, const noria_cx* cx) {
  connection* c = state;
  for (;;) {
    size_t count;
    int32_t result;
    while (c->sent < c->length) {
      result = noria_tcp_poll_write(c->tcp, cx, c->buffer + c->sent, c->length - c->sent, &count);
      if (result != NORIA_READY) return result;
      c->sent += count;
    }
    result = noria_tcp_poll_read(c->tcp, cx, c->buffer, buffer_bytes, &count);
    if (result != NORIA_READY) return result;
    if (count == 0) return NORIA_READY;
    c->length = count;
    c->sent = 0;
    c->bytes += count;
  }
}

static void connection_drop(void* state) {
  connection* c = state;
  /* ORDER: relaxed, a statistic that is read when the connections are gone. */
  atomic_fetch_add_explicit(&total_bytes, c->bytes, memory_order_relaxed);
  noria_tcp_drop(c->tcp);
  free(c->buffer);
}

static const noria_task_vtable connection_task = {sizeof connection_task, 0,    connection_poll,
                                                  connection_drop,        NULL, "connection"};

static void serve(noria_tcp* tcp) {
  void* state;
  noria_task* task;
  BENCH_CHECK(noria_task_new(NULL, &connection_task, sizeof(connection), _Alignof(connection), &state, &task) ==
              NORIA_OK);
  *(connection*)state = (connection){.tcp = tcp, .buffer = calloc(1, buffer_bytes)};
  BENCH_CHECK(((connection*)state)->buffer != NULL);
  BENCH_CHECK(noria_task_start(task) == NORIA_OK);
  noria_task_detach(task);
}

static int32_t accept_poll(void* listener, const noria_cx* cx) {
  noria_tcp* tcp;
  int32_t result;
  while ((result = noria_tcp_poll_accept(listener, cx, &tcp)) == NORIA_READY) {
    /* ORDER: relaxed, a statistic. */
    atomic_fetch_add_explicit(&total_connections, 1, memory_order_relaxed);
    serve(tcp);
  }
  return result;
}

static const noria_task_vtable accept_task = {sizeof accept_task, 0, accept_poll, NULL, NULL, "accept"};

static noria_tcp_listener* listen_anywhere(noria_runtime* rt) {
  noria_future* future;
  noria_tcp_listener* listener;
  noria_address address;
  BENCH_CHECK(noria_tcp_listen(rt, "127.0.0.1:0", NULL, &future) == NORIA_OK);
  BENCH_CHECK(noria_future_result(future, &listener, sizeof listener) == NORIA_OK);
  noria_future_drop(future);
  BENCH_CHECK(noria_tcp_listener_address(listener, &address) == NORIA_OK);
  printf("port %u\n", address.port);
  fflush(stdout);
  return listener;
}

int main(int argc, char** argv) {
  uint32_t workers = (uint32_t)bench_argument(argc, argv, "--workers", 1);
  buffer_bytes = (size_t)bench_argument(argc, argv, "--buffer", 32 * 1024);
  noria_runtime_options options = {.size = sizeof options, .workers = workers};
  noria_runtime* rt;
  sigset_t signals;
  int signal_number;
  bench_raise_files();
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, NULL); /* before there are other threads */
  BENCH_CHECK(noria_runtime_new(&options, &rt) == NORIA_OK);
  noria_tcp_listener* listener = listen_anywhere(rt);
  BENCH_CHECK(noria_spawn(rt, &accept_task, listener, NULL) == NORIA_OK);
  sigwait(&signals, &signal_number);
  uint64_t cpu_ns = bench_cpu_ns();
  BENCH_CHECK(noria_runtime_free(rt) == NORIA_OK);
  noria_tcp_listener_drop(listener);

  bench_json_open("echo", "noria", workers);
  bench_json_number("connections", (double)atomic_load(&total_connections));
  bench_json_number("bytes", (double)atomic_load(&total_bytes));
  bench_json_number("cpu_ns", (double)cpu_ns);
  bench_json_close();
  return 0;
}
