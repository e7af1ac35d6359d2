#include "runtime/sleep.hpp"

#include <cerrno>

namespace noria::runtime {

const task::FutureOps Sleep::kOps = {on_cancel, nullptr, on_destroy, 0, false, "sleep"};
const timer::TimerOps Sleep::kTimerOps = {on_fire, on_released};

std::int32_t Sleep::until(Core& core, std::uint64_t deadline_ns, std::uint64_t now_ns, task::Future** out) {
  Sleep* sleep = core.make_future<Sleep>();
  if (sleep == nullptr) return -ENOMEM;
  *out = sleep;
  std::int32_t status = NORIA_OK;
  if (deadline_ns > now_ns) {
    if (core.timer_arm(*sleep, deadline_ns)) return NORIA_OK;
    status = -ECANCELED;  // the runtime is closing
  }
  if (sleep->claim()) sleep->publish(status);
  sleep->release();
  return NORIA_OK;
}

void Sleep::on_cancel(task::Future* future) {
  auto* self = static_cast<Sleep*>(future);
  if (!self->claim()) return;
  // True or false, released() comes by itself; until() may also be about to arm it, then it fires or goes unseen.
  (void)self->core()->timer_cancel(*self);
  self->publish(-ECANCELED);
}

void Sleep::on_fire(timer::Timer* timer) noexcept {
  auto* self = static_cast<Sleep*>(timer);
  if (self->claim()) self->publish(NORIA_OK);
}

void Sleep::on_released(timer::Timer* timer) noexcept {
  auto* self = static_cast<Sleep*>(timer);
  // Neither fired nor cancelled by us: the wheel was shut down.
  if (self->claim()) self->publish(-ECANCELED);
  self->release();
}

}  // namespace noria::runtime
