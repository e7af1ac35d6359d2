// semaphore.hpp: permits, first come, first served; without a lock while nobody waits.
//
// The word: CLOSED, WAITERS, and the free permits above kShift.
// Threads:    any. While WAITERS is clear everyone changes the word by exchanges; while it is set only the holder of
//             lock_ takes permits or clears it.
// Invariants: M1 when lock_ is free, WAITERS is set exactly if the queue is not empty. M2 while it is set nobody overtakes:
//             free permits are for the head of the queue. M3 permits given = free + held + granted and not yet
//             reported; a grant whose waiter goes away comes back.
#pragma once

#include <cstdint>

#include "lock/line.hpp"

namespace noria::lock {

class Semaphore final : public Line<Semaphore> {
 public:
  static constexpr std::uint64_t kMaxPermits = UINT64_MAX >> 2;
  static constexpr Waiter::Kind kKind = Waiter::kSemaphore;
  static constexpr const char* kWaitName = "semaphore acquire";

  // At most kMaxPermits.
  Semaphore(runtime::Core* core, std::uint64_t permits) : Line(core), word_(permits << kShift) {}
  ~Semaphore() = default;

  // -EAGAIN, -NORIA_ECLOSED.
  [[nodiscard]] std::int32_t try_take(std::uint64_t count) {
    // ORDER: relaxed, only a guess for the exchange.
    std::uint64_t word = word_.load(NORIA_RELAXED);
    for (;;) {
      if ((word & kClosed) != 0) return -NORIA_ECLOSED;
      if ((word & kWaiters) != 0 || (word >> kShift) < count) return -EAGAIN;
      // ORDER: acquire, pairs with give(): sees what its caller did before. Failure is retried.
      if (word_.compare_exchange_weak(word, word - (count << kShift), NORIA_ACQUIRE, NORIA_RELAXED)) return NORIA_OK;
    }
  }

  // -EOVERFLOW.
  [[nodiscard]] std::int32_t give(std::uint64_t count) {
    // ORDER: relaxed, only a guess for the exchange.
    std::uint64_t word = word_.load(NORIA_RELAXED);
    while ((word & kWaiters) == 0) {
      if (count > kMaxPermits - (word >> kShift)) return -EOVERFLOW;
      // ORDER: release, gives what was done under the permits to who takes them. Failure is retried.
      if (word_.compare_exchange_weak(word, word + (count << kShift), NORIA_RELEASE, NORIA_RELAXED)) return NORIA_OK;
    }
    return give_queued(count);
  }

  std::uint64_t available() const {
    // ORDER: relaxed, a figure of the moment.
    return word_.load(NORIA_RELAXED) >> kShift;
  }

  void close();

 private:
  friend class Line<Semaphore>;
  friend class LineFuture<Semaphore>;

  static constexpr std::uint64_t kClosed = 1;
  static constexpr std::uint64_t kWaiters = 2;
  static constexpr unsigned kShift = 2;

  std::int32_t give_queued(std::uint64_t count);
  void serve(WakeBatch& batch) NORIA_REQUIRES(lock_);

  std::int32_t take_or_queue(Waiter& waiter) NORIA_REQUIRES(lock_);
  void left(WakeBatch& batch) NORIA_REQUIRES(lock_);
  void serve_rest(WakeBatch& batch);
  void give_back(std::uint32_t state, std::uint64_t count) {
    // Can only overflow by permits that others added meanwhile; those were refused then.
    if (state == Waiter::kGranted) (void)give(count);
  }

  Atomic<std::uint64_t> word_;
};

}  // namespace noria::lock
