#include "runtime/join_all.hpp"

#include <cerrno>

#include "runtime/timeout.hpp"

namespace noria::runtime {

const task::FutureOps JoinAll::kOps = {on_cancel, nullptr, on_destroy, 0, false, "join all"};
const Composite::Kind JoinAll::kKind = {child_ready, end, cancel};

JoinAll::JoinAll(Core* core, task::Future* const* futures, std::size_t count)
    : Composite(&kOps, &kKind, core), count_(count), open_(count + 1) {
  for (std::size_t i = 0; i < count; ++i) children()[i] = futures[i];
}

JoinAll::~JoinAll() {
  for (std::size_t i = 0; i < count_; ++i) drop_child(children()[i]);
}

std::int32_t JoinAll::create(Core& core, task::Future* const* futures, std::size_t count, task::Future** out) {
  if (count > (SIZE_MAX - sizeof(JoinAll)) / sizeof(task::Future*)) return -ENOMEM;
  void* slot = core.alloc(SlotKind::kFuture, sizeof(JoinAll) + count * sizeof(task::Future*), alignof(JoinAll));
  if (slot == nullptr) return -ENOMEM;
  auto* all = new (slot) JoinAll(&core, futures, count);
  core.publish(*all);
  *out = all;
  for (std::size_t i = 0; i < count; ++i) all->listen(all->children()[i], i);
  all->tell(count);
  return NORIA_OK;
}

JoinAll* JoinAll::from(task::Future* future) {
  future = Timeout::inmost(future);
  return future->ops() == &kOps ? static_cast<JoinAll*>(future) : nullptr;
}

std::int32_t JoinAll::result_of(std::size_t index, void* out, std::size_t size) {
  if (index >= count_) return -EINVAL;
  if (!ready()) return -EAGAIN;
  return children()[index]->take_result(out, size);
}

bool JoinAll::child_ready(Composite* self, std::size_t /*index*/) {
  auto* all = static_cast<JoinAll*>(self);
  // ORDER: acq_rel, the last one sees what every child did (J1).
  return all->open_.fetch_sub(1, NORIA_ACQ_REL) == 1 && all->claim();
}

void JoinAll::end(Composite* self) {
  // ORDER: acquire, pairs with cancel.
  bool cancelled = static_cast<JoinAll*>(self)->cancelled_.load(NORIA_ACQUIRE);
  self->finish(cancelled ? -ECANCELED : NORIA_OK);
}

void JoinAll::cancel(Composite* self) {
  auto* all = static_cast<JoinAll*>(self);
  // ORDER: release, pairs with end.
  all->cancelled_.store(true, NORIA_RELEASE);
  for (std::size_t i = 0; i < all->count_; ++i) cancel_child(all->children()[i]);
}

}  // namespace noria::runtime
