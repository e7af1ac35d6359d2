/* echo.c: echo connections, and the closed loop. */
#include "net/echo.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

static uint64_t done;

static uint64_t place_of(const echo_connection* c) {
  return (uint64_t)c->sequence * 40503u + (uint64_t)c->fd * 1299721u;
}

echo_connection* echo_connect_all(void) {
  BENCH_CHECK(load.bytes <= kLongest);
  echo_connection* connections = calloc(load.connections, sizeof *connections);
  BENCH_CHECK(connections != NULL);
  for (uint64_t i = 0; i < load.connections; i++) {
    connections[i].fd = load_connect(true);
    load_watch(connections[i].fd, EPOLLIN | EPOLLOUT | EPOLLET, &connections[i]);
  }
  return connections;
}

static void send_rest(echo_connection* c) {
  while (c->sent < load.bytes) {
    ssize_t count = send(c->fd, load_pattern(place_of(c)) + c->sent, load.bytes - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN) return;
    BENCH_CHECK(count > 0);
    c->sent += (size_t)count;
  }
}

void echo_send(echo_connection* c, uint64_t begin_ns) {
  c->sequence++;
  c->sent = c->received = 0;
  c->begin_ns = begin_ns;
  c->out = true;
  send_rest(c);
}

bool echo_progress(echo_connection* c, uint32_t events) {
  if (c->out && (events & EPOLLOUT)) send_rest(c);
  while (c->out && (events & EPOLLIN)) {
    ssize_t count = recv(c->fd, load.buffer, load.bytes - c->received, MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN) return false;
    BENCH_CHECK(count > 0); /* the server must not close */
    BENCH_CHECK(load_matches(place_of(c) % kPeriod + c->received, (size_t)count));
    c->received += (size_t)count;
    c->out = c->received < load.bytes;
    if (!c->out) return true;
  }
  return false;
}

void echo_finish(echo_connection* c) {
  done++;
  if (done > load.warmup) histogram_add(&load.latency, bench_now_ns() - c->begin_ns);
  if (done == load.warmup) load_count_from_here();
}

uint64_t echo_finished(void) { return done; }

void echo_hang_up(echo_connection* connections) {
  struct timeval patience = {kSilenceLimit / 1000, 0};
  for (uint64_t i = 0; i < load.connections; i++) BENCH_CHECK(shutdown(connections[i].fd, SHUT_WR) == 0);
  for (uint64_t i = 0; i < load.connections; i++) {
    BENCH_CHECK(setsockopt(connections[i].fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0);
    BENCH_CHECK(recv(connections[i].fd, load.buffer, 1, 0) == 0);
    close(connections[i].fd);
  }
  free(connections);
}

int echo_closed_loop(void) {
  struct epoll_event events[kEvents];
  uint64_t begun = 0, wanted = load.warmup + load.requests;
  echo_connection* connections = echo_connect_all();
  for (uint64_t i = 0; i < load.connections && begun < wanted; i++, begun++) {
    echo_send(&connections[i], bench_now_ns());
  }
  while (done < wanted) {
    int ready = load_wait(events);
    for (int i = 0; i < ready; i++) {
      echo_connection* c = events[i].data.ptr;
      if (!echo_progress(c, events[i].events)) continue;
      echo_finish(c);
      if (begun == wanted) continue;
      begun++;
      echo_send(c, bench_now_ns());
    }
  }
  load_report("echo", load.requests, "request");
  load_report_latency();
  bench_json_close();
  echo_hang_up(connections);
  return 0;
}
