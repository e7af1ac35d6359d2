// notify.hpp: tells one or all who wait; one notification that finds nobody is kept.
//
// The word:
//   kIdle     nobody waits, nothing is kept
//   kStored   nobody waits, one notification is kept
//   kWaiting  the queue is not empty
// Threads:    any. Between kIdle and kStored everyone changes the word by exchanges; into and out of kWaiting only the
//             holder of lock_.
// Invariants: T1 when lock_ is free, the word is kWaiting exactly if the queue is not empty. T2 a notification of one
//             is reported once or kept: one that reached a waiter which goes away is passed on. T3 notify_all tells
//             those whose epoch is older than its own: who comes while it tells is not told.
#pragma once

#include <cstdint>

#include "lock/line.hpp"

namespace noria::lock {

class Notify final : public Line<Notify> {
 public:
  static constexpr Waiter::Kind kKind = Waiter::kNotify;
  static constexpr const char* kWaitName = "notify wait";

  explicit Notify(runtime::Core* core) : Line(core) {}
  ~Notify() = default;

  void one() {
    // ORDER: relaxed, only a guess for the exchange.
    std::uint32_t word = word_.load(NORIA_RELAXED);
    while (word != kWaiting) {
      // ORDER: release, gives what was done before to who is told; also where one is kept already. Failure is retried.
      if (word_.compare_exchange_weak(word, kStored, NORIA_RELEASE, NORIA_RELAXED)) return;
    }
    one_queued();
  }
  void all() { tell(Waiter::kGrantedAll, NORIA_OK); }
  // Everyone who waits gets -NORIA_ECLOSED.
  void close() { tell(Waiter::kClosed, -NORIA_ECLOSED); }

 private:
  friend class Line<Notify>;
  friend class LineFuture<Notify>;

  static constexpr std::uint32_t kIdle = 0;
  static constexpr std::uint32_t kStored = 1;
  static constexpr std::uint32_t kWaiting = 2;

  void one_queued();
  bool tell_one(WakeBatch& batch) NORIA_REQUIRES(lock_);
  void tell(Waiter::State state, std::int32_t status);

  std::int32_t try_take(std::uint64_t /*count*/) {
    std::uint32_t stored = kStored;
    // ORDER: acquire, pairs with one(); relaxed on failure, nothing was read.
    return word_.compare_exchange_strong(stored, kIdle, NORIA_ACQUIRE, NORIA_RELAXED) ? NORIA_OK : -EAGAIN;
  }
  std::int32_t take_or_queue(Waiter& waiter) NORIA_REQUIRES(lock_);
  void left(WakeBatch& batch) NORIA_REQUIRES(lock_);
  void serve_rest(WakeBatch& batch) { batch.run(NORIA_OK); }
  void give_back(std::uint32_t state, std::uint64_t /*count*/) {
    if (state == Waiter::kGranted) one();
  }

  Atomic<std::uint32_t> word_{kIdle};
  std::uint64_t epoch_ NORIA_GUARDED_BY(lock_) = 0;
};

}  // namespace noria::lock
