#include "noria/sync.h"

#include "channel/oneshot.hpp"
#include "check.hpp"
#include "lock/notify.hpp"
#include "lock/semaphore.hpp"

using namespace noria;
using capi::check_core;
using capi::check_open;
using capi::give_future;
using capi::usable;
using channel::Oneshot;
using lock::Notify;
using lock::Semaphore;
using lock::Waiter;
using runtime::Core;

namespace {

Semaphore* of(noria_semaphore* semaphore) { return reinterpret_cast<Semaphore*>(semaphore); }
Notify* of(noria_notify* notify) { return reinterpret_cast<Notify*>(notify); }
Oneshot* of(noria_oneshot_sender* sender) { return reinterpret_cast<Oneshot*>(sender); }
Oneshot* of(noria_oneshot_receiver* receiver) { return reinterpret_cast<Oneshot*>(receiver); }

template <typename Handle>
std::int32_t check(Handle* handle) {
  return handle == nullptr ? -EINVAL : check_core(of(handle)->core());
}

template <typename Owner>
std::int32_t forget(Waiter& waiter) {
  auto* owner = static_cast<Owner*>(waiter.owner);
  if (std::int32_t error = check_core(owner->core()); error != NORIA_OK) return error;
  owner->forget(waiter);
  return NORIA_OK;
}

}  // namespace

std::int32_t noria_waiter_drop(noria_waiter* words) {
  if (words == nullptr) return -EINVAL;
  Waiter& waiter = Waiter::of(words);
  std::uint32_t state = waiter.load_state();
  // Only these two still mean something to the owner; with any other it may be gone.
  if (state == Waiter::kQueued || state == Waiter::kGranted) {
    if (waiter.kind == Waiter::kSemaphore) return forget<Semaphore>(waiter);
    if (waiter.kind == Waiter::kNotify) return forget<Notify>(waiter);
    return -EINVAL;
  }
  waiter.reset();
  return NORIA_OK;
}

std::int32_t noria_semaphore_new(noria_runtime* rt, std::uint64_t permits, noria_semaphore** out) {
  if (out == nullptr || permits > Semaphore::kMaxPermits) return -EINVAL;
  Core* core;
  if (std::int32_t error = capi::resolve_open(rt, core); error != NORIA_OK) return error;
  auto* semaphore = core->make<Semaphore>(SlotKind::kOther, core, permits);
  if (semaphore == nullptr) return -ENOMEM;
  *out = reinterpret_cast<noria_semaphore*>(semaphore);
  return NORIA_OK;
}

std::int32_t noria_semaphore_try_acquire(noria_semaphore* semaphore, std::uint64_t count) {
  if (std::int32_t error = check(semaphore); error != NORIA_OK) return error;
  return count <= Semaphore::kMaxPermits ? of(semaphore)->try_take(count) : -EINVAL;
}

std::int32_t noria_semaphore_poll_acquire(noria_semaphore* semaphore, std::uint64_t count, const noria_cx* cx,
                                          noria_waiter* waiter) {
  if (std::int32_t error = check(semaphore); error != NORIA_OK) return error;
  if (count > Semaphore::kMaxPermits || !usable(cx) || waiter == nullptr) return -EINVAL;
  return of(semaphore)->poll(count, cx, Waiter::of(waiter));
}

std::int32_t noria_semaphore_acquire(noria_semaphore* semaphore, std::uint64_t count, noria_future** out) {
  if (semaphore == nullptr || count > Semaphore::kMaxPermits || out == nullptr) return -EINVAL;
  if (std::int32_t error = check_open(of(semaphore)->core()); error != NORIA_OK) return error;
  task::Future* future = nullptr;
  return give_future(of(semaphore)->wait(count, &future), future, out);
}

std::int32_t noria_semaphore_release(noria_semaphore* semaphore, std::uint64_t count) {
  if (std::int32_t error = check(semaphore); error != NORIA_OK) return error;
  return of(semaphore)->give(count);
}

std::int32_t noria_semaphore_available(const noria_semaphore* semaphore, std::uint64_t* out) {
  if (semaphore == nullptr || out == nullptr) return -EINVAL;
  const auto* known = reinterpret_cast<const Semaphore*>(semaphore);
  if (std::int32_t error = check_core(known->core()); error != NORIA_OK) return error;
  *out = known->available();
  return NORIA_OK;
}

std::int32_t noria_semaphore_close(noria_semaphore* semaphore) {
  if (std::int32_t error = check(semaphore); error != NORIA_OK) return error;
  of(semaphore)->close();
  return NORIA_OK;
}

std::int32_t noria_semaphore_drop(noria_semaphore* semaphore) {
  if (std::int32_t error = check(semaphore); error != NORIA_OK) return error;
  of(semaphore)->close();
  of(semaphore)->release();
  return NORIA_OK;
}

