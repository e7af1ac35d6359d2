/* idle.c: what an idle connection costs the server in resident memory.
 *
 * One connection goes before, so that what a server makes once is there. Then N connect, each sends one message and
 * takes it back, and the server's growth is divided by N. Each sends another in the end: they were all alive. */
#include <sys/socket.h>
#include <unistd.h>

#include "net/load.h"

static uint64_t resident_bytes(void) {
  uint64_t sum = 0;
  for (size_t i = 0; i < load.server_count; i++) {
    char path[64];
    unsigned long long size, resident;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)load.servers[i]);
    FILE* file = fopen(path, "r");
    BENCH_CHECK(file != NULL && fscanf(file, "%llu %llu", &size, &resident) == 2);
    fclose(file);
    sum += resident * (uint64_t)sysconf(_SC_PAGESIZE);
  }
  return sum;
}

/* Whose answers fail to come within kSilenceLimit is a failure. */
static int connect_patiently(void) {
  struct timeval patience = {kSilenceLimit / 1000, 0};
  int fd = load_connect(true);
  BENCH_CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0);
  return fd;
}

static void round_trip(int fd, uint64_t place) {
  BENCH_CHECK(send(fd, load_pattern(place), load.bytes, MSG_NOSIGNAL) == (ssize_t)load.bytes);
  BENCH_CHECK(recv(fd, load.buffer, load.bytes, MSG_WAITALL) == (ssize_t)load.bytes);
  BENCH_CHECK(load_matches(place, load.bytes));
}

/* The server has seen the end of the connection when its own comes. */
static void hang_up(int fd) {
  BENCH_CHECK(shutdown(fd, SHUT_WR) == 0);
  BENCH_CHECK(recv(fd, load.buffer, 1, 0) == 0);
  close(fd);
}

/* A server that frees or shrinks something when it has nothing to do gets time to. */
static void rest(void) { nanosleep(&(struct timespec){0, 200000000}, NULL); }

int idle_connections(void) {
  int* sockets = calloc(load.connections, sizeof *sockets);
  BENCH_CHECK(sockets != NULL && load.bytes <= kLongest);
  int first = connect_patiently();
  round_trip(first, 0);
  hang_up(first);
  rest();
  uint64_t before = resident_bytes();
  load_count_from_here();
  for (uint64_t i = 0; i < load.connections; i++) {
    sockets[i] = connect_patiently();
    round_trip(sockets[i], i * 40503u);
  }
  rest();
  uint64_t after = resident_bytes();
  for (uint64_t i = 0; i < load.connections; i++) round_trip(sockets[i], i * 1299721u);
  load.warmup = 1;
  load.requests = 2 * load.connections;
  load_report("idle", load.connections, "connection");
  bench_json_number("bytes_per_connection", ((double)after - (double)before) / (double)load.connections);
  bench_json_number("resident_bytes", (double)after);
  bench_json_close();
  for (uint64_t i = 0; i < load.connections; i++) hang_up(sockets[i]);
  free(sockets);
  return 0;
}
