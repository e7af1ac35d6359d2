/* storm.c: connect, one message there and back, close; so many at a time.
 *
 * The client closes first, by a half-close, and waits for the server's end of stream: then the server has let the
 * connection go, and what it counted is complete. Latency is that of the answer, from the begin of the connect. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/load.h"

typedef struct slot {
  int fd;
  uint32_t place;
  size_t sent, received;
  uint64_t begin_ns;
} slot;

static uint64_t begun, done;

static void next_connection(slot* s) {
  if (begun == load.warmup + load.requests) return;
  begun++;
  s->place = (uint32_t)(begun * 40503u);
  s->sent = s->received = 0;
  s->begin_ns = bench_now_ns();
  s->fd = load_connect(false);
  load_watch(s->fd, EPOLLIN | EPOLLOUT | EPOLLET, s);
}

static void send_rest(slot* s) {
  while (s->sent < load.bytes) {
    ssize_t count = send(s->fd, load_pattern(s->place) + s->sent, load.bytes - s->sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EAGAIN) return;
    BENCH_CHECK(count > 0);
    s->sent += (size_t)count;
  }
}

static void finish(slot* s) {
  close(s->fd);
  done++;
  if (done == load.warmup) load_count_from_here();
  next_connection(s);
}

static void receive(slot* s) {
  for (;;) {
    ssize_t count = recv(s->fd, load.buffer, kLongest, 0);
    if (count < 0 && errno == EAGAIN) return;
    BENCH_CHECK(count >= 0);
    if (count == 0) {
      BENCH_CHECK(s->received == load.bytes);
      finish(s);
      return;
    }
    BENCH_CHECK(s->received + (size_t)count <= load.bytes);
    BENCH_CHECK(load_matches(s->place % kPeriod + s->received, (size_t)count));
    s->received += (size_t)count;
    if (s->received < load.bytes) continue;
    if (done >= load.warmup) histogram_add(&load.latency, bench_now_ns() - s->begin_ns);
    BENCH_CHECK(shutdown(s->fd, SHUT_WR) == 0);
    return;
  }
}

int accept_storm(void) {
  struct epoll_event events[kEvents];
  BENCH_CHECK(load.bytes <= kLongest);
  slot* slots = calloc(load.connections, sizeof *slots);
  BENCH_CHECK(slots != NULL);
  for (uint64_t i = 0; i < load.connections; i++) next_connection(&slots[i]);
  while (done < load.warmup + load.requests) {
    int ready = load_wait(events);
    for (int i = 0; i < ready; i++) {
      slot* s = events[i].data.ptr;
      if (events[i].events & EPOLLOUT) send_rest(s);
      if (events[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP)) receive(s);
    }
  }
  load_report("storm", load.requests, "connection");
  load_report_latency();
  bench_json_close();
  free(slots);
  return 0;
}
