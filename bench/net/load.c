/* load.c: noria-load --port P [--connections N] [--bytes B] [--requests R] [--warmup W]
 * [--server-pid PID]
 *
 * The load generator for echo servers: its own process, one thread, plain epoll, closed loop: each
 * connection sends a message of B bytes and, once all of it has come back and every byte is right,
 * the next. W requests go before the counting, then R are counted. Prints requests/s, latency
 * percentiles and the CPU time that server and load took over those R requests. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/bench.h"

enum { kEvents = 256, kPatternBytes = 1 << 20, kBuckets = 64 * 32 };

typedef struct connection {
  int fd;
  uint32_t sequence; /* counts its messages; chooses which part of the pattern is sent */
  size_t sent;
  size_t received;
  uint64_t begin_ns;
} connection;

static struct {
  size_t bytes;
  uint64_t requests, warmup, begun, done;
  int epoll_fd;
  clockid_t server_clock;
  uint64_t begin_ns, server_cpu_ns, load_cpu_ns;
  char* pattern;
  char* buffer;
  uint64_t histogram[kBuckets]; /* bucket: 32 steps a power of two, 3 % wide */
} load;

static size_t bucket_of(uint64_t ns) {
  if (ns < 32) return (size_t)ns;
  unsigned log = 63u - (unsigned)__builtin_clzll(ns);
  return (size_t)(log - 4) * 32 + (size_t)((ns >> (log - 5)) & 31);
}

static uint64_t bucket_floor(size_t bucket) {
  if (bucket < 32) return bucket;
  unsigned log = (unsigned)(bucket / 32) + 4;
  return (1ull << log) + ((uint64_t)(bucket % 32) << (log - 5));
}

static double percentile_us(double share) {
  uint64_t wanted = (uint64_t)((double)load.requests * share), seen = 0;
  for (size_t i = 0; i < kBuckets; i++) {
    seen += load.histogram[i];
    if (seen > wanted) return (double)bucket_floor(i) / 1e3;
  }
  return 0;
}

static const char* message(const connection* c) {
  uint64_t place = (uint64_t)c->sequence * 40503u + (uint64_t)c->fd * 1299721u;
  return load.pattern + place % (kPatternBytes - load.bytes + 1);
}

static void count_from_here(void) {
  load.begin_ns = bench_now_ns();
  load.server_cpu_ns = bench_clock_ns(load.server_clock);
  load.load_cpu_ns = bench_cpu_ns();
}

static void send_rest(connection* c) {
  while (c->sequence > 0 && c->sent < load.bytes) {
    ssize_t count = send(c->fd, message(c) + c->sent, load.bytes - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN) return;
    BENCH_CHECK(count > 0);
    c->sent += (size_t)count;
  }
}

static void send_next(connection* c) {
  if (load.begun == load.warmup + load.requests) return;
  load.begun++;
  c->sequence++;
  c->sent = c->received = 0;
  c->begin_ns = bench_now_ns();
  send_rest(c);
}

static void finish_request(connection* c) {
  load.done++;
  if (load.done == load.warmup) count_from_here();
  if (load.done > load.warmup) load.histogram[bucket_of(bench_now_ns() - c->begin_ns)]++;
  send_next(c);
}

static void receive(connection* c) {
  while (c->received < load.bytes) {
    ssize_t count = recv(c->fd, load.buffer, load.bytes - c->received, MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN) return;
    BENCH_CHECK(count > 0); /* the server must not close */
    BENCH_CHECK(memcmp(load.buffer, message(c) + c->received, (size_t)count) == 0);
    c->received += (size_t)count;
    if (c->received == load.bytes) {
      finish_request(c);
      return;
    }
  }
}

static void connect_to(connection* c, uint16_t port) {
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};
  int on = 1;
  c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  BENCH_CHECK(c->fd >= 0 && connect(c->fd, (struct sockaddr*)&address, sizeof address) == 0);
  setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  BENCH_CHECK(epoll_ctl(load.epoll_fd, EPOLL_CTL_ADD, c->fd, &event) == 0);
}

static void report(uint64_t connections) {
  double wall_ns = (double)(bench_now_ns() - load.begin_ns);
  double server_ns = (double)(bench_clock_ns(load.server_clock) - load.server_cpu_ns);
  double load_ns = (double)(bench_cpu_ns() - load.load_cpu_ns);
  bench_json_open("echo", "load", 1);
  bench_json_number("connections", (double)connections);
  bench_json_number("bytes", (double)load.bytes);
  bench_json_number("requests", (double)load.requests);
  bench_json_number("warmup", (double)load.warmup);
  bench_json_number("requests_per_s", (double)load.requests / wall_ns * 1e9);
  bench_json_number("p50_us", percentile_us(0.50));
  bench_json_number("p99_us", percentile_us(0.99));
  bench_json_number("p999_us", percentile_us(0.999));
  bench_json_number("server_cpu_ns_per_request", server_ns / (double)load.requests);
  bench_json_number("load_cpu_ns_per_request", load_ns / (double)load.requests);
  bench_json_close();
}

static void prepare(int argc, char** argv) {
  uint64_t random = 88172645463325252u;
  pid_t server = (pid_t)bench_argument(argc, argv, "--server-pid", (uint64_t)getpid());
  load.bytes = (size_t)bench_argument(argc, argv, "--bytes", 64);
  load.requests = bench_argument(argc, argv, "--requests", 200000);
  load.warmup = bench_argument(argc, argv, "--warmup", load.requests / 10 + 1);
  BENCH_CHECK(load.bytes > 0 && load.bytes <= kPatternBytes / 2 && load.warmup > 0);
  BENCH_CHECK(clock_getcpuclockid(server, &load.server_clock) == 0);
  load.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  load.pattern = malloc(kPatternBytes);
  load.buffer = malloc(load.bytes);
  BENCH_CHECK(load.epoll_fd >= 0 && load.pattern != NULL && load.buffer != NULL);
  for (size_t i = 0; i < kPatternBytes; i++) load.pattern[i] = (char)(bench_random(&random) >> 32);
}

/* Half-closes each connection and waits for the server's end of stream, so that the server has counted all. */
static void hang_up(const connection* connections, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) BENCH_CHECK(shutdown(connections[i].fd, SHUT_WR) == 0);
  for (uint64_t i = 0; i < count; i++) {
    BENCH_CHECK(recv(connections[i].fd, load.buffer, 1, 0) == 0);
    close(connections[i].fd);
  }
}

int main(int argc, char** argv) {
  uint64_t count = bench_argument(argc, argv, "--connections", 50);
  uint16_t port = (uint16_t)bench_argument(argc, argv, "--port", 0);
  struct epoll_event events[kEvents];
  prepare(argc, argv);
  connection* connections = calloc(count, sizeof *connections);
  BENCH_CHECK(connections != NULL && count > 0);
  for (uint64_t i = 0; i < count; i++) connect_to(&connections[i], port);
  for (uint64_t i = 0; i < count; i++) send_next(&connections[i]);
  while (load.done < load.warmup + load.requests) {
    int ready = epoll_wait(load.epoll_fd, events, kEvents, 10000);
    BENCH_CHECK(ready > 0 || (ready < 0 && errno == EINTR)); /* ten seconds of silence: a lost message */
    for (int i = 0; i < ready; i++) {
      connection* c = events[i].data.ptr;
      if (events[i].events & EPOLLOUT) send_rest(c);
      if (events[i].events & EPOLLIN) receive(c);
    }
  }
  report(count);
  hang_up(connections, count);
  return 0;
}
