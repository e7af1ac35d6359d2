// thread_waker.hpp: a waker that wakes a thread which blocks: for block_on and for waiting on a future.
// Threads:    wait, reset: the thread. The waker's functions, notify: any.
// Lifetime:   counted: the thread has one reference, each clone of the waker one.
#pragma once

#include <cstdint>

#include "base/atomic.hpp"
#include "noria/waker.h"
#include "runtime/fork.hpp"

namespace noria::runtime {

class ThreadWaker {
 public:
  // nullptr: out of memory.
  [[nodiscard]] static ThreadWaker* create();
  void release();

  // Borrowed; clones count.
  noria_waker waker() { return {&kVtable, this, nullptr}; }
  // Whether it is such a waker, and of a thread of the process that this one was forked from (A15).
  static bool inherited(const noria_waker* waker) {
    return waker->vtable == &kVtable && static_cast<ThreadWaker*>(waker->data)->generation_ != fork_generation();
  }
  void notify();
  // ORDER: acquire, pairs with notify.
  bool notified() const { return notified_.load(NORIA_ACQUIRE) != 0; }
  // Takes a notification if there is one.
  bool take();
  // Sleeps until notified or until `deadline_ns` on CLOCK_MONOTONIC; takes the notification. False: the deadline came.
  bool wait(std::uint64_t deadline_ns);
  // Until there is a wake, which take() is still to take.
  void wait_untaken();

  // A list of its user's.
  ThreadWaker* next() const { return next_; }
  ThreadWaker** next_link() { return &next_; }
  void set_next(ThreadWaker* next) { next_ = next; }

 private:
  static void clone(const noria_waker* waker, noria_waker* out);
  static void wake(noria_waker* waker);
  static void wake_by_ref(const noria_waker* waker);
  static void drop(noria_waker* waker);
  static const noria_waker_vtable kVtable;

  Atomic<std::uint32_t> notified_{0};  // a futex
  Atomic<std::uint32_t> references_{1};
  const std::uint64_t generation_ = fork_generation();
  ThreadWaker* next_ = nullptr;
};

// Tells threads apart; never zero.
std::uintptr_t thread_token();

}  // namespace noria::runtime
