// options.hpp: what a runtime is made as: the C struct, checked and filled in.
#pragma once

#include <cstdint>
#include "base/allocated.hpp"
#include "noria/runtime.h"

namespace noria::runtime {

struct Options {
  std::uint32_t kind = NORIA_RUNTIME_MULTI_THREAD;
  std::uint32_t workers = 1;
  std::uint32_t max_workers = 1;
  bool io = true;
  bool time = true;
  std::uint32_t reactor = NORIA_REACTOR_EPOLL;
  std::uint32_t pool_user_threads = 512;
  std::uint32_t pool_file_threads = 16;
  std::uint32_t pool_name_threads = 8;
  std::uint32_t pool_queue_limit = NORIA_UNLIMITED;
  std::uint32_t inject_interval = 0;  // 0: tuned
  std::uint64_t pool_keep_alive_ns = 10'000'000'000;
  std::uint64_t seed = 0;
  char name[32] = "noria";  // cut: a thread's name has room for 15
  Vector<std::uint32_t> affinity;
  bool clock_paused = false;
  std::uint64_t (*clock_now)(void*) = nullptr;
  void* clock_data = nullptr;
  void (*on_thread_start)(void*) = nullptr;
  void (*on_thread_stop)(void*) = nullptr;
  void (*on_worker_park)(void*) = nullptr;
  void (*on_worker_unpark)(void*) = nullptr;
  void* hook_data = nullptr;

  bool current_thread() const { return kind == NORIA_RUNTIME_CURRENT_THREAD; }
};

// Checks what the user gave (nullptr: all defaults) and fills in what was left to the engine. The copied name and affinity
// are the only allocations; -ENOMEM if they fail.
[[nodiscard]] std::int32_t read_options(const noria_runtime_options* from, Options& to);

// min(affinity, ceil(cgroup quota / period)), at least 1.
std::uint32_t default_workers();

}  // namespace noria::runtime
