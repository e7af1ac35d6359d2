#include "runtime/deliver.hpp"

#include <cerrno>

#include "base/counted.hpp"
#include "base/foreign.hpp"
#include "task/strand.hpp"

namespace noria::runtime {
namespace {

class Delivery final : public Counted<Delivery> {
 public:
  Delivery(task::Future* future, const noria_delivery& delivery)
      : future_(future), callback_(delivery.callback), discard_(delivery.discard), arg_(delivery.arg) {}

  static std::int32_t poll(void* state, const noria_cx* cx) {
    auto* self = static_cast<Delivery*>(state);
    if (self->future_->poll(cx) == NORIA_PENDING) return NORIA_PENDING;
    self->called_ = true;
    self->callback_(self->arg_, reinterpret_cast<noria_future*>(self->future_));
    return NORIA_READY;
  }

  static void drop(void* state) {
    auto* self = static_cast<Delivery*>(state);
    if (!self->called_) call_foreign(self->discard_, self->arg_);
    self->future_->drop();
    self->release();
  }

  static const noria_task_vtable kTask;

 private:
  task::Future* const future_;
  void (*const callback_)(void*, noria_future*);
  void (*const discard_)(void*);
  void* const arg_;
  bool called_ = false;  // the task
};

const noria_task_vtable Delivery::kTask = {sizeof(noria_task_vtable), 0, poll, drop, nullptr, "delivery"};

}  // namespace

std::int32_t deliver(Core& core, task::Future* future, const noria_delivery& delivery) {
  auto* state = core.make<Delivery>(SlotKind::kOther, future, delivery);
  if (state == nullptr) return -ENOMEM;
  std::int32_t error = -EINVAL;
  switch (delivery.kind) {
    case NORIA_DELIVER_WORKER:
      error = core.spawn(&Delivery::kTask, state, nullptr);
      break;
    case NORIA_DELIVER_STRAND: {
      auto* strand = reinterpret_cast<task::Strand*>(delivery.strand);
      if (strand == nullptr) break;
      strand->add_user();  // the task: the caller may drop its handle as soon as this returns
      error = core.spawn_at(strand, true, &Delivery::kTask, state, nullptr);
      if (error != NORIA_OK) strand->remove_user();
      break;
    }
    case NORIA_DELIVER_TURN:
      error = core.spawn_local(&Delivery::kTask, state, nullptr);
      break;
    default:
      break;
  }
  if (error != NORIA_OK) state->release();
  return error;
}

}  // namespace noria::runtime
