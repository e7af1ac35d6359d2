// pool.hpp: threads for what blocks: files, names, and the user's own jobs.
// Threads:    every function from any thread, unless it says otherwise.
// Invariants: of each job that was accepted, exactly one happens: run, discard, a cancel() that answers
//             true. Classes share nothing: a full one delays no other. No job, hook or discard runs
//             under a lock of the pool.
// Lifetime:   counted: one reference is the creator's, each thread holds one. So a thread that is
//             stuck in a job when everybody else has left ends later without touching freed memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.hpp"
#include "base/clock.hpp"
#include "blocking/crew.hpp"
#include "blocking/queue.hpp"

namespace noria::blocking {

inline constexpr std::uint64_t kNoLimit = UINT64_MAX / 2;

struct PoolOptions {
  std::uint32_t max_threads[kPoolClasses] = {64, 16, 512};  // files, names, user; at least 1
  std::uint64_t queue_limit[kPoolClasses] = {kNoLimit, kNoLimit, kNoLimit};
  std::uint64_t keep_alive_ns = 10 * kNsPerSec;    // kNever: threads stay until close()
  std::size_t stack_size = 0;                      // 0: the system's
  void (*on_thread_made)(void* data) = nullptr;    // by its maker, before it exists; may be under a lock
  void (*on_thread_failed)(void* data) = nullptr;  // after on_thread_made: there is no thread after all
  void (*on_thread_start)(void* data) = nullptr;
  void (*on_thread_stop)(void* data) = nullptr;
  void* hook_data = nullptr;
  const char* thread_name = "noria-block";  // copied; a number follows
};

class Pool {
 public:
  // Makes no thread. -ENOMEM, or -EINVAL for a class without threads.
  [[nodiscard]] static std::int32_t create(const PoolOptions& options, Pool** out) noexcept;

  // The creator's reference. After close(); the pool's memory goes with its last thread.
  void release() noexcept;

  // The job will be run, discarded or cancelled. Else it is not kept, and the answer says why: -EAGAIN
  // (the class's queue is full, or no thread can be made and none is there), -ESHUTDOWN.
  [[nodiscard]] std::int32_t submit(Job& job, PoolClass pool_class) noexcept {
    return crews_[static_cast<std::size_t>(pool_class)].submit(job);
  }

  // After submit() has returned, while the job's memory is there. True: the job had not begun, is out
  // of the pool and is the caller's again; neither run nor discard is called. False: it runs, has run,
  // or was discarded.
  [[nodiscard]] bool cancel(Job& job) noexcept { return crews_[static_cast<std::size_t>(job.pool_class)].cancel(job); }

  // Runs f(data) at once on a thread of its own, an idle one of the user class or a new one, outside
  // that class's limits; afterwards the thread serves the class if there is room. -EAGAIN, -ENOMEM,
  // -ESHUTDOWN: f will not run.
  [[nodiscard]] std::int32_t run_thread(void (*f)(void* data), void* data) noexcept;

  // Discards (on this thread) what has not begun, refuses what comes, and lets threads end as their
  // jobs return. Twice is once.
  void close() noexcept;

  // After close(): waits until all threads have left (on a pool thread: all others), at most until
  // `deadline_ns` on CLOCK_MONOTONIC. False: some still run; running() names their jobs.
  [[nodiscard]] bool wait_idle(std::uint64_t deadline_ns) noexcept;

  // Writes up to `capacity` of the jobs and calls that run now; returns how many there are.
  std::size_t running(RunningJob* out, std::size_t capacity) noexcept;

  CrewMetrics metrics(PoolClass pool_class) noexcept { return crews_[static_cast<std::size_t>(pool_class)].metrics(); }

  // For the crews: a new thread that runs crew.work(call), or the error. Holds no lock of its own.
  [[nodiscard]] std::int32_t start_thread(Crew& crew, Call call) noexcept;

 private:
  struct Start;

  Pool(const PoolOptions& options, const CrewLimits (&limits)[kPoolClasses]) noexcept;
  ~Pool() = default;
  static void* thread_main(void* start) noexcept;
  void name_thread(std::uint32_t number) noexcept;

  PoolOptions options_;   // immutable
  char thread_name_[16];  // immutable
  Crew crews_[kPoolClasses];
  Atomic<std::uint32_t> references_{1};  // the creator's and one a thread; a futex for wait_idle()
  Atomic<std::uint32_t> numbers_{0};     // of threads, for their names
};

}  // namespace noria::blocking
