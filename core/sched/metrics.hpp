// metrics.hpp: the counters of one worker: written by its owner with plain stores, read by anyone.
#pragma once

#include <bit>
#include <cstdint>

#include "base/atomic.hpp"

namespace noria::sched {

class Counter {
 public:
  void add(std::uint64_t n) {
    // ORDER: relaxed, one writer; readers take a snapshot in motion.
    value_.store(value_.load(NORIA_RELAXED) + n, NORIA_RELAXED);
  }
  // ORDER: relaxed, as add.
  std::uint64_t get() const { return value_.load(NORIA_RELAXED); }

 private:
  Atomic<std::uint64_t> value_{0};
};

inline constexpr std::uint32_t kPollTimeBuckets = 32;

struct WorkerCounters {
  Counter polls;
  Counter steals;
  Counter overflow;
  Counter parks;
  Counter wakes_sent;
  Counter busy_ns;
  Counter lifo_polls;
  Counter sentry_acts;
  Counter poll_time[kPollTimeBuckets];

  // Bucket i holds [2^i, 2^(i+1)) ns; the last holds what is longer.
  static std::uint32_t bucket(std::uint64_t ns) {
    std::uint32_t log = ns == 0 ? 0 : static_cast<std::uint32_t>(std::bit_width(ns) - 1);
    return log < kPollTimeBuckets ? log : kPollTimeBuckets - 1;
  }
};

}  // namespace noria::sched
