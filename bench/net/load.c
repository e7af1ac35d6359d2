/* load.c: noria-load MODE --port P [--connections N] [--bytes B] [--requests R] [--warmup W] [--server-pid PID[,PID...]]
 *
 * The load generator: a process of its own, one thread, plain epoll; every byte that comes back is compared.
 *
 *   echo    closed loop: a connection sends a message of B bytes, and the next once it is back (echo.c)
 *   open    open loop: R messages at --rate N a second in all, whatever comes back; latency counts from when a
 *           message should have been sent. --spin 1: do not sleep in between (open.c)
 *   storm   N at a time connect, send one message, take it back, close (storm.c)
 *   bulk    N streams of B bytes each through a proxy, to a listener of this process, which it prints; the proxy's port
 *           and process ids come on standard input (bulk.c)
 *   idle    N connections that have sent one message each: the memory that the server took for them (idle.c)
 *
 * W operations go before the counting, then R are counted. Prints rate, latency percentiles and the CPU time that
 * server and load took over those R. */
#include "net/load.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

load_state load;

static uint64_t server_cpu_ns(void) {
  uint64_t sum = 0;
  for (size_t i = 0; i < load.server_count; i++) sum += bench_clock_ns(load.server_clocks[i]);
  return sum;
}

void load_count_from_here(void) {
  load.begin_ns = bench_now_ns();
  load.server_cpu_ns = server_cpu_ns();
  load.load_cpu_ns = bench_cpu_ns();
}

/* A client's address: 127.0.0.2 to 127.0.0.251 in turn, for one alone has 28,000 ports, which a minute of TIME_WAIT
 * would use up. */
static void choose_source(int fd) {
  static uint32_t turn;
  struct sockaddr_in address = {.sin_family = AF_INET};
  int on = 1;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + turn++ % 250);
  setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
  BENCH_CHECK(bind(fd, (struct sockaddr*)&address, sizeof address) == 0);
}

int load_connect(bool blocking) {
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons(load.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int on = 1;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | (blocking ? 0 : SOCK_NONBLOCK), 0);
  BENCH_CHECK(fd >= 0);
  choose_source(fd);
  int result = connect(fd, (struct sockaddr*)&address, sizeof address);
  BENCH_CHECK(result == 0 || (!blocking && errno == EINPROGRESS));
  BENCH_CHECK(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0);
  return fd;
}

int load_listen(uint16_t* port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  BENCH_CHECK(fd >= 0 && bind(fd, (struct sockaddr*)&address, size) == 0 && listen(fd, 1024) == 0);
  BENCH_CHECK(getsockname(fd, (struct sockaddr*)&address, &size) == 0);
  *port = ntohs(address.sin_port);
  return fd;
}

void load_watch(int fd, uint32_t events, void* who) {
  struct epoll_event event = {.events = events, .data.ptr = who};
  BENCH_CHECK(epoll_ctl(load.epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0);
}

int load_wait(struct epoll_event* events) {
  int ready = epoll_wait(load.epoll_fd, events, kEvents, kSilenceLimit);
  BENCH_CHECK(ready > 0 || (ready < 0 && errno == EINTR));
  return ready;
}

void load_report(const char* mode, uint64_t operations, const char* operation) {
  double wall_ns = (double)(bench_now_ns() - load.begin_ns);
  double server_ns = (double)(server_cpu_ns() - load.server_cpu_ns);
  double load_ns = (double)(bench_cpu_ns() - load.load_cpu_ns);
  char name[64];
  bench_json_open(mode, "load", 1);
  bench_json_number("connections", (double)load.connections);
  bench_json_number("bytes", (double)load.bytes);
  bench_json_number("requests", (double)load.requests);
  bench_json_number("warmup", (double)load.warmup);
  snprintf(name, sizeof name, "%ss_per_s", operation);
  bench_json_number(name, (double)operations / wall_ns * 1e9);
  snprintf(name, sizeof name, "server_cpu_ns_per_%s", operation);
  bench_json_number(name, server_ns / (double)operations);
  snprintf(name, sizeof name, "load_cpu_ns_per_%s", operation);
  bench_json_number(name, load_ns / (double)operations);
  snprintf(name, sizeof name, "both_cpu_ns_per_%s", operation);
  bench_json_number(name, (server_ns + load_ns) / (double)operations);
}

void load_report_latency(void) {
  bench_json_number("p50_us", (double)histogram_at(&load.latency, 0.50) / 1e3);
  bench_json_number("p99_us", (double)histogram_at(&load.latency, 0.99) / 1e3);
  bench_json_number("p999_us", (double)histogram_at(&load.latency, 0.999) / 1e3);
  bench_json_number("longest_us", (double)load.latency.most / 1e3);
}

/* Without `list`, the CPU time of the server is that of this process, which keeps the figures defined. */
void load_servers(const char* list) {
  char* rest = NULL;
  char words[512];
  snprintf(words, sizeof words, "%s", list);
  load.server_count = 0;
  for (char* word = strtok_r(words, ",\n", &rest); word != NULL; word = strtok_r(NULL, ",\n", &rest)) {
    BENCH_CHECK(load.server_count < kServers);
    load.servers[load.server_count] = (pid_t)strtol(word, NULL, 10);
    BENCH_CHECK(clock_getcpuclockid(load.servers[load.server_count], &load.server_clocks[load.server_count]) == 0);
    load.server_count++;
  }
}

static const char* word_behind(int argc, char** argv, const char* name, const char* fallback) {
  for (int i = 1; i + 1 < argc; i++) {
    if (strcmp(argv[i], name) == 0) return argv[i + 1];
  }
  return fallback;
}

static void prepare(int argc, char** argv) {
  uint64_t random = 88172645463325252u;
  char self[16];
  snprintf(self, sizeof self, "%d", (int)getpid());
  load_servers(word_behind(argc, argv, "--server-pid", self));
  load.port = (uint16_t)bench_argument(argc, argv, "--port", 0);
  load.connections = bench_argument(argc, argv, "--connections", 50);
  load.bytes = bench_argument(argc, argv, "--bytes", 64);
  load.requests = bench_argument(argc, argv, "--requests", 200000);
  load.warmup = bench_argument(argc, argv, "--warmup", load.requests / 10 + 1);
  BENCH_CHECK(load.connections > 0 && load.bytes > 0 && load.requests > 0 && load.warmup > 0);
  bench_raise_files();
  load.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  load.pattern = malloc(kPeriod + kLongest);
  load.buffer = malloc(kLongest);
  BENCH_CHECK(load.epoll_fd >= 0 && load.pattern != NULL && load.buffer != NULL);
  for (size_t i = 0; i < kPeriod; i++) load.pattern[i] = (char)(bench_random(&random) >> 32);
  memcpy(load.pattern + kPeriod, load.pattern, kLongest);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  prepare(argc, argv);
  if (strcmp(mode, "echo") == 0) return echo_closed_loop();
  if (strcmp(mode, "open") == 0) {
    double rate = (double)bench_argument(argc, argv, "--rate", 1000);
    return echo_open_loop(rate, bench_argument(argc, argv, "--spin", 0) != 0);
  }
  if (strcmp(mode, "storm") == 0) return accept_storm();
  if (strcmp(mode, "bulk") == 0) return proxy_bulk();
  if (strcmp(mode, "idle") == 0) return idle_connections();
  fprintf(stderr, "usage: noria-load (echo | open | storm | bulk | idle) --port P [...]\n");
  return 2;
}
