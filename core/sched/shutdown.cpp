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
  std::uint32_t moved = 0;
  while (Task* task = ring_.steal_into(stolen, moved)) {
    to.push(task);
    while (Task* more = stolen.pop()) to.push(more);
  }
}

// A local task that a foreign thread has just notified, or whose output is on its way here, will be in the inbox in a moment: that
// thread is between two steps that do not wait for anything, and this loop goes round until it has made the second.
std::uint64_t Worker::drop_local_tasks() {
  std::uint64_t dropped = 0;
  for (bool again = true; again;) {
    while (Task* task = run_local(take_local())) {
      task::drop_queued(task);
      ++dropped;
    }
    again = false;
    slab_->for_each_live(SlotKind::kTask, [&](void* slot) {
      auto* task = static_cast<Task*>(slot);
      if (!task->local || task->home != this) return;
      Claim claim = task::drop_local_for_shutdown(task);
      if (claim == Claim::kClaimed) ++dropped;
      if (claim == Claim::kQueued) again = true;
    });
    if (again) ::sched_yield();
  }
  return dropped;
}

}  // namespace noria::sched
