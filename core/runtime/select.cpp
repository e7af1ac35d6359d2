#include "runtime/select.hpp"

#include <cerrno>

namespace noria::runtime {

const task::FutureOps Select::kOps = {on_cancel, on_result, on_destroy, sizeof(std::size_t), false, "select"};
const Composite::Kind Select::kKind = {child_ready, end, cancel};

std::int32_t Select::create(Core& core, task::Future* const* futures, std::size_t count, task::Future** out) {
  Select* select = core.make_future<Select>();
  if (select == nullptr) return -ENOMEM;
  *out = select;
  for (std::size_t i = 0; i < count && !select->claimed(); ++i) select->listen(futures[i], i);
  return NORIA_OK;
}

std::int32_t Select::poll_each(task::Future* const* futures, std::size_t count, const noria_cx* cx,
                               std::size_t* index) {
  for (std::size_t i = 0; i < count; ++i) {
    if (futures[i]->poll(cx) == NORIA_READY) {
      *index = i;
      return NORIA_READY;
    }
    // What comes later would seem to be ready before what the budget kept us from looking at.
    if (task::t_context.budget_spent) return NORIA_PENDING;
  }
  return NORIA_PENDING;
}

bool Select::child_ready(Composite* self, std::size_t index) {
  auto* select = static_cast<Select*>(self);
  // ORDER: relaxed, only a guess for the exchange.
  std::size_t lowest = select->index_.load(NORIA_RELAXED);
  // ORDER: release, who reads the index sees what the child did. Failure is retried.
  while (index < lowest && !select->index_.compare_exchange_weak(lowest, index, NORIA_RELEASE, NORIA_RELAXED)) {
  }
  return select->claim();
}

void Select::cancel(Composite* self) { self->finish_if_claimed(-ECANCELED); }

void Select::on_result(task::Future* future, void* out) {
  // ORDER: acquire, pairs with child_ready.
  *static_cast<std::size_t*>(out) = static_cast<Select*>(future)->index_.load(NORIA_ACQUIRE);
}

}  // namespace noria::runtime
