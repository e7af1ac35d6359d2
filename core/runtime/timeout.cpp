#include "runtime/timeout.hpp"

#include <cerrno>

namespace noria::runtime {

const Composite::Kind Timeout::kKind = {child_ready, end, cancel};
const timer::TimerOps Timeout::kTimerOps = {on_fire, on_released};

Timeout::Timeout(Core* core, task::Future* child)
    : Composite(&own_ops_, &kKind, core),
      Timer(&kTimerOps),
      own_ops_{on_cancel, on_result, on_destroy, child->ops()->result_size, child->ops()->partial,
               "timeout", on_told,   on_dropped},
      child_(child) {}

std::int32_t Timeout::create(Core& core, task::Future* child, std::uint64_t timeout_ns, task::Future** out) {
  Timeout* timeout = core.make_future<Timeout>(child);
  if (timeout == nullptr) return -ENOMEM;
  *out = timeout;
  timeout->begin(timeout_ns);
  return NORIA_OK;
}

void Timeout::begin(std::uint64_t timeout_ns) {
  std::uint64_t deadline_ns = saturating_add(core()->now_ns(), timeout_ns);
  if (!child_->ready()) {
    if (timeout_ns == 0) {
      expire();
    } else if (deadline_ns != kNever) {
      ref();
      if (!core()->timer_arm(*this, deadline_ns)) {
        release();
        pass_cancel();  // the runtime is closing
      }
    }
  }
  listen(child_, 0);
}

void Timeout::expire() {
  // ORDER: release, pairs with end.
  expired_.store(true, NORIA_RELEASE);
  pass_cancel();
}

void Timeout::pass_cancel() {
  // ORDER: relaxed, only a guess for the exchange.
  std::uint32_t holds = holds_.load(NORIA_RELAXED);
  do {
    if ((holds & kRunning) == 0) return;
    // ORDER: relaxed, the child was given to this object before; only the way out is ordered. Failure is retried.
  } while (!holds_.compare_exchange_weak(holds, holds + kCanceller, NORIA_RELAXED, NORIA_RELAXED));
  cancel_child(child_);
  let_child_go(kCanceller);
}

void Timeout::let_child_go(std::uint32_t hold) {
  // ORDER: acq_rel, what each holder did with the child happens before its drop.
  if (holds_.fetch_sub(hold, NORIA_ACQ_REL) == hold) drop_child(child_);
}

bool Timeout::child_ready(Composite* self, std::size_t /*index*/) { return self->claim(); }

void Timeout::end(Composite* self) {
  auto* timeout = static_cast<Timeout*>(self);
  (void)timeout->core()->timer_cancel(*timeout);
  std::int32_t status = timeout->child_->status();
  // ORDER: acquire, pairs with expire.
  if (status == -ECANCELED && timeout->expired_.load(NORIA_ACQUIRE)) status = -ETIMEDOUT;
  timeout->let_child_go(kRunning);
  timeout->finish(status);
}

// A tower of time-outs has one result, that of the lowest child.
task::Future* Timeout::inmost(task::Future* future) {
  while (future->ops()->destroy == on_destroy) future = static_cast<Timeout*>(future)->child_;
  return future;
}

void Timeout::on_result(task::Future* future, void* out) {
  task::Future* child = inmost(future);
  (void)child->take_result(out, child->ops()->result_size);
}

// What the child has been given (a permit, a tick) is the caller's now: it must not go back when the child is dropped.
void Timeout::on_told(task::Future* future) { (void)inmost(future)->take_result(nullptr, 0); }

}  // namespace noria::runtime
