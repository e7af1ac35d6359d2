#include "runtime/timer_handle.hpp"

#include <cerrno>
#include <utility>

namespace noria::runtime {

const timer::TimerOps TimerHandle::kTimerOps = {on_fire, on_released};

// Brings the wheel to what was said last, by whomever.
void TimerHandle::move() {
  sync::MutexLock in_turn(wheel_lock_);
  std::uint64_t deadline_ns;
  bool in_wheel;
  {
    SpinScope guard(lock_);
    if (!behind()) return;
    deadline_ns = deadline_ns_;
    in_wheel = in_wheel_;
  }
  if (!in_wheel) return arm(deadline_ns);
  (void)core_->timer_reset(*this, deadline_ns);  // too late: fire() is on its way and looks at deadline_ns_
}

void TimerHandle::arm(std::uint64_t deadline_ns) {
  ref();
  bool armed = core_->timer_arm(*this, deadline_ns);
  {
    SpinScope guard(lock_);
    in_wheel_ = armed;
  }
  if (!armed) release();  // the runtime is closing; the caller has a reference of its own
}

std::int32_t TimerHandle::cancel() {
  TimerWait* waits;
  {
    sync::MutexLock in_turn(wheel_lock_);
    {
      SpinScope guard(lock_);
      if (state_ != State::kArmed) return -EALREADY;
      state_ = State::kUnarmed;
      deadline_ns_ = kNever;
      if (in_wheel_) (void)core_->timer_reset(*this, kNever);  // to later: takes no lock and rings nobody
    }
    waits = take_waits(kNever);
  }
  finish(waits, -ECANCELED);
  return NORIA_OK;
}

// Whether it has fired, or would have if the wheel had been looked at just now. The clock may be the user's: it is asked before the lock is
// taken. What has passed since then fires from the wheel.
bool TimerHandle::passed(std::uint64_t now_ns) {
  if (state_ == State::kArmed && deadline_ns_ <= now_ns) state_ = State::kFired;
  return state_ == State::kFired;
}

std::int32_t TimerHandle::poll(const noria_cx* cx) {
  if (!task::budget_poll(cx)) return NORIA_PENDING;
  std::int32_t result = ready_or_leave(cx);
  if (result == NORIA_PENDING) task::budget_restore(task::t_context);
  return result;
}

std::int32_t TimerHandle::ready_or_leave(const noria_cx* cx) {
  std::uint64_t now_ns = core_->now_ns();
  {
    SpinScope guard(lock_);
    if (passed(now_ns)) return NORIA_READY;
    if (waker_.wakes_same(*cx->waker)) return NORIA_PENDING;
  }
  task::Waker waker(*cx->waker);  // foreign code: not under the lock; the old one is dropped after it, too
  sync::MutexLock in_turn(wheel_lock_);
  std::uint64_t deadline_ns;
  bool in_wheel;
  {
    SpinScope guard(lock_);
    if (passed(now_ns)) return NORIA_READY;
    deadline_ns = deadline_ns_;
    in_wheel = in_wheel_;
  }
  // In the wheel even if unarmed: whoever waits is told of a shutdown by on_released.
  if (!in_wheel) arm(deadline_ns);
  SpinScope guard(lock_);
  if (core_->closed()) return -NORIA_ESHUTDOWN;  // on_released may have been here before us
  std::swap(waker_, waker);
  return NORIA_PENDING;
}

std::int32_t TimerHandle::wait(task::Future** out) {
  {
    SpinScope guard(lock_);
    if (state_ == State::kUnarmed) return -NORIA_EBADSTATE;
  }
  TimerWait* future = core_->make_future<TimerWait>(this);
  if (future == nullptr) return -ENOMEM;
  *out = future;
  begin(*future);
  return NORIA_OK;
}

void TimerHandle::begin(TimerWait& wait) {
  std::int32_t status = -ECANCELED;
  std::uint64_t now_ns = core_->now_ns();
  {
    sync::MutexLock in_turn(wheel_lock_);
    SpinScope guard(lock_);
    // A cancel that came before this did not find it in the list and left the reference to us.
    if (!wait.claimed() && state_ != State::kUnarmed) {
      wait.fired_ns_ = deadline_ns_;
      status = NORIA_OK;
      if (!passed(now_ns)) {
        wait.next_ = waits_;
        if (waits_ != nullptr) waits_->prev_ = &wait;
        waits_ = &wait;
        wait.listed_ = true;
        return;
      }
    }
  }
  if (wait.claim()) return wait.finish(status);
  wait.release();
}

std::uint64_t TimerHandle::deadline_ns() const {
  SpinScope guard(lock_);
  return state_ == State::kArmed ? deadline_ns_ : kNever;
}

void TimerHandle::drop() {
  TimerWait* waits;
  bool in_wheel;
  task::Waker waker;
  {
    sync::MutexLock in_turn(wheel_lock_);  // who is arming it has done so
    {
      SpinScope guard(lock_);
      state_ = State::kUnarmed;  // fire() arms it no more
      in_wheel = in_wheel_;
      waker = std::move(waker_);
    }
    waits = take_waits(kNever);
  }
  if (in_wheel) (void)core_->timer_cancel(*this);
  finish(waits, -ECANCELED);
  release();
}

TimerWait* TimerHandle::take_waits(std::uint64_t fired_ns) {
  for (TimerWait* wait = waits_; wait != nullptr; wait = wait->next_) {
    wait->listed_ = false;
    wait->won_ = wait->claim();
    wait->fired_ns_ = fired_ns;
  }
  return std::exchange(waits_, nullptr);
}

void TimerHandle::unlist(TimerWait& wait) {
  (wait.prev_ != nullptr ? wait.prev_->next_ : waits_) = wait.next_;
  if (wait.next_ != nullptr) wait.next_->prev_ = wait.prev_;
  wait.listed_ = false;
}

void TimerHandle::finish(TimerWait* taken, std::int32_t status) {
  while (taken != nullptr) {
    TimerWait* wait = std::exchange(taken, taken->next_);
    if (wait->won_) {
      wait->Future::finish(status);
    } else {
      wait->release();
    }
  }
}

// False: there is nobody to tell, since it was cancelled or moved to later; in the wheel it goes on waiting (H4).
bool TimerHandle::take_fired(std::uint64_t now_ns, TimerWait*& waits, task::Waker& waker) {
  std::uint64_t deadline_ns;
  bool fired;
  {
    SpinScope guard(lock_);
    in_wheel_ = false;
    if (state_ == State::kUnarmed && !waker_) return false;
    deadline_ns = deadline_ns_;
    fired = passed(now_ns);
    if (fired) waker = std::move(waker_);
  }
  if (fired) {
    waits = take_waits(deadline_ns);
  } else {
    arm(deadline_ns);
  }
  return fired;
}

void TimerHandle::on_fire(timer::Timer* timer) noexcept {
  auto* self = static_cast<TimerHandle*>(timer);
  TimerWait* waits = nullptr;
  task::Waker waker;
  std::uint64_t now_ns = self->core_->now_ns();
  {
    sync::MutexLock in_turn(self->wheel_lock_);
    if (!self->take_fired(now_ns, waits, waker)) return;
  }
  waker.wake();
  finish(waits, NORIA_OK);
}

void TimerHandle::on_released(timer::Timer* timer) noexcept {
  auto* self = static_cast<TimerHandle*>(timer);
  if (self->core_->closed()) self->end_waiting();
  self->release();
}

// The runtime ends: the wheel may be cleared, and nobody else would wake whoever waits.
void TimerHandle::end_waiting() {
  TimerWait* waits;
  task::Waker waker;
  {
    sync::MutexLock in_turn(wheel_lock_);
    waits = take_waits(kNever);
    SpinScope guard(lock_);
    waker = std::move(waker_);
  }
  waker.wake();
  finish(waits, -ECANCELED);
}

const task::FutureOps TimerWait::kOps = {on_cancel, nullptr, on_destroy, 0, false, "timer wait"};

TimerWait::TimerWait(const task::FutureOps* ops, Core* core, TimerHandle* timer) : Future(ops, core), timer_(timer) {
  timer->ref();
}

TimerWait::~TimerWait() { timer_->release(); }

void TimerWait::on_cancel(task::Future* future) {
  auto* self = static_cast<TimerWait*>(future);
  if (!self->claim()) return;
  bool listed;
  {
    sync::MutexLock in_turn(self->timer_->wheel_lock_);
    listed = self->listed_;
    if (listed) self->timer_->unlist(*self);
  }
  self->publish(-ECANCELED);
  if (listed) self->release();
}

}  // namespace noria::runtime
