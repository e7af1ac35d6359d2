/* proxy.c: noria-proxy, a TCP proxy on the Noria runtime. `noria-proxy --help` tells the options.
 *
 *   proxy/serve.c    the proxy: a task that accepts, a task for each connection
 *   proxy/signals.c  SIGINT and SIGTERM, awaited
 *   proxy/status.c   the status line     proxy/report.c  the report at the end
 *   proxy/demo.c     --demo: an echo server and clients that check every byte
 *   proxy/stats.c, console.c, options.c, text.c          counters, stderr, command line, numbers
 *
 * This file is the program from start to end: the function `run_poll` is what the main thread does while
 * the workers serve. */
#include <noria/async.h>
#include <noria/noria.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/console.h"
#include "proxy/demo.h"
#include "proxy/options.h"
#include "proxy/report.h"
#include "proxy/serve.h"
#include "proxy/signals.h"
#include "proxy/status.h"

#define SECOND_NS UINT64_C(1000000000)

typedef struct Program {
  noria_frame frame;
  Options options;
  noria_runtime *rt;
  Signals signals;
  Proxy proxy;
  Status status;
  Demo demo;
  Outcome outcome;
  noria_future *op;
  noria_future *demo_end;
  int code; /* of the exit */
} Program;

static int complain(const char *what, int32_t error) {
  console_say("noria-proxy: %s: %s (%s)", what, noria_error_name(error), noria_error_message(error));
  return EXIT_FAILURE;
}

/* How often the status comes: quick on a terminal, where it replaces itself. */
static uint64_t status_period_ns(const Options *options) {
  if (console_is_terminal()) return SECOND_NS / 2;
  return options->demo ? SECOND_NS : 10 * SECOND_NS;
}

/* READY when there is a reason to stop: a signal, the end of the demo, an acceptor that failed. */
static int32_t poll_reason_to_stop(Program *p, const noria_cx *cx) {
  int32_t status = signals_poll(&p->signals, cx);
  if (status == NORIA_READY) {
    console_say("noria-proxy: signal %u: no new connections, %llu open", p->signals.last,
                (unsigned long long)stats_open(&p->proxy.stats));
    if (p->demo_end != NULL) demo_stop(&p->demo);
    return NORIA_READY;
  }
  if (status != NORIA_PENDING) return status;
  noria_join_result why;
  status = proxy_poll_failed(&p->proxy, cx, &why);
  if (status == NORIA_READY) return why.error != NORIA_OK ? why.error : -NORIA_ESHUTDOWN;
  if (status != NORIA_PENDING) return status;
  return p->demo_end != NULL ? noria_future_poll(p->demo_end, cx) : NORIA_PENDING;
}

/* READY when `future` is; one more signal says that it has been long enough. */
static int32_t poll_or_signal(Program *p, noria_future *future, const noria_cx *cx) {
  int32_t status = signals_poll(&p->signals, cx);
  if (status == NORIA_READY) noria_future_cancel(future);
  return noria_future_poll(future, cx);
}

static int32_t run_poll(void *state, const noria_cx *cx) {
  Program *p = state;
  NORIA_BEGIN(&p->frame, cx);
  NORIA_AWAIT(&p->frame, poll_reason_to_stop(p, cx));
  if (p->frame.status != NORIA_OK) p->code = complain("accept", p->frame.status);

  /* The demo's clients end first: they are the connections. */
  if (p->demo_end != NULL) {
    NORIA_AWAIT(&p->frame, poll_or_signal(p, p->demo_end, cx));
    demo_finish(&p->demo);
  }

  noria_now(p->rt, &p->outcome.drain_ns);
  p->frame.status = proxy_drain(&p->proxy, &p->op);
  if (p->frame.status == NORIA_OK) {
    NORIA_AWAIT(&p->frame, poll_or_signal(p, p->op, cx));
    p->frame.status = noria_frame_take_(p->frame.status, &p->op, NULL, 0);
  }
  p->outcome.drained = p->frame.status == NORIA_OK;
  if (status_stop(&p->status, &p->op) == NORIA_OK) {
    NORIA_AWAIT_FUTURE(&p->frame, p->op, NULL, 0);
  }
  noria_now(p->rt, &p->outcome.ended_ns);
  NORIA_END(&p->frame);
}

