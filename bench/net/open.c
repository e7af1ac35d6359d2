/* open.c: the open loop: messages leave by a schedule, whatever comes back.
 *
 * Message k is due k / rate seconds after the start, on connection k % N. A connection has one message out at a time, as
 * a client has that waits for its answer: one that is due meanwhile leaves when the one before is back. Latency
 * counts from when a message was due, so that a server that stalls is charged for all that had to wait. */
#include <errno.h>
#include <sys/prctl.h>

#include "net/echo.h"

static struct {
  double interval_ns;
  uint64_t start_ns, wanted, due; /* due: messages whose time has come */
  histogram lateness;             /* of the load itself: sent so long after it was due, nothing being out */
} schedule;

static uint64_t time_of(uint64_t message) {
  return schedule.start_ns + (uint64_t)((double)message * schedule.interval_ns);
}

/* When the connection's message after those it has sent was due. */
static uint64_t next_time_of(const echo_connection* connections, const echo_connection* c) {
  return time_of((uint64_t)c->sequence * load.connections + (uint64_t)(c - connections));
}

static void send_due(echo_connection* connections) {
  uint64_t now_ns = bench_now_ns();
  while (schedule.due < schedule.wanted && time_of(schedule.due) <= now_ns) {
    echo_connection* c = &connections[schedule.due % load.connections];
    if (c->out) {
      c->backlog++;
    } else {
      histogram_add(&schedule.lateness, now_ns - time_of(schedule.due));
      echo_send(c, time_of(schedule.due));
    }
    schedule.due++;
    now_ns = bench_now_ns();
  }
}

static int wait_for_events(struct epoll_event* events, bool spin) {
  struct timespec pause = {kSilenceLimit / 1000, 0};
  uint64_t now_ns = bench_now_ns();
  if (schedule.due < schedule.wanted) {
    uint64_t next_ns = time_of(schedule.due);
    uint64_t left_ns = next_ns > now_ns && !spin ? next_ns - now_ns : 0;
    pause = (struct timespec){(time_t)(left_ns / 1000000000u), (long)(left_ns % 1000000000u)};
  }
  int ready = epoll_pwait2(load.epoll_fd, events, kEvents, &pause, NULL);
  BENCH_CHECK(ready >= 0 || errno == EINTR);
  BENCH_CHECK(ready != 0 || schedule.due < schedule.wanted); /* all are sent, and one does not come back */
  return ready;
}

int echo_open_loop(double rate, bool spin) {
  struct epoll_event events[kEvents];
  prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul);
  echo_connection* connections = echo_connect_all();
  schedule.interval_ns = 1e9 / rate;
  schedule.wanted = load.warmup + load.requests;
  schedule.start_ns = bench_now_ns();
  while (echo_finished() < schedule.wanted) {
    send_due(connections);
    int ready = wait_for_events(events, spin);
    for (int i = 0; i < ready; i++) {
      echo_connection* c = events[i].data.ptr;
      if (!echo_progress(c, events[i].events)) continue;
      echo_finish(c);
      if (c->backlog == 0) continue;
      c->backlog--;
      echo_send(c, next_time_of(connections, c));
    }
  }
  load_report("open", load.requests, "request");
  load_report_latency();
  bench_json_number("rate", rate);
  bench_json_number("load_late_p99_us", (double)histogram_at(&schedule.lateness, 0.99) / 1e3);
  bench_json_close();
  echo_hang_up(connections);
  return 0;
}
