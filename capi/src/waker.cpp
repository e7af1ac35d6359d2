// Thunks of waker.h; noria_waiter_drop stands with the locks.
#include "task/waker.hpp"
#include "check.hpp"
#include "noria/noria.h"
#include "task/context.hpp"

using namespace noria;

int32_t noria_waker_clone(const noria_waker* waker, noria_waker* out) {
  if (!capi::usable(waker) || out == nullptr) return -EINVAL;
  waker->vtable->clone(waker, out);
  return NORIA_OK;
}

int32_t noria_waker_wake(noria_waker* waker) {
  if (!capi::usable(waker)) return -EINVAL;
  waker->vtable->wake(waker);
  return NORIA_OK;
}

int32_t noria_waker_wake_by_ref(const noria_waker* waker) {
  if (!capi::usable(waker)) return -EINVAL;
  waker->vtable->wake_by_ref(waker);
  return NORIA_OK;
}

int32_t noria_waker_drop(noria_waker* waker) {
  if (!capi::usable(waker)) return -EINVAL;
  waker->vtable->drop(waker);
  return NORIA_OK;
}

int32_t noria_waker_will_wake(const noria_waker* a, const noria_waker* b) {
  if (!capi::usable(a) || !capi::usable(b)) return -EINVAL;
  return task::will_wake(*a, *b) ? 1 : 0;
}

int32_t noria_cx_wake(const noria_cx* cx) {
  if (!capi::usable(cx)) return -EINVAL;
  cx->waker->vtable->wake_by_ref(cx->waker);
  return NORIA_OK;
}

int32_t noria_yield(const noria_cx* cx) {
  if (!capi::usable(cx)) return -EINVAL;
  cx->waker->vtable->wake_by_ref(cx->waker);
  return NORIA_PENDING;
}

int32_t noria_budget_poll(const noria_cx* cx) {
  if (!capi::usable(cx)) return -EINVAL;
  return task::budget_poll(cx) ? NORIA_READY : NORIA_PENDING;
}

int32_t noria_budget_restore(void) {
  task::budget_restore(task::t_context);
  return NORIA_OK;
}

int32_t noria_budget_spent(void) { return task::t_context.budgeted && task::t_context.budget_spent ? 1 : 0; }
