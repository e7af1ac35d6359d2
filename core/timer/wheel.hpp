// wheel.hpp: the timers of one worker: 7 levels of 64 slots, a tick of 1 ms.
// Threads:    arm by who may take the lock: the worker that owns the wheel (ownership moves between
//             calls), or for the guest wheel any thread outside. cancel and reset from any thread:
//             with `mine` the caller's own wheel, so that only the owner ever waits for the lock;
//             everyone else goes through the timer's word and the inbox. advance by the owner,
//             try_advance by who acts for it (poller, sentry). next_deadline_ns, due, size from any
//             thread.
// Invariants: never early, late by at most a tick (P6); never allocates; nothing is called under lock_.
//             E1 next_deadline_ns() is never later than the earliest deadline, rounded up to the tick. It may be early, once
//                for each timer that was cancelled or reset to later.
//             E2 one call fires and places at most kBatch timers; besides it places a part of the fresh ones (kFreshPart), and moves ahead of
//                their time as many of each level as calls have moved, and kAhead (kMostAhead).
//             E3 before a timer fires, those of earlier ticks are placed: fresh ones wait as long as none of them is due. No timer is fresh that is
//                due within kNear ticks, but behind others that are due before it: by then looks have placed what is older.
// Lifetime:   outlives its timers' armings: clear() until it is empty, then it may go.
// Source:     G. Varghese and T. Lauck, "Hashed and Hierarchical Timing Wheels", scheme 7.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/allocated.hpp"
#include "base/atomic.hpp"
#include "base/platform.hpp"
#include "base/thread_safety.hpp"
#include "sync/mutex.hpp"
#include "timer/inbox.hpp"
#include "timer/slots.hpp"
#include "timer/timer.hpp"

namespace noria::timer {

enum class Armed {
  kLater,     // somebody's deadline is earlier still
  kEarliest,  // this is the wheel's earliest: whoever sleeps for it must look again
  kClosed,    // not armed, the wheel was cleared; the reference stays with the caller
};

enum class Arming {
  kFresh,  // if it is due much later, it is placed when many have come together, or before it is due: most are cancelled before
  kPlaced,  // at once: nobody looks at the wheel in between
};

enum class Reset {
  kLater,     // done, no sleeper needs to know
  kEarliest,  // done, and whoever sleeps for timer.wheel must look again
  kFired,     // too late; arm again only after fire() has begun
  kCancelled  // too late; arm again only when idle()
};

enum class Advanced {
  kDone,  // nothing more is due
  kMore,  // the batch was full: call again
  kBusy,  // try_advance only: somebody else is at it
};

class Wheel : public Allocated {
 public:
  static constexpr int kBatch = 256;            // timers moved under the lock by one call
  static constexpr int kAhead = 32;             // of each level, ahead of their time, beside as many as were moved
  static constexpr int kMostAhead = 4096;       // in one call
  static constexpr std::uint64_t kNear = 1024;  // ticks
  static constexpr std::size_t kFresh = 1024;   // timers that may wait to be placed until something is due
  static constexpr std::size_t kFreshPart =
      64;  // of more than those one call places this part: in half a second of looks all of them
  static constexpr std::size_t kMostFresh = 32768;  // but no more
  static constexpr int kSettle = 32;                // timers looked at to make the hint exact

  // `host` is whom the wheel belongs to, for whoever has to wake them; the wheel does not use it.
  explicit Wheel(std::uint64_t start_ns, void* host = nullptr);
  ~Wheel();
  Wheel(const Wheel&) = delete;
  Wheel& operator=(const Wheel&) = delete;

  // The timer is idle(); its reference for the wheel is taken. A deadline that is not later than
  // what the wheel was last told is due at the next advance.
  [[nodiscard]] Armed arm(Timer& timer, std::uint64_t deadline_ns, Arming arming = Arming::kFresh);

