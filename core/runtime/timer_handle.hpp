// timer_handle.hpp: a timer that is armed again and again: for one poll form and any number of wait futures.
//
// What the user has said (state_, deadline_ns_) is kept apart from what the wheel does (in_wheel_), because a timer
// that the wheel is letting go cannot be armed at once:
//
//   call       in the wheel                                    not in the wheel
//   reset      sooner than there: moves it; later: stays       arms it
//              (H5); too late: fire() looks again
//   cancel     moves it to never                               nothing
//   fire       READY if the user's deadline has passed, else arms it anew
//
// Threads:    any. wheel_lock_ serialises what is done to the wheel and guards the list of waits; lock_ guards what was said and is held for a few
//             writes only; wheel_lock_ comes first. A reset to later than in the wheel needs lock_ alone. fire and released by whoever runs the wheel.
// Invariants: H1 in_wheel_ is set from arming until fire() has begun; only who finds it clear arms. It changes under both locks. H2 a wait future is in
//             waits_ exactly while listed_; whoever takes it out of the list gives the operation's reference back.
//             H3 wakers and futures are told after lock_ is free. H4 while a waker is left the timer is in the wheel, so that
//             a shutdown, which clears the wheel, reaches it. H5 the deadline in the wheel is not later than the user's, or a
//             reset that has not returned is about to make it so: it reads both under lock_ after it has written the user's, and only cancel makes
//             the wheel's later, under both locks (and arm, of what is in no wheel). So it is the earliest that the user has said since it was armed there: moved on and on, as
//             time-outs are, a timer costs the wheel nothing, but for one look when that has passed.
// Lifetime:   counted: the handle, each wait future, and the wheel from arming to released().
#pragma once

#include <cstdint>

#include "base/counted.hpp"
#include "base/spin_lock.hpp"
#include "runtime/core.hpp"
#include "sync/mutex.hpp"
#include "timer/timer.hpp"

namespace noria::runtime {

class TimerHandle;

// A future that is ready when its timer fires. What derives from it brings its own ops.
class TimerWait : public task::Future {
 public:
  TimerWait(Core* core, TimerHandle* timer) : TimerWait(&kOps, core, timer) {}

 protected:
  TimerWait(const task::FutureOps* ops, Core* core, TimerHandle* timer);
  ~TimerWait();

  static void on_cancel(task::Future* future);

  // The deadline that has passed; once ready.
  std::uint64_t fired_ns() const { return fired_ns_; }

 private:
  friend class TimerHandle;

  static void on_destroy(task::Future* future) { static_cast<TimerWait*>(future)->~TimerWait(); }
  static const task::FutureOps kOps;

  TimerHandle* const timer_;
  TimerWait* next_ = nullptr;  // guarded by the timer's wheel_lock_, then by who has taken it out
  TimerWait* prev_ = nullptr;  // guarded by the timer's wheel_lock_
  std::uint64_t fired_ns_ = 0;
  bool listed_ = false;  // guarded by the timer's wheel_lock_
  bool won_ = false;     // by who has taken it out: claim() succeeded
};

class TimerHandle final : public Counted<TimerHandle>, private timer::Timer {
 public:
  explicit TimerHandle(Core* core) : Timer(&kTimerOps), core_(core) { live_add(Live::kTimers, 1); }
  ~TimerHandle() { live_add(Live::kTimers, -1); }

  Core* core() const { return core_; }

  void reset(std::uint64_t deadline_ns) {
    {
      SpinScope guard(lock_);
      state_ = State::kArmed;
      deadline_ns_ = deadline_ns;
      if (NORIA_LIKELY(!behind())) return;
    }
    move();
  }
  [[nodiscard]] std::int32_t cancel();  // -EALREADY: it has fired or was not armed
  [[nodiscard]] std::int32_t poll(const noria_cx* cx);
  // -NORIA_EBADSTATE: neither armed nor fired; -ENOMEM.
  [[nodiscard]] std::int32_t wait(task::Future** out);
  std::uint64_t deadline_ns() const;  // kNever: not armed

  // As poll without its budget: READY, PENDING with the waker left, -NORIA_ESHUTDOWN.
  [[nodiscard]] std::int32_t ready_or_leave(const noria_cx* cx);
  // A future that was just made enters the list, or ends at once.
  void begin(TimerWait& wait);
  // The handle goes: disarms, ends what waits, gives the reference back.
  void drop();

 private:
  friend class TimerWait;
  enum class State : std::uint8_t { kUnarmed, kArmed, kFired };

  static void on_fire(timer::Timer* timer) noexcept;
  static void on_released(timer::Timer* timer) noexcept;
  static const timer::TimerOps kTimerOps;

  // Armed, and not in the wheel, or at a later deadline (H5).
  bool behind() const NORIA_REQUIRES(lock_) {
    return state_ == State::kArmed && (!in_wheel_ || deadline_ns_ < Timer::deadline_ns());
  }
  void move() NORIA_EXCLUDES(wheel_lock_, lock_);
  void arm(std::uint64_t deadline_ns) NORIA_REQUIRES(wheel_lock_) NORIA_EXCLUDES(lock_);
  bool passed(std::uint64_t now_ns) NORIA_REQUIRES(lock_);
  TimerWait* take_waits(std::uint64_t fired_ns) NORIA_REQUIRES(wheel_lock_);
  bool take_fired(std::uint64_t now_ns, TimerWait*& waits, task::Waker& waker) NORIA_REQUIRES(wheel_lock_);
  void end_waiting();
  void unlist(TimerWait& wait) NORIA_REQUIRES(wheel_lock_);
  static void finish(TimerWait* taken, std::int32_t status);

  Core* const core_;
  sync::Mutex wheel_lock_;
  mutable SpinLock lock_;
  State state_ NORIA_GUARDED_BY(lock_) = State::kUnarmed;
  bool in_wheel_ NORIA_GUARDED_BY(lock_) = false;
  std::uint64_t deadline_ns_ NORIA_GUARDED_BY(lock_) = kNever;
  task::Waker waker_ NORIA_GUARDED_BY(lock_);  // of the poll form
  TimerWait* waits_ NORIA_GUARDED_BY(wheel_lock_) = nullptr;
};

}  // namespace noria::runtime
