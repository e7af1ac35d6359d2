// sweep.cpp: drops every task and cancels every future of a runtime whose workers have left (or are stuck in a poll).
#include <sched.h>

#include "reactor/reactor.hpp"
#include "runtime/core.hpp"
#include "sched/scheduler.hpp"
#include "timer/wheel.hpp"

namespace noria::runtime {

using task::t_context;
using Claim = task::StateWord::Claim;

namespace {
constexpr int kRoundsBesideStuck = 64;
}

// A task that is notified and in no queue is about to be put there by the thread that notified it; the loop goes round until it has.
// `alone`: no worker is left, so every task ends here. Else some may stand behind a poll that is stuck (in a strand's queue), and
// are left to the sweep of the last worker.
Core::Swept Core::sweep(bool alone) {
  Swept swept;
  Core* current = t_context.core;
  Core* ending = t_context.ending;
  t_context.core = this;
  t_context.ending = this;
  for (int round = 0; alone || round < kRoundsBesideStuck; ++round) {
    sweep_queues(swept);
    if (sweep_tasks(swept) == 0) break;
    ::sched_yield();
  }
  sweep_futures(swept);
  // After the futures, which end as cancelled: who waits at a source now is no task of ours.
  if (reactor_ != nullptr) reactor_->close();
  sweep_wheels();
  t_context.core = current;
  t_context.ending = ending;
  return swept;
}

// A spawn that was let in before the end may push after the sweep; then whoever is later of the two sees the other.
void Core::pushed_late() {
  // ORDER: seq_cst, after the push; pairs with the store of kEnded before the last look of end().
  if (phase_.load(NORIA_SEQ_CST) == kEnded) sweep_late();
}

// The like for a future: its life is published, then the phase is read; end() stores the phase, then walks once more.
void Core::cancel_if_late(task::Future& future) {
  future.ref_before_phase();
  // ORDER: seq_cst, see above.
  if (phase_.load(NORIA_SEQ_CST) == kEnded) future.cancel();
  future.release();
}

void Core::sweep_late() {
  Swept swept;
  Core* current = t_context.core;
  Core* ending = t_context.ending;
  t_context.core = this;
  t_context.ending = this;
  sweep_queues(swept);
  t_context.core = current;
  t_context.ending = ending;
}

void Core::sweep_queues(Swept& swept) {
  for (;;) {
    task::Queue queue;
    scheduler_->inject().take_all(queue);
    for (std::uint32_t i = 0; i < options_.workers; ++i) scheduler_->worker(i).take_all(queue);
    if (queue.empty()) return;
    while (task::Task* task = queue.pop()) {
      ++swept.tasks;
      task::drop_queued(task);
    }
  }
}

// How many are still queued or on their way into a queue.
std::uint32_t Core::sweep_tasks(Swept& swept) {
  std::uint32_t queued = 0;
  for (Slab* slab : slabs_) {
    slab->for_each_live(SlotKind::kTask, [&](void* slot) {
      auto* task = static_cast<task::Task*>(slot);
      if ((task->word.load() & task::StateWord::kLocal) != 0)
        return;  // dropped by its own worker, which has left or will
      Claim claim = task::drop_for_shutdown(task);
      if (claim == Claim::kClaimed) ++swept.tasks;
      if (claim == Claim::kQueued) ++queued;
    });
  }
  return queued;
}

void Core::sweep_futures(Swept& swept) {
  for (Slab* slab : slabs_) {
    slab->for_each_live(SlotKind::kFuture, [&](void* slot) {
      auto* future = static_cast<task::Future*>(slot);
      if (!future->ref_if_live()) return;
      if (!future->ready()) {
        ++swept.futures;
        future->cancel();
      }
      future->release();
    });
  }
}

void Core::sweep_wheels() {
  for (const auto& wheel : wheels_) {
    for (bool more = true; more;) {
      timer::Expired expired;
      more = wheel->clear(expired);
      expired.run();
      if (more) ::sched_yield();
    }
  }
}

}  // namespace noria::runtime
