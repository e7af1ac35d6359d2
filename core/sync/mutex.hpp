// mutex.hpp: the engine's lock: four bytes, a short spin, then a futex.
// Threads:    any. Not recursive. Nothing user-supplied runs under it.
// Invariants: word_ is 0 free, 1 held, 2 held and somebody may sleep. Whoever slept takes it as 2, so
//             that the next unlock wakes the next sleeper: no sleeper is forgotten.
// Source:     U. Drepper, "Futexes Are Tricky", the second mutex.
#pragma once

#include <cstdint>

#include "base/atomic.hpp"
#include "base/platform.hpp"
#include "base/thread_safety.hpp"

namespace noria::sync {

class NORIA_CAPABILITY("mutex") Mutex {
 public:
  constexpr Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() noexcept NORIA_LOCKS() {
    if (NORIA_UNLIKELY(!try_lock())) lock_slow();
  }

  [[nodiscard]] bool try_lock() noexcept NORIA_TRY_LOCKS(true) {
    std::uint32_t free = kFree;
    // ORDER: acquire, pairs with the release in unlock(); relaxed on failure, nothing was read.
    return word_.compare_exchange_strong(free, kHeld, NORIA_ACQUIRE, NORIA_RELAXED);
  }

  void unlock() noexcept NORIA_UNLOCKS() {
    // ORDER: release, gives what was written under the lock to the next acquire.
    if (NORIA_UNLIKELY(word_.exchange(kFree, NORIA_RELEASE) == kWaited)) wake_one();
  }

 private:
  static constexpr std::uint32_t kFree = 0;
  static constexpr std::uint32_t kHeld = 1;
  static constexpr std::uint32_t kWaited = 2;

  void lock_slow() noexcept NORIA_NO_THREAD_SAFETY_ANALYSIS;
  // The mutex may be gone by now (its next holder freed it): only its address is used.
  void wake_one() noexcept;

  Atomic<std::uint32_t> word_{kFree};
};

class NORIA_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) noexcept NORIA_LOCKS(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() NORIA_UNLOCKS() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace noria::sync
