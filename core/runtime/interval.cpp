#include "runtime/interval.hpp"

#include <cerrno>

#include "noria/time.h"

namespace noria::runtime {

class IntervalTick final : public TimerWait {
 public:
  IntervalTick(Core* core, Interval* interval) : TimerWait(&kOps, core, interval->timer_), interval_(interval) {
    interval->ref();
  }
  ~IntervalTick() {
    interval_->forget(this);
    interval_->release();
  }

 private:
  static void on_result(task::Future* future, void* out) {
    auto* self = static_cast<IntervalTick*>(future);
    *static_cast<std::uint64_t*>(out) = self->fired_ns();
    self->interval_->took(self->fired_ns());
  }
  static void on_told(task::Future* future) {
    auto* self = static_cast<IntervalTick*>(future);
    if (self->status() == NORIA_OK) self->interval_->took(self->fired_ns());
  }
  static void on_destroy(task::Future* future) { static_cast<IntervalTick*>(future)->~IntervalTick(); }
  static const task::FutureOps kOps;

  Interval* const interval_;
};

const task::FutureOps IntervalTick::kOps = {on_cancel, on_result,       on_destroy, sizeof(std::uint64_t),
                                            false,     "interval tick", on_told};

std::int32_t Interval::create(Core& core, std::uint64_t first_ns, std::uint64_t period_ns, std::uint32_t missed,
                              Interval** out) {
  TimerHandle* timer = core.make<TimerHandle>(SlotKind::kOther, &core);
  if (timer == nullptr) return -ENOMEM;
  if (first_ns == 0) first_ns = core.now_ns();
  *out = core.make<Interval>(SlotKind::kOther, &core, timer, first_ns, period_ns, missed);
  if (*out != nullptr) return NORIA_OK;
  timer->drop();
  return -ENOMEM;
}

// What follows a tick that was reported at `now_ns`.
void Interval::step(std::uint64_t now_ns) {
  switch (missed_) {
    case NORIA_MISSED_DELAY:
      next_ns_ = saturating_add(now_ns, period_ns_);
      return;
    case NORIA_MISSED_SKIP:
      if (now_ns > next_ns_) next_ns_ += (now_ns - next_ns_) / period_ns_ * period_ns_;
      [[fallthrough]];
    default:
      next_ns_ = saturating_add(next_ns_, period_ns_);
  }
}

bool Interval::take_due(std::uint64_t& instant_ns) {
  std::uint64_t now_ns = core_->now_ns();  // maybe the user's clock: not under the lock
  sync::MutexLock guard(lock_);
  if (next_ns_ > now_ns) return false;
  instant_ns = next_ns_;
  step(now_ns);
  return true;
}

// Arms the timer for the next tick, unless it is.
void Interval::arm() {
  sync::MutexLock guard(lock_);
  if (timer_->deadline_ns() != next_ns_ || next_ns_ == kNever) timer_->reset(next_ns_);
}

std::int32_t Interval::poll_tick(const noria_cx* cx, std::uint64_t* instant_ns) {
  if (!task::budget_poll(cx)) return NORIA_PENDING;
  std::int32_t result;
  do {
    if (take_due(*instant_ns)) return NORIA_READY;
    arm();
    result = timer_->ready_or_leave(cx);
  } while (result == NORIA_READY);
  if (result == NORIA_PENDING) task::budget_restore(task::t_context);
  return result;
}

std::int32_t Interval::tick(task::Future** out) {
  {
    sync::MutexLock guard(lock_);
    if (latest_ != nullptr && !latest_->ready()) return -EBUSY;
  }
  IntervalTick* future = core_->make_future<IntervalTick>(this);
  if (future == nullptr) return -ENOMEM;
  {
    sync::MutexLock guard(lock_);
    latest_ = future;
  }
  arm();
  *out = future;
  timer_->begin(*future);
  return NORIA_OK;
}

void Interval::forget(const task::Future* tick) {
  sync::MutexLock guard(lock_);
  if (latest_ == tick) latest_ = nullptr;
}

// A tick was taken: the interval goes on behind it.
void Interval::took(std::uint64_t instant_ns) {
  std::uint64_t now_ns = core_->now_ns();
  sync::MutexLock guard(lock_);
  if (next_ns_ == instant_ns) step(now_ns);
}

void Interval::reset() {
  std::uint64_t now_ns = core_->now_ns();
  sync::MutexLock guard(lock_);
  next_ns_ = saturating_add(now_ns, period_ns_);
  timer_->reset(next_ns_);
}

}  // namespace noria::runtime
