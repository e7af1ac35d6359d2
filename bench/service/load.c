/* load.c: service-load --port P [--connections N] [--rate R] [--seconds S] [--burn inline|pool|none] [--burn-every K]
 * [--burn-us U] [--server-pid PID]
 *
 * The load of stuck_poll and busy_neighbour: its own process, one thread, an open loop. Message i is due i / R seconds after the
 * start and goes over connection i % N, whatever became of those before it; its latency counts from when it was due. Every
 * Kth asks for a burn of U microseconds and is left out of the latencies. Every byte that comes back is checked. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/bench.h"

enum { kMessageBytes = 64, kEvents = 256, kEcho = 0, kBurnInline = 1, kBurnOnPool = 2, kNone = 3, kSilenceMs = 10000 };

typedef struct connection {
  int fd;
  uint64_t sent;     /* messages */
  uint64_t received; /* messages */
  size_t part;       /* bytes of the next one that came back */
  unsigned char buffer[kMessageBytes];
} connection;

static struct {
  uint64_t count, rate, messages, burn_every, burn_us;
  unsigned char burn;
  int epoll_fd;
  uint64_t begin_ns, done, plain;
  uint64_t* latency_ns;
  connection* connections;
} load;

static uint64_t due_ns(uint64_t index) { return load.begin_ns + index * 1000000000u / load.rate; }

static int burns(uint64_t index) { return load.burn != kNone && index % load.burn_every == 0; }

/* The message with this index: what it asks for, then bytes that depend on the index. */
static void compose(uint64_t index, unsigned char* out) {
  uint32_t us = (uint32_t)load.burn_us;
  uint64_t random = bench_mix(index);
  for (size_t i = 8; i < kMessageBytes; i++) out[i] = (unsigned char)(random >> (i % 8 * 8));
  memset(out, 0, 8);
  if (!burns(index)) return;
  out[0] = load.burn;
  for (size_t i = 0; i < 4; i++) out[4 + i] = (unsigned char)(us >> (i * 8));
}

static void send_message(uint64_t index) {
  connection* c = &load.connections[index % load.count];
  unsigned char message[kMessageBytes];
  compose(index, message);
  BENCH_CHECK(send(c->fd, message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT) == kMessageBytes);
  c->sent++;
}

static void receive(connection* c, uint64_t place) {
  unsigned char expected[kMessageBytes];
  for (;;) {
    ssize_t count = recv(c->fd, c->buffer + c->part, kMessageBytes - c->part, MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN) return;
    BENCH_CHECK(count > 0); /* the server must not close */
    c->part += (size_t)count;
    if (c->part < kMessageBytes) continue;
    uint64_t index = c->received * load.count + place;
    compose(index, expected);
    BENCH_CHECK(c->received < c->sent && memcmp(c->buffer, expected, kMessageBytes) == 0);
    if (!burns(index)) load.latency_ns[load.plain++] = bench_now_ns() - due_ns(index);
    c->received++;
    c->part = 0;
    load.done++;
  }
}

static int by_value(const void* a, const void* b) {
  uint64_t x = *(const uint64_t*)a, y = *(const uint64_t*)b;
  return (x > y) - (x < y);
}

static double percentile_us(double share) {
  uint64_t index = (uint64_t)((double)load.plain * share);
  return (double)load.latency_ns[index < load.plain ? index : load.plain - 1] / 1e3;
}

static void connect_all(uint16_t port) {
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  for (uint64_t i = 0; i < load.count; i++) {
    connection* c = &load.connections[i];
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = i};
    int on = 1;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    BENCH_CHECK(c->fd >= 0 && connect(c->fd, (struct sockaddr*)&address, sizeof address) == 0);
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    BENCH_CHECK(epoll_ctl(load.epoll_fd, EPOLL_CTL_ADD, c->fd, &event) == 0);
  }
}

/* Waits for answers until `until_ns`. */
static void answers(uint64_t until_ns) {
  struct epoll_event events[kEvents];
  uint64_t now_ns = bench_now_ns(), wait_ns = until_ns > now_ns ? until_ns - now_ns : 0;
  struct timespec wait = {(time_t)(wait_ns / 1000000000), (long)(wait_ns % 1000000000)};
  int ready = epoll_pwait2(load.epoll_fd, events, kEvents, &wait, NULL);
  BENCH_CHECK(ready >= 0 || errno == EINTR);
  for (int i = 0; i < ready; i++) receive(&load.connections[events[i].data.u64], events[i].data.u64);
}

static void run(void) {
  uint64_t next = 0;
  load.begin_ns = bench_now_ns() + 50000000;
  while (next < load.messages) {
    while (next < load.messages && due_ns(next) <= bench_now_ns()) send_message(next++);
    answers(next < load.messages ? due_ns(next) : 0);
  }
  for (uint64_t done = 0, silent_ns = 0; load.done < load.messages; answers(bench_now_ns() + 10000000)) {
    if (load.done != done || silent_ns == 0) silent_ns = bench_now_ns() + (uint64_t)kSilenceMs * 1000000;
    done = load.done;
    BENCH_CHECK(bench_now_ns() < silent_ns); /* a lost message */
  }
}

static unsigned char burn_kind(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i++) {
    if (strcmp(argv[i], "--burn") != 0) continue;
    if (strcmp(argv[i + 1], "inline") == 0) return kBurnInline;
    if (strcmp(argv[i + 1], "pool") == 0) return kBurnOnPool;
  }
  return kNone;
}

static void report(uint64_t wall_ns, uint64_t server_cpu_ns) {
  qsort(load.latency_ns, load.plain, sizeof *load.latency_ns, by_value);
  bench_json_open("service", "load", 1);
  bench_json_number("messages", (double)load.done);
  bench_json_number("p50_us", percentile_us(0.5));
  bench_json_number("p99_us", percentile_us(0.99));
  bench_json_number("p999_us", percentile_us(0.999));
  bench_json_number("io_max_us", percentile_us(1));
  bench_json_number("requests_per_s", (double)load.done / (double)wall_ns * 1e9);
  bench_json_number("server_cpu_ns_per_request", (double)server_cpu_ns / (double)load.done);
  bench_json_close();
}

int main(int argc, char** argv) {
  clockid_t server_clock;
  pid_t server = (pid_t)bench_argument(argc, argv, "--server-pid", (uint64_t)getpid());
  load.count = bench_argument(argc, argv, "--connections", 100);
  load.rate = bench_argument(argc, argv, "--rate", 1000);
  load.messages = load.rate * bench_argument(argc, argv, "--seconds", 3);
  load.burn_every = bench_argument(argc, argv, "--burn-every", 100);
  load.burn_us = bench_argument(argc, argv, "--burn-us", 5000);
  load.burn = burn_kind(argc, argv);
  load.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  load.connections = calloc(load.count, sizeof *load.connections);
  load.latency_ns = calloc(load.messages, sizeof *load.latency_ns);
  BENCH_CHECK(load.count > 0 && load.rate > 0 && load.burn_every > 0 && load.messages > 0 && load.epoll_fd >= 0);
  BENCH_CHECK(load.connections != NULL && load.latency_ns != NULL);
  BENCH_CHECK(clock_getcpuclockid(server, &server_clock) == 0);
  connect_all((uint16_t)bench_argument(argc, argv, "--port", 0));
  uint64_t server_ns = bench_clock_ns(server_clock);
  run();
  report(bench_now_ns() - load.begin_ns, bench_clock_ns(server_clock) - server_ns);
  return 0;
}
