// Thunks of waker.h; noria_waiter_drop stands with the locks.
#include "task/waker.hpp"
#include "check.hpp"
#include "noria/noria.h"
#include "runtime/thread_waker.hpp"
#include "task/context.hpp"
#include "task/task.hpp"

using namespace noria;

namespace {

// A waker that can be used: whole, and not that of a task or of a thread in block_on which was inherited through fork.
int32_t check(const noria_waker* waker) {
  if (!capi::usable(waker)) return -EINVAL;
  if (runtime::ThreadWaker::inherited(waker)) return -NORIA_EFORKED;
  if (waker->vtable != &task::kTaskWaker) return NORIA_OK;
  return capi::check_core(static_cast<const task::Task*>(waker->data)->home->core);
}

int32_t check(const noria_cx* cx) { return cx == nullptr ? -EINVAL : check(cx->waker); }

}  // namespace

int32_t noria_waker_clone(const noria_waker* waker, noria_waker* out) {
  if (out == nullptr) return -EINVAL;
  if (int32_t error = check(waker); error != NORIA_OK) return error;
  waker->vtable->clone(waker, out);
  return NORIA_OK;
}

int32_t noria_waker_wake(noria_waker* waker) {
  if (int32_t error = check(waker); error != NORIA_OK) return error;
  waker->vtable->wake(waker);
  return NORIA_OK;
}

int32_t noria_waker_wake_by_ref(const noria_waker* waker) {
  if (int32_t error = check(waker); error != NORIA_OK) return error;
  waker->vtable->wake_by_ref(waker);
  return NORIA_OK;
}

int32_t noria_waker_drop(noria_waker* waker) {
  if (int32_t error = check(waker); error != NORIA_OK) return error;
  waker->vtable->drop(waker);
  return NORIA_OK;
}

int32_t noria_waker_will_wake(const noria_waker* a, const noria_waker* b) {
  if (!capi::usable(a) || !capi::usable(b)) return -EINVAL;
  return task::will_wake(*a, *b) ? 1 : 0;
}

int32_t noria_cx_wake(const noria_cx* cx) {
  if (int32_t error = check(cx); error != NORIA_OK) return error;
  cx->waker->vtable->wake_by_ref(cx->waker);
  return NORIA_OK;
}

int32_t noria_yield(const noria_cx* cx) {
  if (int32_t error = check(cx); error != NORIA_OK) return error;
  cx->waker->vtable->wake_by_ref(cx->waker);
  return NORIA_PENDING;
}

int32_t noria_budget_poll(const noria_cx* cx) {
  if (int32_t error = check(cx); error != NORIA_OK) return error;
  return task::budget_poll(cx) ? NORIA_READY : NORIA_PENDING;
}

int32_t noria_budget_restore(void) {
  task::budget_restore(task::t_context);
  return NORIA_OK;
}

int32_t noria_budget_spent(void) { return task::t_context.budgeted && task::t_context.budget_spent ? 1 : 0; }
