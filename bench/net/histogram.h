/* histogram.h: counts of durations in buckets of equal relative width, as HdrHistogram keeps them: 64 steps a power of two,
 * so that a percentile is told to 1.6 %. */
#ifndef NORIA_BENCH_HISTOGRAM_H
#define NORIA_BENCH_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum { kStepBits = 6, kSteps = 1 << kStepBits, kBuckets = (65 - kStepBits) * kSteps };

typedef struct histogram {
  uint64_t count, most;
  uint64_t buckets[kBuckets];
} histogram;

static inline size_t histogram_bucket(uint64_t value) {
  if (value < kSteps) return (size_t)value;
  unsigned log = 63u - (unsigned)__builtin_clzll(value);
  return (size_t)(log - kStepBits + 1) * kSteps + (size_t)((value >> (log - kStepBits)) & (kSteps - 1));
}

/* The least value that falls into the bucket. */
static inline uint64_t histogram_floor(size_t bucket) {
  if (bucket < kSteps) return bucket;
  unsigned log = (unsigned)(bucket / kSteps) + kStepBits - 1;
  return (UINT64_C(1) << log) + ((uint64_t)(bucket % kSteps) << (log - kStepBits));
}

static inline void histogram_add(histogram* h, uint64_t value) {
  h->buckets[histogram_bucket(value)]++;
  h->count++;
  if (value > h->most) h->most = value;
}

/* The value below or at which `share` of all lie. */
static inline uint64_t histogram_at(const histogram* h, double share) {
  uint64_t wanted = (uint64_t)((double)h->count * share), seen = 0;
  for (size_t i = 0; i < kBuckets; i++) {
    seen += h->buckets[i];
    if (seen > wanted) return histogram_floor(i);
  }
  return h->most;
}

#endif
