/* bulk.c: streams through a proxy, both of whose ends are in this process.
 *
 * Prints the port that the proxy is to connect to, and reads the proxy's port and process ids, as "PORT PID[,PID...]". A
 * client connects to the proxy and sends its number, by which the accepted end knows which stream it is of. Streams with
 * an even number go up, from the client, the others down. The sender half-closes behind the last byte, and the
 * receiver must find every byte in its place and then the end. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/load.h"

typedef struct stream stream;

/* One of a stream's two sockets. */
typedef struct end {
  int fd;
  stream* of; /* NULL: accepted, its number not yet here */
  bool sends;
} end;

struct stream {
  uint32_t number;
  uint64_t sent, received;
  end client, accepted;
};

static struct {
  stream* streams;
  uint64_t finished, total, counted_from; /* bytes received in all, and when the counting began */
  end listener;
} bulk;

static uint64_t place_of(const stream* s, uint64_t offset) { return (uint64_t)s->number * 1299721u + offset; }

static void watch_anew(end* e, uint32_t events) {
  struct epoll_event event = {.events = events, .data.ptr = e};
  BENCH_CHECK(epoll_ctl(load.epoll_fd, EPOLL_CTL_MOD, e->fd, &event) == 0);
}

static void start_stream(stream* s, uint32_t number) {
  s->number = number;
  s->client = (end){load_connect(true), s, number % 2 == 0};
  BENCH_CHECK(send(s->client.fd, &number, sizeof number, MSG_NOSIGNAL) == sizeof number);
  load_watch(s->client.fd, s->client.sends ? EPOLLOUT : EPOLLIN, &s->client);
}

/* The accepted end, whose number has not come yet. */
static void accept_all(void) {
  int fd;
  while ((fd = accept4(bulk.listener.fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
    end* e = calloc(1, sizeof *e);
    BENCH_CHECK(e != NULL);
    e->fd = fd;
    load_watch(fd, EPOLLIN, e);
  }
}

static void learn_stream(end* e) {
  uint32_t number;
  BENCH_CHECK(recv(e->fd, &number, sizeof number, MSG_WAITALL) == sizeof number && number < load.connections);
  stream* s = &bulk.streams[number];
  BENCH_CHECK(s->accepted.of == NULL); /* a number comes once */
  s->accepted = (end){e->fd, s, number % 2 == 1};
  watch_anew(&s->accepted, s->accepted.sends ? EPOLLOUT : EPOLLIN);
  free(e);
}

static void send_piece(end* e) {
  stream* s = e->of;
  uint64_t left = load.bytes - s->sent;
  size_t size = left < kLongest ? (size_t)left : kLongest;
  ssize_t count = send(e->fd, load_pattern(place_of(s, s->sent)), size, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count < 0 && errno == EAGAIN) return;
  BENCH_CHECK(count > 0);
  s->sent += (uint64_t)count;
  if (s->sent < load.bytes) return;
  BENCH_CHECK(epoll_ctl(load.epoll_fd, EPOLL_CTL_DEL, e->fd, NULL) == 0); /* or its end would be an event */
  BENCH_CHECK(shutdown(e->fd, SHUT_WR) == 0);
}

/* Begins the counting when the warm-up's bytes are through. */
static void count_bytes(uint64_t bytes) {
  bulk.total += bytes;
  if (bulk.counted_from > 0 || bulk.total < load.warmup) return;
  bulk.counted_from = bulk.total;
  load_count_from_here();
}

static void receive_piece(end* e) {
  stream* s = e->of;
  ssize_t count = recv(e->fd, load.buffer, kLongest, MSG_DONTWAIT);
  if (count < 0 && errno == EAGAIN) return;
  BENCH_CHECK(count >= 0);
  if (count == 0) {
    BENCH_CHECK(s->received == load.bytes);
    close(s->client.fd);
    close(s->accepted.fd);
    bulk.finished++;
    return;
  }
  BENCH_CHECK(s->received + (uint64_t)count <= load.bytes);
  BENCH_CHECK(load_matches(place_of(s, s->received), (size_t)count));
  s->received += (uint64_t)count;
  count_bytes((uint64_t)count);
}

static void handle(end* e) {
  if (e == &bulk.listener) {
    accept_all();
  } else if (e->of == NULL) {
    learn_stream(e);
  } else if (e->sends) {
    send_piece(e);
  } else {
    receive_piece(e);
  }
}

static void meet_proxy(void) {
  uint16_t port;
  char pids[512];
  bulk.listener.fd = load_listen(&port);
  load_watch(bulk.listener.fd, EPOLLIN, &bulk.listener);
  printf("port %u\n", port);
  fflush(stdout);
  BENCH_CHECK(scanf("%hu %511s", &load.port, pids) == 2);
  load_servers(pids);
}

int proxy_bulk(void) {
  struct epoll_event events[kEvents];
  meet_proxy();
  load.requests = load.connections * load.bytes;
  load.warmup = load.requests / 10 + 1;
  bulk.streams = calloc(load.connections, sizeof *bulk.streams);
  BENCH_CHECK(bulk.streams != NULL);
  for (uint32_t i = 0; i < load.connections; i++) start_stream(&bulk.streams[i], i);
  while (bulk.finished < load.connections) {
    int ready = load_wait(events);
    for (int i = 0; i < ready; i++) handle(events[i].data.ptr);
  }
  BENCH_CHECK(bulk.total == load.requests);
  load_report("bulk", (bulk.total - bulk.counted_from) >> 20, "mib");
  bench_json_close();
  free(bulk.streams);
  return 0;
}
