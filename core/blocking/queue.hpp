// queue.hpp: the jobs of one class that have not begun: shards to push to, one list to take from.
//
// A submitter pushes to the shard of its thread with one CAS and takes no lock. Takers hold the
// crew's lock; when their list is empty they take whole shards by exchange. So submitter and taker
// meet on a line once a batch, not once a job.
//
// The limit costs no common counter either: a shard holds credits, each good for one push, and
// whoever runs out gets new ones under the lock, if need be from other shards.
//
// Threads:    use_credit, push: any. Everything else: under the crew's lock.
// Invariants: Q1 a job is in one shard, or in the list with `queued` set, or not here.
//             Q2 jobs here + credits = granted_ - taken_ <= limit; a push uses up one credit.
//             Q3 of one thread, jobs leave in the order in which they came.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.hpp"
#include "base/platform.hpp"

namespace noria::blocking {

enum class PoolClass : std::uint8_t { kFiles, kNames, kUser };
inline constexpr std::size_t kPoolClasses = 3;

// Intrusive, owned by the submitter. The pool keeps it from a submit() that answers 0 until exactly
// one of: run is called, discard is called, cancel() answers true. It is not touched afterwards.
struct Job {
  Job* next = nullptr;  // the pool's
  Job* prev = nullptr;  // the pool's
  void (*run)(Job*) = nullptr;
  void (*discard)(Job*) = nullptr;          // the pool closed before the job began
  const char* name = nullptr;               // for the report; copied when the job begins; may be null
  PoolClass pool_class = PoolClass::kUser;  // the pool's
  bool queued = false;                      // the pool's, under the crew's lock
};

class JobQueue {
 public:
  // Any thread. Room for one push by this thread, or false: then ask grant() under the lock.
  [[nodiscard]] bool use_credit() noexcept;

  // Any thread, after use_credit() or grant().
  void push(Job& job) noexcept;

  // Any thread: a look that may be stale, for spinning.
  [[nodiscard]] bool maybe_filled() const noexcept;

  // True if neither a shard nor the list holds a job. Sees each push that comes before it in the
  // single order of sequentially consistent operations (crew.hpp, the sleep protocol).
  [[nodiscard]] bool empty() const noexcept;

  // Room for one job in a queue of at most `limit`, and credits for this thread's next ones.
  [[nodiscard]] bool grant(std::uint64_t limit) noexcept;

  void append(Job& job) noexcept;  // behind all that are here
  Job* pop() noexcept;             // the oldest, or null
  bool remove(Job& job) noexcept;  // false: it is not here any more
  Job* take_all() noexcept;        // linked by `next`

  std::uint64_t taken() const noexcept { return taken_; }  // jobs that have left, ever
  std::uint64_t submitted() const noexcept;                // jobs that have come, ever
  std::uint64_t size() const noexcept { return submitted() - taken_; }

 private:
#ifdef NORIA_MODEL
  static constexpr std::size_t kShards = 1;  // the fewer words, the more interleavings are reached
#else
  static constexpr std::size_t kShards = 8;
#endif
  static constexpr std::uint64_t kGrant = 1024;

  struct alignas(kCacheLine) Shard {
    Atomic<Job*> head{nullptr};       // newest first
    Atomic<std::int64_t> credits{0};  // never below zero
  };

  Shard& shard_of_thread() noexcept;
  void drain() noexcept;
  void link_last(Job* job) noexcept;
  void unlink(Job* job) noexcept;

  Shard shards_[kShards];
  alignas(kCacheLine) Job* first_ = nullptr;  // oldest; `next` leads to newer ones
  Job* last_ = nullptr;
  std::uint64_t granted_ = 0;
  std::uint64_t taken_ = 0;
  std::size_t next_shard_ = 0;  // where the next drain begins, so that no shard is always last
};

}  // namespace noria::blocking
