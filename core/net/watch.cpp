#include "net/watch.hpp"

#include <cerrno>

#include "task/context.hpp"

namespace noria::net {

namespace {

noria_readiness to_public(reactor::Readiness seen) { return {seen.events & ~reactor::kGone, 0, seen.tick}; }

// Waits in the source's queue; whoever takes it out of there (a report or the cancel) finishes it. A cancel that comes
// before it stands in the queue leaves a mark for start().
struct ReadyOp : task::Future, reactor::Waiter {
  static const task::FutureOps kOps;

  ReadyOp(runtime::Core* owner, Watch* ready_watch, std::uint32_t wanted) : Future(&kOps, owner), watch(ready_watch) {
    interest = wanted;
    fire = [](Waiter* waiter) { static_cast<ReadyOp*>(waiter)->end(); };
    watch->ref();
  }

  Watch* const watch;
  reactor::Readiness seen;
  Atomic<bool> cancelled{false};

  void start() {
    ref();
    if (!watch->wait(*this)) {
      end();
    } else {
      // ORDER: acquire, a cancel that found the queue without it took the queue's lock before wait() did.
      if (cancelled.load(NORIA_ACQUIRE)) withdraw();
    }
    release();
  }

  void end() {
    seen = watch->look();
    finish_if_claimed((seen.events & reactor::kGone) != 0 ? -EBADF : NORIA_OK);
  }

  void withdraw() {
    if (watch->forget(*this)) finish_if_claimed(-ECANCELED);
  }

  static void cancel(task::Future* future) {
    auto* self = static_cast<ReadyOp*>(future);
    // ORDER: release, pairs with start().
    self->cancelled.store(true, NORIA_RELEASE);
    self->withdraw();
  }
  static void result(task::Future* future, void* out) {
    *static_cast<noria_readiness*>(out) = to_public(static_cast<ReadyOp*>(future)->seen);
  }
  static void destroy(task::Future* future) {
    auto* self = static_cast<ReadyOp*>(future);
    self->watch->unref();
    self->~ReadyOp();
  }
};

const task::FutureOps ReadyOp::kOps = {cancel, result, destroy, sizeof(noria_readiness), false, "source ready"};

}  // namespace

void Watch::destroy(Source* source) {
  static_cast<Watch*>(source)->~Watch();
  Slab::free(source);
}

std::int32_t Watch::make(runtime::Core* core, std::int32_t fd, Watch** out) {
  void* slot = core->alloc(SlotKind::kOther, sizeof(Watch), alignof(Watch));
  if (slot == nullptr) return -ENOMEM;
  auto* watch = new (slot) Watch(core, fd);
  if (std::int32_t error = core->reactor()->add(*watch); error != 0) {
    watch->unref();
    return error;
  }
  *out = watch;
  return 0;
}

std::int32_t Watch::poll(std::uint32_t interest, const noria_cx* cx, noria_readiness* out) {
  if (!task::budget_poll(cx)) return NORIA_PENDING;
  reactor::Readiness seen;
  std::int32_t status = poll_ready(interest, cx, seen);
  if (status == NORIA_PENDING) task::budget_restore(task::t_context);
  if (status == NORIA_READY) *out = to_public(seen);
  return status;
}

std::int32_t Watch::ready(std::uint32_t interest, noria_future** out) {
  if ((look().events & reactor::kGone) != 0) return -EBADF;
  auto* op = core_->make_future<ReadyOp>(this, interest);
  if (op == nullptr) return -ENOMEM;
  *out = reinterpret_cast<noria_future*>(static_cast<task::Future*>(op));
  op->start();
  return 0;
}

}  // namespace noria::net