  // True: cancel won, fire() will not be called; released() comes, or has come, by itself: inside
  // this call if `mine` is the timer's wheel. False: it had fired or was cancelled before.
  static bool cancel(Timer& timer, Wheel* mine);

  // Moves the deadline of an armed timer; kNever pauses it. Later costs no lock, whoever calls. A
  // fire that meets a running reset may go by either deadline; if it wins, the reset says kFired.
  [[nodiscard]] static Reset reset(Timer& timer, std::uint64_t deadline_ns, Wheel* mine);

  // Collects what is due at `now_ns`, in order of deadlines' ticks. Time does not go back: an older
  // `now_ns` counts as the newest. The caller runs `out` after it, with no lock held.
  [[nodiscard]] Advanced advance(std::uint64_t now_ns, Expired& out);
  [[nodiscard]] Advanced try_advance(std::uint64_t now_ns, Expired& out);

  // When to call advance next; kNever if nothing is armed. Best right after an advance.
  std::uint64_t next_deadline_ns() const { return inbox_.earliest_ns(); }

  // Whether an advance would find something: a deadline, cancelled timers to let go, or many to be placed.
  bool due(std::uint64_t now_ns) const {
    // ORDER: relaxed, a hint: missed, the next look finds it.
    return inbox_.earliest_ns() <= now_ns || !inbox_.empty() || fresh_.load(NORIA_RELAXED) > kFresh;
  }

  // By the owner, who has nothing else to do: places a batch if more than kFresh wait for it, and says whether it has.
  bool place_some();

  // Shutdown: cancels everything and refuses what comes after. True while timers are still held:
  // run `out` and call again (another thread may be in the middle of a cancel).
  [[nodiscard]] bool clear(Expired& out);

  // Timers that the wheel points at, cancelled ones in the inbox included.
  // ORDER: relaxed, a figure for metrics; clear() reads it under the lock.
  std::size_t size() const { return size_.load(NORIA_RELAXED); }

  void* host() const { return host_; }

 private:
  bool cancel_mine(Timer& timer, bool& decided) NORIA_EXCLUDES(lock_);
  Reset reset_mine(Timer& timer, std::uint64_t deadline_ns) NORIA_EXCLUDES(lock_);
  Advanced advance_locked(std::uint64_t now_ns, Expired& out) NORIA_REQUIRES(lock_);
  void place_later(Timer& timer, std::uint64_t tick) NORIA_REQUIRES(lock_);
  int place_cascade(int budget) NORIA_REQUIRES(lock_);
  int place_fresh(int budget) NORIA_REQUIRES(lock_);
  int fresh_part() const NORIA_REQUIRES(lock_);
  void cascade_ahead() NORIA_REQUIRES(lock_);
  void drain_one(Expired& out) NORIA_REQUIRES(lock_);
  void expire_one(Timer& timer, Expired& out) NORIA_REQUIRES(lock_);
  void let_go(Timer& timer, Expired& out) NORIA_REQUIRES(lock_);
  void count(std::size_t delta) NORIA_REQUIRES(lock_);

  alignas(kCacheLine) sync::Mutex lock_;
  bool closed_ NORIA_GUARDED_BY(lock_) = false;
  Atomic<bool> stale_{false};     // the earliest timer was cancelled or reset: worth a closer look
  Atomic<std::size_t> fresh_{0};  // came since none was left to be placed, gone ones included; written under lock_
  Atomic<std::size_t> size_{0};   // written under lock_
  std::uint64_t now_ns_ NORIA_GUARDED_BY(lock_);    // the newest that it was told
  int moved_ NORIA_GUARDED_BY(lock_) = 0;           // by calls, and not yet made up for ahead
  Timer* taken_ NORIA_GUARDED_BY(lock_) = nullptr;  // out of the inbox, not yet drained
  void* const host_;                                // immutable
  Slots slots_ NORIA_GUARDED_BY(lock_);
  alignas(kCacheLine) Inbox<Timer> inbox_;
};

}  // namespace noria::timer
