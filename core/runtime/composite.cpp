#include "runtime/composite.hpp"

#include <utility>

namespace noria::runtime {

thread_local constinit Composite::Stacks Composite::t_stacks __attribute__((tls_model("initial-exec")));

const noria_waker_vtable Composite::kWaker = {clone_waker, wake, wake_by_ref, drop_waker};

void Composite::push(Composite* composite, Step step) {
  Stacks& stacks = t_stacks;
  composite->below_[step] = stacks.top[step];
  stacks.top[step] = composite;
  if (std::exchange(stacks.busy, true)) return;
  while (run_one()) {
  }
  stacks.busy = false;
}

bool Composite::run_one() {
  for (std::uint8_t step = 0; step < kSteps; ++step) {
    Composite* composite = t_stacks.top[step];
    if (composite == nullptr) continue;
    t_stacks.top[step] = composite->below_[step];
    switch (step) {
      case kEnd:
        composite->kind_->end(composite);
        break;
      case kCancel:
        composite->cancel();
        composite->release();
        break;
      default:
        composite->drop();
    }
    return true;
  }
  return false;
}

void Composite::on_cancel(task::Future* future) {
  auto* self = static_cast<Composite*>(future);
  self->kind_->cancel(self);
}

void Composite::cancel_child(task::Future* child) {
  if (!is(child)) return child->cancel();
  child->ref();
  push(static_cast<Composite*>(child), kCancel);
}

void Composite::drop_child(task::Future* child) {
  if (!is(child)) return child->drop();
  push(static_cast<Composite*>(child), kDrop);
}

void Composite::listen(task::Future* child, std::size_t index) {
  if (child->on_ready({&kWaker, this, reinterpret_cast<void*>(index)}) == NORIA_READY) tell(index);
}

void Composite::tell(std::size_t index) {
  if (kind_->child_ready(this, index)) push(this, kEnd);
}

void Composite::clone_waker(const noria_waker* waker, noria_waker* out) {
  static_cast<Composite*>(waker->data)->ref();
  live_add(Live::kWakers, 1);
  *out = *waker;
}

void Composite::wake(noria_waker* waker) {
  wake_by_ref(waker);
  drop_waker(waker);
}

void Composite::wake_by_ref(const noria_waker* waker) {
  static_cast<Composite*>(waker->data)->tell(reinterpret_cast<std::uintptr_t>(waker->extra));
}

void Composite::drop_waker(noria_waker* waker) {
  live_add(Live::kWakers, -1);
  static_cast<Composite*>(waker->data)->release();
}

}  // namespace noria::runtime