std::int32_t noria_notify_new(noria_runtime* rt, noria_notify** out) {
  if (out == nullptr) return -EINVAL;
  Core* core;
  if (std::int32_t error = capi::resolve_open(rt, core); error != NORIA_OK) return error;
  auto* notify = core->make<Notify>(SlotKind::kOther, core);
  if (notify == nullptr) return -ENOMEM;
  *out = reinterpret_cast<noria_notify*>(notify);
  return NORIA_OK;
}

std::int32_t noria_notify_poll_wait(noria_notify* notify, const noria_cx* cx, noria_waiter* waiter) {
  if (std::int32_t error = check(notify); error != NORIA_OK) return error;
  if (!usable(cx) || waiter == nullptr) return -EINVAL;
  return of(notify)->poll(0, cx, Waiter::of(waiter));
}

std::int32_t noria_notify_wait(noria_notify* notify, noria_future** out) {
  if (notify == nullptr || out == nullptr) return -EINVAL;
  if (std::int32_t error = check_open(of(notify)->core()); error != NORIA_OK) return error;
  task::Future* future = nullptr;
  return give_future(of(notify)->wait(0, &future), future, out);
}

std::int32_t noria_notify_one(noria_notify* notify) {
  if (std::int32_t error = check(notify); error != NORIA_OK) return error;
  of(notify)->one();
  return NORIA_OK;
}

std::int32_t noria_notify_all(noria_notify* notify) {
  if (std::int32_t error = check(notify); error != NORIA_OK) return error;
  of(notify)->all();
  return NORIA_OK;
}

std::int32_t noria_notify_drop(noria_notify* notify) {
  if (std::int32_t error = check(notify); error != NORIA_OK) return error;
  of(notify)->close();
  of(notify)->release();
  return NORIA_OK;
}

std::int32_t noria_oneshot_new(noria_runtime* rt, void (*discard)(void* value), noria_oneshot_sender** sender,
                               noria_oneshot_receiver** receiver) {
  if (sender == nullptr || receiver == nullptr) return -EINVAL;
  Core* core;
  if (std::int32_t error = capi::resolve_open(rt, core); error != NORIA_OK) return error;
  auto* oneshot = core->make<Oneshot>(SlotKind::kOther, core, discard);
  if (oneshot == nullptr) return -ENOMEM;
  *sender = reinterpret_cast<noria_oneshot_sender*>(oneshot);
  *receiver = reinterpret_cast<noria_oneshot_receiver*>(oneshot);
  return NORIA_OK;
}

std::int32_t noria_oneshot_send(noria_oneshot_sender* sender, void* value) {
  if (std::int32_t error = check(sender); error != NORIA_OK) return error;
  return of(sender)->send(value);
}

std::int32_t noria_oneshot_poll_closed(noria_oneshot_sender* sender, const noria_cx* cx) {
  if (std::int32_t error = check(sender); error != NORIA_OK) return error;
  return usable(cx) ? of(sender)->poll_closed(cx) : -EINVAL;
}

std::int32_t noria_oneshot_closed(noria_oneshot_sender* sender, noria_future** out) {
  if (sender == nullptr || out == nullptr) return -EINVAL;
  if (std::int32_t error = check_open(of(sender)->core()); error != NORIA_OK) return error;
  task::Future* future = nullptr;
  return give_future(of(sender)->closed(&future), future, out);
}

std::int32_t noria_oneshot_sender_drop(noria_oneshot_sender* sender) {
  if (std::int32_t error = check(sender); error != NORIA_OK) return error;
  of(sender)->drop_sender();
  return NORIA_OK;
}

std::int32_t noria_oneshot_poll_receive(noria_oneshot_receiver* receiver, const noria_cx* cx, void** value) {
  if (std::int32_t error = check(receiver); error != NORIA_OK) return error;
  return usable(cx) && value != nullptr ? of(receiver)->poll_receive(cx, value) : -EINVAL;
}

std::int32_t noria_oneshot_receive(noria_oneshot_receiver* receiver, noria_future** out) {
  if (receiver == nullptr || out == nullptr) return -EINVAL;
  if (std::int32_t error = check_open(of(receiver)->core()); error != NORIA_OK) return error;
  task::Future* future = nullptr;
  return give_future(of(receiver)->receive(&future), future, out);
}

std::int32_t noria_oneshot_try_receive(noria_oneshot_receiver* receiver, void** value) {
  if (std::int32_t error = check(receiver); error != NORIA_OK) return error;
  return value != nullptr ? of(receiver)->try_receive(value) : -EINVAL;
}

std::int32_t noria_oneshot_close(noria_oneshot_receiver* receiver) {
  if (std::int32_t error = check(receiver); error != NORIA_OK) return error;
  of(receiver)->close();
  return NORIA_OK;
}

std::int32_t noria_oneshot_receiver_drop(noria_oneshot_receiver* receiver) {
  if (std::int32_t error = check(receiver); error != NORIA_OK) return error;
  of(receiver)->drop_receiver();
  return NORIA_OK;
}
