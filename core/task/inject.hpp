// inject.hpp: tasks that come from outside of the workers, and what spills over from a worker's ring: buffers behind sharded locks.
// Threads:    any. The locks are held for a few instructions (and while a buffer grows), and know nothing of who sleeps (idle_word.hpp does).
// Invariants: Q1 the size of a shard is stored (seq_cst) after a push, before the lock is given back; so a worker that announces
//             its sleep and then sees zero everywhere is seen by the pusher's next look at the idle word.
//             Q2 what spilled over from a worker lies in its own shard, apart: busy workers take in turn what comes from outside, and
//             leave to each its own, unless it is stuck or far behind, so that what belongs together stays on one CPU. Who has nothing to do takes either.
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

  void push(std::uint32_t shard, Task* task) {
    Shard& to = shards_[wrap(shard)];
    sync::MutexLock guard(to.lock);
    to.outside.push(std::span<Task* const>(&task, 1));
    to.count();
  }

  // From the ring of the worker whose shard it is.
  void spill(std::uint32_t shard, std::span<Task* const> tasks) {
    Shard& to = shards_[wrap(shard)];
    sync::MutexLock guard(to.lock);
    to.spilled.push(tasks);
    to.count();
  }

  // Each takes as many as `out` holds, and answers how many there were.
  // Of what came from outside, from the first shard at or after `shard` that has any.
  std::size_t pop_outside(std::uint32_t shard, std::span<Task*> out) {
    std::uint32_t at = wrap(shard);
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (std::size_t taken = pop_from(shards_[at], &Shard::outside, out); taken != 0) return taken;
      if (++at == count_) at = 0;
    }
    return 0;
  }

  // Of what spilled over into this shard.
  std::size_t pop_spilled(std::uint32_t shard, std::span<Task*> out) {
    return pop_from(shards_[wrap(shard)], &Shard::spilled, out);
  }

  // Of either, from the first shard at or after `shard` that has any.
  std::size_t pop(std::uint32_t shard, std::span<Task*> out) {
    std::uint32_t at = wrap(shard);
    for (std::uint32_t i = 0; i < count_; ++i) {
      for (Fifo Shard::*kind : {&Shard::outside, &Shard::spilled}) {
        if (std::size_t taken = pop_from(shards_[at], kind, out); taken != 0) return taken;
      }
      if (++at == count_) at = 0;
    }
    return 0;
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

  // Of size(shard), what spilled over.
  std::size_t spilled(std::uint32_t shard) const {
    // ORDER: relaxed, a hint.
    return shards_[wrap(shard)].spilled_size.load(NORIA_RELAXED);
  }

  std::size_t size() const {
    std::size_t sum = 0;
    for (std::uint32_t i = 0; i < count_; ++i) sum += size(i);
    return sum;
  }

 private:
  struct alignas(kCacheLine) Shard {
    sync::Mutex lock;
    Fifo outside;                 // guarded by lock
    Fifo spilled;                 // guarded by lock
    Atomic<std::size_t> size{0};  // of both
    Atomic<std::size_t> spilled_size{0};

    // After a change, under the lock.
    void count() {
      // ORDER: relaxed, a hint.
      spilled_size.store(spilled.size(), NORIA_RELAXED);
      // ORDER: seq_cst, see Q1.
      size.store(outside.size() + spilled.size(), NORIA_SEQ_CST);
    }
  };

  static std::size_t pop_from(Shard& from, Fifo Shard::*kind, std::span<Task*> out) {
    // ORDER: relaxed, an old zero is made up for by the look before a park.
    std::size_t spilled = from.spilled_size.load(NORIA_RELAXED);
    // ORDER: relaxed, as above.
    std::size_t size = kind == &Shard::spilled ? spilled : from.size.load(NORIA_RELAXED) - spilled;
    if (size == 0) return 0;
    sync::MutexLock guard(from.lock);
    std::size_t taken = (from.*kind).pop(out);
    // ORDER: relaxed, a stale number of tasks costs a look.
    from.spilled_size.store(from.spilled.size(), NORIA_RELAXED);
    // ORDER: relaxed, as above.
    from.size.store(from.outside.size() + from.spilled.size(), NORIA_RELAXED);
    return taken;
  }

  // A division where it must be: workers ask for their own.
  std::uint32_t wrap(std::uint32_t shard) const {
    return shard < count_ ? shard : shard % count_;  // NOLINT(clang-analyzer-core.DivideZero): there is one at least
  }

  const std::uint32_t count_;
  Vector<Shard> shards_;
};

}  // namespace noria::task
