// waiter.hpp: a place in the queue of a semaphore or notify: of a poll form (in a caller's noria_waiter) or of a future.
//
//   state        from      by
//   kUnused      any       the poll that reports the end, or noria_waiter_drop; zeroed words are an unused waiter
//   kQueued      kUnused   the poll, or the begin of a future
//   kGranted     kQueued   whoever gives to this one
//   kGrantedAll  kQueued   whoever tells everyone: nothing to pass on
//   kClosed      kQueued   close
//
// Threads:    the poller alone while kUnused; links and state under the queue's lock from kQueued to the next state.
// Invariants: W1 `waker` is written by the poller only, under the lock; so the poller may compare it without. W2 whoever
//             takes a waiter from the queue copies its waker before the new state is published: after that the memory
//             of a poll form may be gone. W3 a future's waiter is queued while the operation's reference is
//             held; whoever takes it from the queue gives that back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.hpp"
#include "noria/waker.h"
#include "task/future.hpp"
#include "task/waker.hpp"

namespace noria::lock {

struct Waiter {
  enum State : std::uint32_t { kUnused, kQueued, kGranted, kGrantedAll, kClosed };
  enum Kind : std::uint32_t { kNone, kSemaphore, kNotify };

  Waiter* next = nullptr;  // guarded by the queue's lock
  Waiter* prev = nullptr;  // guarded by the queue's lock
  void* owner = nullptr;   // the semaphore or notify, as kind says; written by the poller
  Atomic<std::uint32_t> state{kUnused};
  std::uint32_t kind = kNone;  // written by the poller
  std::uint64_t count = 0;     // permits wanted
  noria_waker waker{};         // of a future: no vtable, the future as data

  Waiter() = default;
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  static Waiter& of(noria_waiter* waiter) { return *reinterpret_cast<Waiter*>(waiter); }

  std::uint32_t load_state() const {
    // ORDER: acquire, pairs with set_state: who sees a grant sees what its giver did before.
    return state.load(NORIA_ACQUIRE);
  }
  void set_state(State to) {
    // ORDER: release, the last touch of whoever takes it from the queue (W2).
    state.store(to, NORIA_RELEASE);
  }
  // Zeroes the words: ready for another wait. By the poller, when no queue has it.
  void reset() {
    next = prev = nullptr;
    owner = nullptr;
    kind = kNone;
    count = 0;
    waker = {};
    // ORDER: relaxed, the poller is alone with it.
    state.store(kUnused, NORIA_RELAXED);
  }
};
static_assert(sizeof(Waiter) == sizeof(noria_waiter), "a waiter is what the caller's eight words hold");
static_assert(alignof(Waiter) == alignof(noria_waiter), "a waiter is aligned as the caller's words are");

// First come, first served. Under its owner's lock.
class WaiterQueue {
 public:
  bool empty() const { return head_ == nullptr; }
  Waiter* front() const { return head_; }

  void push_back(Waiter& waiter) {
    waiter.next = nullptr;
    waiter.prev = tail_;
    (tail_ != nullptr ? tail_->next : head_) = &waiter;
    tail_ = &waiter;
  }

  void remove(Waiter& waiter) {
    (waiter.prev != nullptr ? waiter.prev->next : head_) = waiter.next;
    (waiter.next != nullptr ? waiter.next->prev : tail_) = waiter.prev;
  }

 private:
  Waiter* head_ = nullptr;
  Waiter* tail_ = nullptr;
};

// Who was taken from a queue under its lock and is told after it.
class WakeBatch {
 public:
  WakeBatch() = default;
  WakeBatch(const WakeBatch&) = delete;
  WakeBatch& operator=(const WakeBatch&) = delete;

  bool full() const { return count_ == kSize; }

  // Takes a waiter that has left the queue, and publishes `state`. False: it belongs to a future that was cancelled
  // meanwhile, so it got nothing. Under the lock, not when full.
  [[nodiscard]] bool add(Waiter& waiter, Waiter::State state) {
    noria_waker waker = waiter.waker;
    bool live = true;
    if (waker.vtable == nullptr) {
      live = static_cast<task::Future*>(waker.data)->claim();
      waker.extra = live ? waker.data : nullptr;
    }
    wakers_[count_++] = waker;
    waiter.set_state(live ? state : Waiter::kClosed);
    return live;
  }

  // Wakes the poll forms and finishes the futures. Without the lock. The batch is empty afterwards.
  void run(std::int32_t status) {
    for (std::size_t i = 0; i < count_; ++i) {
      noria_waker& waker = wakers_[i];
      if (waker.vtable != nullptr) {
        waker.vtable->wake(&waker);
      } else if (waker.extra != nullptr) {
        static_cast<task::Future*>(waker.data)->finish(status);
      } else {
        static_cast<task::Future*>(waker.data)->release();
      }
    }
    count_ = 0;
  }

 private:
  static constexpr std::size_t kSize = 32;
  noria_waker wakers_[kSize];
  std::size_t count_ = 0;
};

}  // namespace noria::lock
