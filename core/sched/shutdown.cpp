// shutdown.cpp: how a worker gives up what it holds.
#include <sched.h>

#include "sched/scheduler.hpp"
#include "sched/worker.hpp"
#include "task/task.hpp"

namespace noria::sched {

using task::Task;
using Claim = task::StateWord::Claim;

void Worker::take_all(task::Queue& to) {
  // ORDER: acq_rel, takes the task from its owner.
  if (Task* task = lifo_.exchange(nullptr, NORIA_ACQ_REL)) to.push(task);
  sync::Ring<Task> stolen;
  auto drain = [&](auto& ring) {
    std::uint32_t moved = 0;
    while (Task* task = ring.steal_into(stolen, moved)) {
      to.push(task);
      while (Task* more = stolen.pop()) to.push(more);
    }
  };
  drain(older_);
  drain(ring_);
}

// A local task that a foreign thread has just notified, or whose output is on its way here, will be in the inbox in a moment: that
// thread is between two steps that do not wait for anything, and this loop goes round until it has made the second.
// On the only worker of a current-thread runtime they may lie in guest slabs too: they were made between two turns. Elsewhere the
// local tasks in a worker's slab are its own, and other slabs hold those of others.
void Worker::drop_local_tasks(std::span<Slab* const> slabs) {
  // ORDER: relaxed, for the report: drops of the user's that do not end are named as polls are.
  running_name_.store("drop of local tasks", NORIA_RELAXED);
  for (bool again = true; again;) {
    while (Task* task = run_local(take_local())) task::drop_queued(task);
    again = false;
    for (Slab* slab : slabs) {
      slab->for_each_live(SlotKind::kTask, [&again](void* slot) {
        auto* task = static_cast<Task*>(slot);
        if ((task->word.load() & task::StateWord::kLocal) == 0) return;
        if (task::drop_local_for_shutdown(task) == Claim::kQueued) again = true;
      });
    }
    if (again) ::sched_yield();
  }
}

}  // namespace noria::sched
