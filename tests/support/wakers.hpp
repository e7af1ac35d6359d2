// wakers.hpp: a foreign waker that counts what is done to it, and a latch.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "support/check.hpp"

namespace noria::test {

// Counts up to something, from any thread; wait() with the watchdog.
class Latch {
 public:
  explicit Latch(int count = 1) : count_(count) {}
  void count_down() {
    std::lock_guard guard(lock_);
    if (--count_ <= 0) changed_.notify_all();
  }
  bool done() {
    std::lock_guard guard(lock_);
    return count_ <= 0;
  }
  void wait(const char* what) {
    Watchdog watchdog(what);
    std::unique_lock guard(lock_);
    changed_.wait(guard, [this] { return count_ <= 0; });
  }

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  int count_;  // guarded by lock_
};

// A waker from outside of the engine. Outlives all its clones (alive() tells).
class ForeignWaker {
 public:
  ForeignWaker() = default;
  // `on_wake` runs inside of each wake, on the waking thread.
  explicit ForeignWaker(std::function<void()> on_wake) : on_wake_(std::move(on_wake)) {}
  ForeignWaker(const ForeignWaker&) = delete;
  ForeignWaker& operator=(const ForeignWaker&) = delete;
  // Who was woken may be faster than the end of the wake.
  ~ForeignWaker() {
    Watchdog watchdog("the end of a foreign waker: clones of it are left");
    while (alive() != 0) std::this_thread::yield();
  }

  const noria_cx* cx() const { return &cx_; }
  const noria_waker* waker() const { return &raw_; }
  int wakes() const { return wakes_; }
  int clones() const { return clones_; }  // made so far
  int drops() const { return drops_; }
  int alive() const { return alive_; }
  void wait(int wakes, const char* what) {
    Watchdog watchdog(what);
    for (int seen = wakes_; seen < wakes; seen = wakes_) wakes_.wait(seen);
  }

 private:
  static ForeignWaker* of(const noria_waker* waker) { return static_cast<ForeignWaker*>(waker->data); }
  static void clone(const noria_waker* waker, noria_waker* out) {
    ++of(waker)->clones_;
    ++of(waker)->alive_;
    *out = *waker;
  }
  static void wake(noria_waker* waker) {
    wake_by_ref(waker);
    --of(waker)->alive_;  // last: nothing of it is used after that
  }
  static void wake_by_ref(const noria_waker* waker) {
    ForeignWaker* self = of(waker);
    if (self->on_wake_) self->on_wake_();
    ++self->wakes_;
    self->wakes_.notify_all();
  }
  static void drop(noria_waker* waker) {
    ++of(waker)->drops_;
    --of(waker)->alive_;
  }
  static constexpr noria_waker_vtable kVtable = {clone, wake, wake_by_ref, drop};

  std::function<void()> on_wake_;
  std::atomic<int> wakes_{0};
  std::atomic<int> clones_{0};
  std::atomic<int> drops_{0};
  std::atomic<int> alive_{0};
  noria_waker raw_{&kVtable, this, nullptr};
  noria_cx cx_{&raw_, {0, 0, 0}};
};

}  // namespace noria::test
