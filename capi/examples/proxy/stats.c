/* stats.c: what the proxy counts. */
#include "stats.h"

#include <stdlib.h>
#include <string.h>

/* ORDER: relaxed, here and below: a counter publishes nothing but itself, and a status line may be
 * a moment old. The report is made after the workers were joined. */
void counter_add(Counter *counter, uint64_t n) { atomic_fetch_add_explicit(&counter->value, n, memory_order_relaxed); }

uint64_t counter_get(const Counter *counter) { return atomic_load_explicit(&counter->value, memory_order_relaxed); }

void counter_raise(Counter *counter, uint64_t to) {
  uint64_t now = counter_get(counter);
  while (now < to && !atomic_compare_exchange_weak_explicit(&counter->value, &now, to, memory_order_relaxed,
                                                            memory_order_relaxed)) {
  }
}

static size_t bucket_of(uint64_t ns) {
  if (ns < HISTOGRAM_STEPS) return (size_t)ns;
  unsigned doubling = 63u - (unsigned)__builtin_clzll(ns);
  uint64_t step = ns >> (doubling - 3) & (HISTOGRAM_STEPS - 1);
  return (size_t)(doubling - 2) * HISTOGRAM_STEPS + (size_t)step;
}

static uint64_t bucket_middle_ns(size_t bucket) {
  if (bucket < HISTOGRAM_STEPS) return bucket;
  size_t doubling = bucket / HISTOGRAM_STEPS + 2;
  uint64_t width = UINT64_C(1) << (doubling - 3);
  return (HISTOGRAM_STEPS + bucket % HISTOGRAM_STEPS) * width + width / 2;
}

void histogram_add(Histogram *histogram, uint64_t ns) {
  counter_add(&histogram->buckets[bucket_of(ns)], 1);
  counter_raise(&histogram->longest_ns, ns);
}

uint64_t histogram_count(const Histogram *histogram) {
  uint64_t total = 0;
  for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) total += counter_get(&histogram->buckets[i]);
  return total;
}

uint64_t histogram_quantile(const Histogram *histogram, double quantile) {
  uint64_t total = histogram_count(histogram);
  uint64_t longest_ns = counter_get(&histogram->longest_ns);
  if (total == 0) return 0;
  uint64_t rank = (uint64_t)((double)(total - 1) * quantile);
  for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
    uint64_t here = counter_get(&histogram->buckets[i]);
    if (rank < here) {
      uint64_t middle = bucket_middle_ns(i);
      return middle < longest_ns ? middle : longest_ns;
    }
    rank -= here;
  }
  return longest_ns;
}

const char *phase_name(Phase phase) {
  static const char *const names[] = {"accept", "connect", "copy"};
  return names[phase];
}

void stats_init(Stats *stats) {
  memset(stats, 0, sizeof *stats);
  pthread_mutex_init(&stats->failures_lock, NULL);
}

uint64_t stats_open(const Stats *stats) {
  /* Finished first: it never passes accepted, so the difference stays positive. */
  uint64_t finished = counter_get(&stats->finished);
  uint64_t accepted = counter_get(&stats->accepted);
  return accepted > finished ? accepted - finished : 0;
}

void stats_failed(Stats *stats, Phase phase, int32_t error) {
  pthread_mutex_lock(&stats->failures_lock);
  size_t i = 0;
  while (i < stats->failure_count && (stats->failures[i].phase != phase || stats->failures[i].error != error)) {
    i++;
  }
  if (i == stats->failure_count && i < FAILURES_MAX) {
    stats->failures[i] = (Failure){phase, error, 0};
    stats->failure_count++;
  }
  if (i < FAILURES_MAX) stats->failures[i].count++;
  pthread_mutex_unlock(&stats->failures_lock);
}

static int by_count(const void *a, const void *b) {
  const Failure *left = a;
  const Failure *right = b;
  return (left->count < right->count) - (left->count > right->count);
}

size_t stats_failures(Stats *stats, Failure *out) {
  pthread_mutex_lock(&stats->failures_lock);
  size_t count = stats->failure_count;
  memcpy(out, stats->failures, count * sizeof *out);
  pthread_mutex_unlock(&stats->failures_lock);
  if (count > 1) qsort(out, count, sizeof *out, by_count);
  return count;
}
