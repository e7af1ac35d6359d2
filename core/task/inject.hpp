// inject.hpp: tasks that come from outside of the workers, or do not fit into a ring: buffers behind sharded locks.
// Threads:    any. The locks are held for a few instructions (and while a buffer grows), and know nothing of who sleeps (idle_word.hpp does).
// Invariants: Q1 size_ of a shard is stored (seq_cst) after a push, before the lock is given back; so a worker that announces
//             its sleep and then sees zero everywhere is seen by the pusher's next look at the idle word.
#pragma once

#include <cstdint>
#include <span>

#include "base/allocated.hpp"
#include "base/atomic.hpp"
#include "base/platform.hpp"
#include "sync/mutex.hpp"
#include "task/fifo.hpp"

namespace noria::task {

class Inject {
 public:
  explicit Inject(std::uint32_t shards) : count_(shards), shards_(shards) {}

  void push(std::uint32_t shard, Task* task) { push(shard, std::span<Task* const>(&task, 1)); }

  void push(std::uint32_t shard, std::span<Task* const> tasks) {
    Shard& to = shards_[wrap(shard)];
    sync::MutexLock guard(to.lock);
    to.fifo.push(tasks);
    // ORDER: seq_cst, see Q1.
    to.size.store(to.fifo.size(), NORIA_SEQ_CST);
  }

  // As many as `out` holds, from the first shard at or after `shard` that has any; how many there were.
  std::size_t pop(std::uint32_t shard, std::span<Task*> out) {
    std::uint32_t at = wrap(shard);
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (std::size_t taken = pop_shard(at, out); taken != 0) return taken;
      if (++at == count_) at = 0;
    }
    return 0;
  }

  std::size_t pop_shard(std::uint32_t shard, std::span<Task*> out) {
    Shard& from = shards_[wrap(shard)];
    // ORDER: relaxed, an old zero is made up for by the look before a park.
    if (from.size.load(NORIA_RELAXED) == 0) return 0;
    sync::MutexLock guard(from.lock);
    std::size_t taken = from.fifo.pop(out);
    // ORDER: relaxed, a stale number of tasks costs a look.
    from.size.store(from.fifo.size(), NORIA_RELAXED);
    return taken;
  }

  void take_all(Queue& to) {
    Task* some[64];
    while (std::size_t taken = pop(0, some)) to.push(std::span<Task* const>(some, taken));
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
    Fifo fifo;  // guarded by lock
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
