// wake.hpp: wake_latency and light_load, as micro/wake.c: this thread, which is no worker, wakes a task.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "common/peer.hpp"

namespace peer {

enum : std::uint64_t { kBurnNs = 10000 };

/// Who is woken calls saw() each time.
class Sleeper {
 public:
  explicit Sleeper(std::uint64_t wakes) : latency_ns(wakes) {}

  void saw() {
    const std::uint64_t now = bench_now_ns();
    // ORDER: relaxed, the wake publishes it; only the sleeper writes `seen_`.
    const std::uint64_t seen = seen_.load(std::memory_order_relaxed);
    latency_ns[seen] = now - sent_ns_.load(std::memory_order_relaxed);
    // ORDER: release, the waking thread may go on; pairs with its acquire.
    seen_.store(seen + 1, std::memory_order_release);
  }

  /// Calls wake() so often, each time after a pause and when the one before was seen; returns when the last was.
  template <typename Wake>
  void wake_all(const Run& run, Wake wake) {
    const std::chrono::microseconds interval(run.option("--interval-us", 300));
    for (std::uint64_t i = 0; i <= latency_ns.size(); i++) {
      do {
        std::this_thread::sleep_for(interval);
        // ORDER: acquire, pairs with the release in saw().
      } while (seen_.load(std::memory_order_acquire) != i);
      if (i == latency_ns.size()) return;
      // ORDER: relaxed, the wake publishes it.
      sent_ns_.store(bench_now_ns(), std::memory_order_relaxed);
      wake();
    }
  }

  std::vector<std::uint64_t> latency_ns;

 private:
  std::atomic<std::uint64_t> sent_ns_{0};
  std::atomic<std::uint64_t> seen_{0};
};

inline void report_latency(Run& run, std::vector<std::uint64_t>& latency_ns) {
  run.figures = {{"p50_us", percentile_us(latency_ns, 0.5)},
                 {"p99_us", percentile_us(latency_ns, 0.99)},
                 {"p999_us", percentile_us(latency_ns, 0.999)}};
}

/// CPU of the process without this thread, while `wakes` wakes all.
template <typename Wakes>
void report_light_load(Run& run, Wakes wakes) {
  std::uint64_t wall_ns = bench_now_ns(), own_ns = bench_clock_ns(CLOCK_THREAD_CPUTIME_ID), all_ns = bench_cpu_ns();
  wakes();
  all_ns = bench_cpu_ns() - all_ns;
  own_ns = bench_clock_ns(CLOCK_THREAD_CPUTIME_ID) - own_ns;
  wall_ns = bench_now_ns() - wall_ns;
  run.figures = {{"cpu_percent", 100.0 * static_cast<double>(all_ns - own_ns) / static_cast<double>(wall_ns)}};
}

}  // namespace peer
