// timer.hpp: the intrusive timer, and the list of those that a wheel has let go.
// Threads:    embedded in a future or timer object; see word.hpp for who may call what.
// Lifetime:   the object takes one reference for the wheel before arm() and drops it in released(),
//             which comes exactly once per arming, after the wheel's last use of the timer. So a
//             cancel from another thread may be followed at once by dropping one's own reference.
//             Whoever calls cancel or reset holds a reference of its own during the call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "timer/word.hpp"

namespace noria::timer {

class Wheel;
struct Timer;

// Neither is called under a lock; both may arm, reset and cancel timers, this one too.
struct TimerOps {
  // The deadline has passed. Once per arming unless cancel or shutdown won.
  void (*fire)(Timer* timer) noexcept;
  // The wheel no longer points at the timer. Once per arming, after fire if that came; may free it.
  // When nobody cancelled, a phase of CANCELLED here means that the wheel was shut down.
  void (*released)(Timer* timer) noexcept;
};

// Ring of a slot. An unlinked timer in an Expired list uses `next` only.
struct TimerLink {
  TimerLink* next = nullptr;  // guarded by the wheel's lock, then by who holds the list
  TimerLink* prev = nullptr;
};

struct Timer : TimerLink {
  explicit Timer(const TimerOps* timer_ops) : ops(timer_ops) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // No wheel points at it: it may be armed, or go.
  bool idle() const { return (word.load() & TimerWord::kFlags) == 0; }
  bool armed() const { return TimerWord::armed(word.load()); }
  bool fired() const { return (word.load() & TimerWord::kPhase) == TimerWord::kFired; }
  bool cancelled() const { return (word.load() & TimerWord::kPhase) == TimerWord::kCancelled; }
  // Of a timer that is not armed: maybe that of a reset that came too late.
  std::uint64_t deadline_ns() const { return word.deadline_ns(); }

  Timer* inbox_next = nullptr;    // see inbox.hpp
  TimerWord word;                 // state and deadline
  Atomic<Wheel*> wheel{nullptr};  // written by arm before the word
  const TimerOps* const ops;      // immutable
};

static_assert(sizeof(Timer) == 56, "a timer and a reference count share a cache line");

// Timers whose callbacks are due, in order. Filled by a wheel under its lock, run without it.
class Expired {
 public:
  Expired() = default;
  ~Expired();  // asserts that it is empty
  Expired(const Expired&) = delete;
  Expired& operator=(const Expired&) = delete;

  bool empty() const { return head_ == nullptr; }

  void append(Timer& timer) {
    timer.next = nullptr;
    *tail_ = &timer;
    tail_ = &timer.next;
  }

  // Calls fire and released of each; returns how many fired. Never under a lock.
  std::size_t run();

 private:
  TimerLink* head_ = nullptr;
  TimerLink** tail_ = &head_;
};

}  // namespace noria::timer
