// inject.hpp: tasks that come from outside of the workers, or do not fit into a ring: lists behind sharded locks.
// Threads:    any. The locks are held for a few instructions, and know nothing of who sleeps (idle_word.hpp does).
// Invariants: Q1 size_ of a shard is stored (seq_cst) after a push, before the lock is given back; so a worker that announces
//             its sleep and then sees zero everywhere is seen by the pusher's next look at the idle word.
#pragma once

#include <cstdint>

#include "base/allocated.hpp"
#include "base/atomic.hpp"
#include "base/platform.hpp"
#include "sync/mutex.hpp"
#include "task/queue.hpp"

namespace noria::task {

class Inject {
 public:
  explicit Inject(std::uint32_t shards) : count_(shards), shards_(shards) {}

  void push(std::uint32_t shard, Task* task) {
    Shard& to = shards_[wrap(shard)];
    sync::MutexLock guard(to.lock);
    to.queue.push(task);
    // ORDER: seq_cst, see Q1.
    to.size.store(to.queue.size(), NORIA_SEQ_CST);
  }

  void push(std::uint32_t shard, Queue& tasks) {
    Shard& to = shards_[wrap(shard)];
    sync::MutexLock guard(to.lock);
    to.queue.append(tasks);
    // ORDER: seq_cst, see Q1.
    to.size.store(to.queue.size(), NORIA_SEQ_CST);
  }

  // Up to `most` tasks, from the first shard at or after `shard` that has any.
  Queue pop(std::uint32_t shard, std::size_t most) {
    std::uint32_t at = wrap(shard);
    for (std::uint32_t i = 0; i < count_; ++i) {
      // ORDER: relaxed, as in pop_shard.
      if (shards_[at].size.load(NORIA_RELAXED) != 0) {
        if (Queue out = pop_shard(at, most); !out.empty()) return out;
      }
      if (++at == count_) at = 0;
    }
    return {};
  }

  Queue pop_shard(std::uint32_t shard, std::size_t most) {
    Shard& from = shards_[wrap(shard)];
    // ORDER: relaxed, an old zero is made up for by the look before a park.
    if (from.size.load(NORIA_RELAXED) == 0) return {};
    sync::MutexLock guard(from.lock);
    Queue out = from.queue.cut(most);
    // ORDER: relaxed, a stale number of tasks costs a look.
    from.size.store(from.queue.size(), NORIA_RELAXED);
    return out;
  }

  // Whether there is anything: the look before a park.
  bool empty() const {
    for (std::uint32_t i = 0; i < count_; ++i) {
      // ORDER: seq_cst, see Q1.
      if (shards_[i].size.load(NORIA_SEQ_CST) != 0) return false;
    }
    return true;
  }

  // Whether a pop is worth trying; the look before a park is empty().
  bool maybe_filled() const {
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (size(i) != 0) return true;
    }
    return false;
  }

  std::size_t size(std::uint32_t shard) const {
    // ORDER: relaxed, a hint.
    return shards_[wrap(shard)].size.load(NORIA_RELAXED);
  }

  std::size_t size() const {
    std::size_t sum = 0;
    for (std::uint32_t i = 0; i < count_; ++i) sum += size(i);
    return sum;
  }

 private:
  struct alignas(kCacheLine) Shard {
    sync::Mutex lock;
    Queue queue;  // guarded by lock
    Atomic<std::size_t> size{0};
  };

  // A division where it must be: workers ask for their own.
  std::uint32_t wrap(std::uint32_t shard) const {
    return shard < count_ ? shard : shard % count_;  // NOLINT(clang-analyzer-core.DivideZero): there is one at least
  }

  const std::uint32_t count_;
  Vector<Shard> shards_;
};

}  // namespace noria::task
