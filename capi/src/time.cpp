#include "noria/time.h"

#include "check.hpp"
#include "runtime/interval.hpp"
#include "runtime/sleep.hpp"
#include "runtime/timer_handle.hpp"

using namespace noria;
using capi::check_core;
using capi::check_open;
using capi::give_future;
using capi::usable;
using runtime::Core;
using runtime::Interval;
using runtime::TimerHandle;

namespace {

TimerHandle* of(noria_timer* timer) { return reinterpret_cast<TimerHandle*>(timer); }
const TimerHandle* of(const noria_timer* timer) { return reinterpret_cast<const TimerHandle*>(timer); }
Interval* of(noria_interval* interval) { return reinterpret_cast<Interval*>(interval); }

}  // namespace

std::int32_t noria_now(noria_runtime* rt, std::uint64_t* out) {
  if (out == nullptr) return -EINVAL;
  Core* core;
  if (std::int32_t error = capi::resolve(rt, core); error != NORIA_OK) return error;
  if (!core->time_enabled()) return -NORIA_ENODRIVER;
  *out = core->now_ns();
  return NORIA_OK;
}

std::int32_t noria_sleep(noria_runtime* rt, std::uint64_t duration_ns, noria_future** out) {
  if (out == nullptr) return -EINVAL;
  Core* core;
  if (std::int32_t error = capi::resolve_time(rt, core); error != NORIA_OK) return error;
  task::Future* future = nullptr;
  std::uint64_t now_ns = core->now_ns();
  return give_future(runtime::Sleep::until(*core, saturating_add(now_ns, duration_ns), now_ns, &future), future, out);
}

std::int32_t noria_sleep_until(noria_runtime* rt, std::uint64_t deadline_ns, noria_future** out) {
  if (out == nullptr) return -EINVAL;
  Core* core;
  if (std::int32_t error = capi::resolve_time(rt, core); error != NORIA_OK) return error;
  task::Future* future = nullptr;
  return give_future(runtime::Sleep::until(*core, deadline_ns, core->now_ns(), &future), future, out);
}

std::int32_t noria_timer_new(noria_runtime* rt, noria_timer** out) {
  if (out == nullptr) return -EINVAL;
  Core* core;
  if (std::int32_t error = capi::resolve_time(rt, core); error != NORIA_OK) return error;
  auto* timer = core->make<TimerHandle>(SlotKind::kOther, core);
  if (timer == nullptr) return -ENOMEM;
  *out = reinterpret_cast<noria_timer*>(timer);
  return NORIA_OK;
}

std::int32_t noria_timer_reset(noria_timer* timer, std::uint64_t deadline_ns) {
  if (timer == nullptr) return -EINVAL;
  if (std::int32_t error = check_open(of(timer)->core()); error != NORIA_OK) return error;
  of(timer)->reset(deadline_ns);
  return NORIA_OK;
}

std::int32_t noria_timer_cancel(noria_timer* timer) {
  if (timer == nullptr) return -EINVAL;
  if (std::int32_t error = check_core(of(timer)->core()); error != NORIA_OK) return error;
  return of(timer)->cancel();
}

std::int32_t noria_timer_poll_wait(noria_timer* timer, const noria_cx* cx) {
  if (timer == nullptr || !usable(cx)) return -EINVAL;
  if (std::int32_t error = check_core(of(timer)->core()); error != NORIA_OK) return error;
  return of(timer)->poll(cx);
}

std::int32_t noria_timer_wait(noria_timer* timer, noria_future** out) {
  if (timer == nullptr || out == nullptr) return -EINVAL;
  if (std::int32_t error = check_open(of(timer)->core()); error != NORIA_OK) return error;
  task::Future* future = nullptr;
  return give_future(of(timer)->wait(&future), future, out);
}

std::int32_t noria_timer_deadline(const noria_timer* timer, std::uint64_t* out) {
  if (timer == nullptr || out == nullptr) return -EINVAL;
  if (std::int32_t error = check_core(of(timer)->core()); error != NORIA_OK) return error;
  *out = of(timer)->deadline_ns();
  return NORIA_OK;
}

std::int32_t noria_timer_drop(noria_timer* timer) {
  if (timer == nullptr) return -EINVAL;
  if (std::int32_t error = check_core(of(timer)->core()); error != NORIA_OK) return error;
  of(timer)->drop();
  return NORIA_OK;
}

std::int32_t noria_interval_new(noria_runtime* rt, std::uint64_t first_ns, std::uint64_t period_ns,
                                std::uint32_t missed, noria_interval** out) {
  if (out == nullptr || period_ns == 0 || missed > NORIA_MISSED_SKIP) return -EINVAL;
  Core* core;
  if (std::int32_t error = capi::resolve_time(rt, core); error != NORIA_OK) return error;
  Interval* interval = nullptr;
  if (std::int32_t error = Interval::create(*core, first_ns, period_ns, missed, &interval); error != NORIA_OK)
    return error;
  *out = reinterpret_cast<noria_interval*>(interval);
  return NORIA_OK;
}

std::int32_t noria_interval_poll_tick(noria_interval* interval, const noria_cx* cx, std::uint64_t* instant_ns) {
  if (interval == nullptr || !usable(cx) || instant_ns == nullptr) return -EINVAL;
  if (std::int32_t error = check_open(of(interval)->core()); error != NORIA_OK) return error;
  return of(interval)->poll_tick(cx, instant_ns);
}

std::int32_t noria_interval_tick(noria_interval* interval, noria_future** out) {
  if (interval == nullptr || out == nullptr) return -EINVAL;
  if (std::int32_t error = check_open(of(interval)->core()); error != NORIA_OK) return error;
  task::Future* future = nullptr;
  return give_future(of(interval)->tick(&future), future, out);
}

std::int32_t noria_interval_reset(noria_interval* interval) {
  if (interval == nullptr) return -EINVAL;
  if (std::int32_t error = check_open(of(interval)->core()); error != NORIA_OK) return error;
  of(interval)->reset();
  return NORIA_OK;
}

std::int32_t noria_interval_drop(noria_interval* interval) {
  if (interval == nullptr) return -EINVAL;
  if (std::int32_t error = check_core(of(interval)->core()); error != NORIA_OK) return error;
  of(interval)->release();
  return NORIA_OK;
}

std::int32_t noria_clock_pause(noria_runtime* rt) {
  Core* core;
  if (std::int32_t error = capi::resolve_time(rt, core); error != NORIA_OK) return error;
  if (core->clock().paused()) return -EALREADY;
  core->clock().pause();
  core->clock_changed();
  return NORIA_OK;
}

std::int32_t noria_clock_advance(noria_runtime* rt, std::uint64_t delta_ns) {
  Core* core;
  if (std::int32_t error = capi::resolve_time(rt, core); error != NORIA_OK) return error;
  if (!core->clock().paused()) return -NORIA_EBADSTATE;
  core->clock().advance(delta_ns);
  core->clock_changed();
  return NORIA_OK;
}

std::int32_t noria_clock_resume(noria_runtime* rt) {
  Core* core;
  if (std::int32_t error = capi::resolve_time(rt, core); error != NORIA_OK) return error;
  if (!core->clock().paused()) return -NORIA_EBADSTATE;
  core->clock().resume();
  core->clock_changed();
  return NORIA_OK;
}
