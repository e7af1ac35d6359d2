// references.cpp: who keeps a core: users, threads, and at the end the slabs that still hold a live slot (C1-C3).
#include <cerrno>

#include "base/allocator.hpp"
#include "base/assert.hpp"
#include "runtime/core.hpp"
#include "sched/scheduler.hpp"

namespace noria::runtime {
namespace {

// One noria_runtime_enter of this thread.
struct Entered {
  Core* core;
  Core* before;
  Entered* next;
};
constinit thread_local Entered* t_entered = nullptr;

}  // namespace

void Core::retain() {
  // ORDER: relaxed, who has a reference may make another.
  users_.fetch_add(1, NORIA_RELAXED);
}

std::int32_t Core::release() {
  // ORDER: acquire, pairs with the releases of others: whoever sees one left is alone.
  std::uint64_t users = users_.load(NORIA_ACQUIRE);
  while (users != 1) {
    // ORDER: acq_rel, what each user did happens before the end. Failure is retried.
    if (users_.compare_exchange_weak(users, users - 1, NORIA_ACQ_REL)) return NORIA_OK;
  }
  std::int32_t error = shutdown(0, nullptr);
  // A job closes it over local tasks too; then their thread needs this reference to end it.
  if (error == NORIA_PENDING && options_.current_thread() && left_to_owner()) error = -NORIA_EWRONGTHREAD;
  if (error == -NORIA_EWRONGTHREAD) return error;
  // ORDER: relaxed, the holder below carries the order.
  users_.store(0, NORIA_RELAXED);
  drop_holder();
  return NORIA_OK;
}

std::int32_t Core::enter() {
  auto* entered = static_cast<Entered*>(raw_alloc(sizeof(Entered), alignof(Entered)));
  if (entered == nullptr) return -ENOMEM;
  *entered = {this, task::t_context.core, t_entered};
  t_entered = entered;
  task::t_context.core = this;
  retain();
  return NORIA_OK;
}

std::int32_t Core::leave() {
  Entered* entered = t_entered;
  if (entered == nullptr || entered->core != this) return -NORIA_EBADSTATE;
  t_entered = entered->next;
  task::t_context.core = entered->before;
  raw_free(entered, sizeof(Entered), alignof(Entered));
  return release();
}

void Core::add_holder() {
  // ORDER: relaxed, who adds one is covered by one.
  holders_.fetch_add(1, NORIA_RELAXED);
}

void Core::drop_holder() {
  // ORDER: acq_rel, what each holder did happens before the slabs are orphaned.
  if (holders_.fetch_sub(1, NORIA_ACQ_REL) == 1) orphan();
}

// Nobody is left who may allocate. `this` may be gone after the last line.
void Core::orphan() {
  // ORDER: relaxed, published to slab_ended by the slabs' own protocol; the one more is this function's.
  parts_.store(static_cast<std::uint32_t>(slabs_.size()) + 1, NORIA_RELAXED);
  for (Guest& guest : guests_) {
    sync::MutexLock guard(guest.lock);
    guest.slab = nullptr;
  }
  // The core may be gone with the last slab: its list is not.
  Vector<Slab*> slabs = std::move(slabs_);
  for (Slab* slab : slabs) slab->orphan();
  slab_ended(this);
}

void Core::slab_ended(void* data) {
  auto* core = static_cast<Core*>(data);
  // ORDER: acq_rel, each slab's end happens before the core's.
  if (core->parts_.fetch_sub(1, NORIA_ACQ_REL) != 1) return;
  core->~Core();
  raw_free(core, sizeof(Core), alignof(Core));
}

}  // namespace noria::runtime
