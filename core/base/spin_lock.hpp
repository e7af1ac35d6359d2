// spin_lock.hpp: a lock for a few pointer writes, where nothing blocks or calls out.
// Threads:    any. Under a preempted holder the others give up their time slice, and at last sleep: it may be of a lower priority and wait for their CPU.
// Invariants: constant-initialised, so it works before and after every static constructor.
// What may be held for longer, or waited for often, takes sync/mutex.hpp instead.
#pragma once

#include <sched.h>
#include <time.h>

#include <cstdint>

#include "base/atomic.hpp"
#include "base/platform.hpp"
#include "base/thread_safety.hpp"

namespace noria {

class NORIA_CAPABILITY("spin lock") SpinLock {
 public:
  constexpr SpinLock() = default;
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;

  void lock() noexcept NORIA_LOCKS() {
    for (int spins = 0; !try_lock(); ++spins) {
      if (spins < kSpins) {
        cpu_pause();
      } else if (spins < kYields) {
        ::sched_yield();
      } else {
        const timespec moment{0, 50'000};
        ::nanosleep(&moment, nullptr);
      }
    }
  }

  bool try_lock() noexcept NORIA_TRY_LOCKS(true) {
    // ORDER: relaxed look first, so that waiters share the line; stale only costs another turn.
    if (word_.load(NORIA_RELAXED) != 0) return false;
    // ORDER: acquire, pairs with the release in unlock(): sees what the last holder wrote.
    return word_.exchange(1, NORIA_ACQUIRE) == 0;
  }

  // ORDER: release, pairs with the acquire in try_lock().
  void unlock() noexcept NORIA_UNLOCKS() { word_.store(0, NORIA_RELEASE); }

 private:
  static constexpr int kSpins = 64;
  static constexpr int kYields = kSpins + 64;
  Atomic<std::uint32_t> word_{0};  // 0 free, 1 held
};

class NORIA_SCOPED_CAPABILITY SpinScope {
 public:
  explicit SpinScope(SpinLock& lock) noexcept NORIA_LOCKS(lock) : lock_(lock) { lock_.lock(); }
  ~SpinScope() NORIA_UNLOCKS() { lock_.unlock(); }
  SpinScope(const SpinScope&) = delete;
  SpinScope& operator=(const SpinScope&) = delete;

 private:
  SpinLock& lock_;
};

}  // namespace noria