static const noria_task_vtable run_vtable = {
    .size = sizeof(noria_task_vtable),
    .poll = run_poll,
    .name = "main",
};

/* Everything up to the first connection. */
static int32_t open_all(Program *p) {
  int32_t status = signals_watch(&p->signals, p->rt);
  if (status != NORIA_OK) return complain("signals", status);
  const char *listen = p->options.listen;
  if (p->options.demo) {
    if (listen == NULL) listen = "127.0.0.1:0";
    if (p->options.upstream_count == 0) {
      status = demo_open(&p->demo, p->rt);
      if (status != NORIA_OK) return complain("demo", status);
      p->options.upstreams[p->options.upstream_count++] = p->demo.echo_address;
    }
  }
  status = proxy_open(&p->proxy, &p->options, listen, p->rt);
  if (status != NORIA_OK) return complain(listen, status);
  status = proxy_start(&p->proxy);
  if (status != NORIA_OK) return complain("acceptor", status);
  char address[64] = "";
  noria_address_format(&p->proxy.address, address, sizeof address);
  console_say("noria-proxy: listening on %s", address);
  if (!p->options.quiet) {
    status = status_start(&p->status, &p->proxy, status_period_ns(&p->options));
    if (status != NORIA_OK) return complain("status", status);
  }
  noria_now(p->rt, &p->outcome.began_ns);
  if (p->options.demo) {
    status = demo_start(&p->demo, &p->proxy, p->options.demo_ns);
    if (status == NORIA_OK) status = demo_join(&p->demo, &p->demo_end);
    if (status != NORIA_OK) return complain("demo", status);
  }
  return EXIT_SUCCESS;
}

/* Ends the runtime, which drops every task that is left, and then what the tasks used. */
static void close_all(Program *p) {
  if (p->demo_end != NULL) noria_future_drop(p->demo_end);
  if (p->op != NULL) noria_future_drop(p->op);
  p->outcome.shutdown.size = sizeof p->outcome.shutdown;
  noria_runtime_shutdown(p->rt, SECOND_NS, &p->outcome.shutdown);
  status_close(&p->status);
  proxy_close(&p->proxy);
  demo_close(&p->demo);
  signals_close(&p->signals);
  noria_runtime_release(p->rt);
}

static int run(Program *p) {
  noria_runtime_options options = {
      .size = sizeof options,
      .workers = p->options.workers,
      .name = "proxy",
  };
  int32_t status = noria_runtime_new(&options, &p->rt);
  if (status != NORIA_OK) return complain("runtime", status);
  p->code = open_all(p);
  const bool served = p->code == EXIT_SUCCESS;
  if (served) {
    noria_join_result result;
    status = noria_runtime_block_on(p->rt, &run_vtable, p, &result);
    if (status != NORIA_OK) p->code = complain("main", status);
    p->outcome.metrics.size = sizeof p->outcome.metrics;
    noria_runtime_metrics(p->rt, &p->outcome.metrics);
    noria_tcp_listener_rests(p->proxy.listener, &p->outcome.rests);
  }
  close_all(p);
  console_clear();
  if (!served) return p->code;
  if (p->options.json) {
    report_print_json(&p->proxy, &p->outcome, p->options.demo ? &p->demo : NULL, stdout);
  } else {
    report_print(&p->proxy, &p->outcome, stdout);
    if (p->options.demo) demo_print(&p->demo, stdout);
  }
  if (p->options.demo && !demo_passed(&p->demo)) return EXIT_FAILURE;
  return fflush(stdout) == 0 ? p->code : EXIT_FAILURE;
}

int main(int argc, char **argv) {
  static Program program; /* too large for a stack, and zero at first */
  switch (options_parse(argc, argv, &program.options)) {
    case OPTIONS_RUN:
      break;
    case OPTIONS_DONE:
      return EXIT_SUCCESS;
    case OPTIONS_WRONG:
      return 2;
  }
  console_init(program.options.quiet);
  int32_t status = signals_block(&program.signals);
  if (status != NORIA_OK) return complain("signals", status);
  return run(&program);
}
