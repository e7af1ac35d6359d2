/* bench.h: what every benchmark program shares: clocks, arguments, random numbers, the JSON line.
 */
#ifndef NORIA_BENCH_H
#define NORIA_BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/* A benchmark that counted wrongly has no figure: it stops. */
#define BENCH_CHECK(condition)                                                      \
  do {                                                                              \
    if (!(condition)) {                                                             \
      fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      abort();                                                                      \
    }                                                                               \
  } while (0)

static inline uint64_t bench_clock_ns(clockid_t clock) {
  struct timespec t;
  if (clock_gettime(clock, &t) != 0) return 0;
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t bench_now_ns(void) { return bench_clock_ns(CLOCK_MONOTONIC); }

/* CPU time of this process, all threads, user and kernel. */
static inline uint64_t bench_cpu_ns(void) { return bench_clock_ns(CLOCK_PROCESS_CPUTIME_ID); }

/* xorshift64: the same numbers in every contender. */
static inline uint64_t bench_random(uint64_t* state) {
  uint64_t x = *state;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return *state = x;
}

/* The finaliser of splitmix64: what a task does where it is to do some work, and what shapes uneven_tree. */
static inline uint64_t bench_mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

static inline uint64_t bench_work(uint64_t x, uint64_t hashes) {
  for (uint64_t i = 0; i < hashes; i++) x = bench_mix(x);
  return x;
}

/* Keeps the CPU busy until so much time has passed. */
static inline void bench_burn_ns(uint64_t duration_ns) {
  uint64_t end_ns = bench_now_ns() + duration_ns;
  while (bench_now_ns() < end_ns) {
  }
}

/* The number behind `name` on the command line, or `fallback`. */
static inline uint64_t bench_argument(int argc, char** argv, const char* name, uint64_t fallback) {
  for (int i = 1; i + 1 < argc; i++) {
    if (strcmp(argv[i], name) == 0) return strtoull(argv[i + 1], NULL, 10);
  }
  return fallback;
}

/* As many descriptors as the system lets this process have. */
static inline void bench_raise_files(void) {
  struct rlimit limit;
  BENCH_CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = limit.rlim_max;
  BENCH_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

/* One flat JSON object on one line of standard output. */
static inline void bench_json_open(const char* workload, const char* contender, uint64_t workers) {
  printf("{\"workload\": \"%s\", \"contender\": \"%s\", \"workers\": %llu", workload, contender,
         (unsigned long long)workers);
}

static inline void bench_json_number(const char* name, double value) { printf(", \"%s\": %.3f", name, value); }

static inline void bench_json_close(void) {
  printf("}\n");
  fflush(stdout);
}

#endif
