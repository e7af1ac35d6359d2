/* load.h: what the modes of noria-load share: the pattern, the clocks of the server, connecting, the report. */
#ifndef NORIA_BENCH_LOAD_H
#define NORIA_BENCH_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/types.h>

#include "common/bench.h"
#include "net/histogram.h"

enum {
  kEvents = 256,
  kPeriod = 1048573,     /* of the pattern: a prime, so that a shift by a page or a buffer never fits */
  kLongest = 256 * 1024, /* piece of the pattern that lies in one */
  kServers = 16,         /* processes whose CPU time is added up */
  kSilenceLimit = 10000, /* ms without an event: a message was lost */
};

typedef struct load_state {
  uint64_t connections, bytes, requests, warmup;
  uint16_t port;
  int epoll_fd;
  pid_t servers[kServers];
  clockid_t server_clocks[kServers];
  size_t server_count;
  char* pattern;
  char* buffer; /* kLongest bytes */
  uint64_t begin_ns, server_cpu_ns, load_cpu_ns;
  histogram latency; /* of the requests that count */
} load_state;

extern load_state load;

/* The pattern from `place` on; kLongest bytes of it lie behind the result. */
static inline const char* load_pattern(uint64_t place) { return load.pattern + place % kPeriod; }

/* Whether the buffer's first `count` bytes are those of the pattern from `place` on. */
static inline bool load_matches(uint64_t place, size_t count) {
  return memcmp(load.buffer, load_pattern(place), count) == 0;
}

/* Names the processes whose CPU time counts: their ids, with commas. */
void load_servers(const char* list);
/* What is measured begins here. */
void load_count_from_here(void);

/* A socket that is connected to the port, or, if not `blocking`, on its way there. */
int load_connect(bool blocking);
/* A listener of our own at a free port, for what comes out of a proxy. */
int load_listen(uint16_t* port);
void load_watch(int fd, uint32_t events, void* who);
/* Waits for events and returns how many there are; kSilenceLimit without one is a failure. */
int load_wait(struct epoll_event* events);

/* Opens the report: what was asked for, and the CPU time of server and load an operation of `operations`. */
void load_report(const char* mode, uint64_t operations, const char* operation);
void load_report_latency(void);

/* The modes. */
int echo_closed_loop(void);
int echo_open_loop(double rate, bool spin);
int accept_storm(void);
int proxy_bulk(void);
int idle_connections(void);

#endif
