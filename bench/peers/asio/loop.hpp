// loop.hpp: what the callbacks and the coroutines have in common: a loop with its threads, and the gate.
#pragma once

#include <asio.hpp>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "common/peer.hpp"

/// An io_context that `workers` threads run; told how many they are, so that it can leave out what one thread needs not.
class Loop {
 public:
  explicit Loop(unsigned workers) : context(static_cast<int>(workers)), work_(asio::make_work_guard(context)) {
    for (unsigned i = 0; i < workers; i++) {
      threads_.emplace_back([this] { context.run(); });
    }
  }

  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// What still sleeps sleeps on.
  ~Loop() {
    context.stop();
    for (std::thread& thread : threads_) thread.join();
  }

  asio::io_context context;

 private:
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::vector<std::thread> threads_;
};

/// The loop of the process: made before the first run. Never destroyed, as the pool: each may still be inside of the other.
inline Loop& the_loop(unsigned workers) {
  static auto& loop = *new Loop(workers);
  return loop;
}

/// The pool of the process, of the size that Asio gives it by default. Never destroyed: a thread that has given it a job may
/// still be inside of it when that job's answer has come.
inline asio::thread_pool& the_pool() {
  static auto& pool = *new asio::thread_pool;
  return pool;
}

/// Counts passes; whoever makes the last one opens it.
class Gate {
 public:
  void shut(std::uint64_t count) {
    // ORDER: relaxed, who will pass is posted after this, and posting publishes it.
    remaining_.store(count, std::memory_order_relaxed);
  }

  [[nodiscard]] bool pass() {
    // ORDER: acq_rel, each pass releases its work to the one who opens.
    return remaining_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }

 private:
  std::atomic<std::uint64_t> remaining_{0};
};

enum : std::uint64_t { kFireLeadNs = 500'000'000, kFireStepNs = 10'000, kFireStride = 7919 };

void serve_callbacks(unsigned workers, std::size_t buffer);
void serve_coroutines(unsigned workers, std::size_t buffer);
