#include "task/task.hpp"

#include <cerrno>
#include <new>

#include "base/assert.hpp"
#include "base/live.hpp"
#include "base/slab.hpp"
#include "task/context.hpp"
#include "task/join.hpp"

namespace noria::task {

thread_local constinit Context t_context;

namespace {

void waker_clone(const noria_waker* waker, noria_waker* out) {
  static_cast<Task*>(waker->data)->word.ref();
  live_add(Live::kWakers, 1);
  *out = *waker;
}

void waker_wake(noria_waker* waker) {
  auto* task = static_cast<Task*>(waker->data);
  live_add(Live::kWakers, -1);
  if (t_context.worker_core != task->home->core || task->counted) {
    // A strand lives as long as its tasks, and outside of its workers nothing but this reference keeps the runtime while the task is queued: it goes last.
    wake_by_ref(task);
    unref(task);
    return;
  }
  bool last = false;
  if (task->word.wake_by_value(last)) {
    task->home->schedule(task, Hint::kWake);
  } else if (last) {
    free_task(task);
  }
}

void waker_wake_by_ref(const noria_waker* waker) { wake_by_ref(static_cast<Task*>(waker->data)); }

void waker_drop(noria_waker* waker) {
  live_add(Live::kWakers, -1);
  unref(static_cast<Task*>(waker->data));
}

NORIA_APART void call_drop(Task* task) noexcept {
  try {
    task->vtable->drop(task->state);
  } catch (...) {
    // A destructor has nobody to tell; the task has ended in any case.
  }
}

// The state's destructor; what it throws ends here.
inline void drop_state(Task* task) {
  if (task->vtable->drop != nullptr) call_drop(task);
}

inline void free_here(Task* task) {
  live_add(Live::kTasks, -1);
  Home* counter = NORIA_UNLIKELY(task->counted) ? task->home : nullptr;
  if (task->joinable) task->joining().~Joining();
  task->~Task();
  if (counter != nullptr) counter->forget();  // first: with the slot may go the core, and the home with it
  Slab::free(task);
}

NORIA_APART void tell_joiners(Task* task) {
  if (task->joinable) {
    task->joining().cell.complete();
    complete_joiners(task);
  }
  unref(task);
}

// Completion: outcome and error are set, the caller is the running thread. `state_lives` says whether drop is due.
void complete(Task* task, bool state_lives) {
  bool keep = state_lives && task->has_take() && task->outcome == NORIA_JOIN_DONE;
  if (state_lives && !keep) drop_state(task);
  bool kept = false;
  ToComplete done = task->word.to_complete(keep, kept);
  if (keep && !kept) drop_state(task);  // the handle is gone: nobody will take the output
  if (NORIA_UNLIKELY(done.notify)) return tell_joiners(task);
  if (NORIA_LIKELY(done.free)) free_here(task);
}

std::int32_t poll_guarded(Task* task, const noria_cx* cx) noexcept {
  try {
    return task->vtable->poll(task->state, cx);
  } catch (...) {
    return -NORIA_ETHROWN;
  }
}

// The context of one poll, put back at its end: a strand polls tasks within a poll of its own.
class PollScope {
 public:
  explicit PollScope(Task* task) : before_(t_context) {
    static_cast<Poll&>(t_context) = {task, kBudget, true, false, false, false};
  }
  PollScope(const PollScope&) = delete;
  PollScope& operator=(const PollScope&) = delete;
  ~PollScope() { static_cast<Poll&>(t_context) = before_; }

 private:
  const Poll before_;
};

}  // namespace

const noria_waker_vtable kTaskWaker = {waker_clone, waker_wake, waker_wake_by_ref, waker_drop};

void free_task(Task* task) { free_here(task); }

bool run(Task* task) {
  if (NORIA_UNLIKELY(task->word.to_running() == ToRunning::kDrop)) {
    drop_claimed(task);
    return false;
  }
  std::int32_t result;
  bool self_woken;
  {
    PollScope scope(task);
    noria_waker waker = borrowed_waker(task);
    noria_cx cx{&waker, {0, 0, 0}};
    result = poll_guarded(task, &cx);
    self_woken = t_context.self_woken;
  }
  if (NORIA_LIKELY(result == NORIA_PENDING)) {
    switch (task->word.to_idle(self_woken)) {
      case ToIdle::kIdle:
        return false;
      case ToIdle::kRequeue:
        return true;
      case ToIdle::kDrop:
        drop_claimed(task);
        return false;
    }
  }
  if (NORIA_UNLIKELY(result != NORIA_READY)) {
    task->outcome = NORIA_JOIN_FAILED;
    task->error = poll_error(result);
  }
  complete(task, true);
  return false;
}

void drop_claimed(Task* task) {
  task->outcome = NORIA_JOIN_ABORTED;
  complete(task, true);
}

void drop_queued(Task* task) {
  (void)task->word.cancel();
  (void)run(task);  // drops it
}

StateWord::Claim drop_for_shutdown(Task* task) {
  StateWord::Claim claim = task->word.claim_for_shutdown();
  if (claim == StateWord::Claim::kClaimed) drop_claimed(task);
  return claim;
}

StateWord::Claim drop_local_for_shutdown(Task* task) {
  StateWord::Claim claim = drop_for_shutdown(task);
  if (claim != StateWord::Claim::kOver) return claim;
  claim = task->word.claim_output_for_shutdown();
  if (claim == StateWord::Claim::kClaimed) {
    drop_state(task);
    unref(task);
  }
  return claim;
}

void wake_by_ref(Task* task) {
  if (t_context.task == task) {
    t_context.self_woken = true;  // seen when the poll ends: no other thread need know
    return;
  }
  if (task->word.wake_by_ref()) task->home->schedule(task, Hint::kWake);
}

void abort(Task* task) {
  if (task->word.cancel()) task->home->schedule(task, Hint::kWake);
}

void ref(Task* task) { task->word.ref(); }

void unref(Task* task) {
  if (task->word.unref()) free_task(task);
}

std::int32_t poll_join(Task* task, const noria_cx* cx, noria_join_result* out) {
  if ((task->word.load() & StateWord::kComplete) == 0) {
    // The cell first, then the flag: completion that sees the flag finds the waker.
    WakerCell& cell = task->joining().cell;
    if (cell.set_ahead(*cx->waker)) {
      if (!task->word.ask_for_completion()) return NORIA_PENDING;
      cell.clear();
    }
  }
  if (out != nullptr) *out = outcome_of(task);
  return NORIA_READY;
}

noria_join_result outcome_of(const Task* task) { return {task->outcome, task->error}; }

std::int32_t take(Task* task, void* out) {
  if (!task->has_take()) return -EINVAL;
  if ((task->word.load() & StateWord::kComplete) == 0) return -EAGAIN;
  if (task->outcome == NORIA_JOIN_ABORTED) return -ECANCELED;
  if (task->outcome == NORIA_JOIN_FAILED) return task->error;
  if (task->local && !task->home->here()) return -NORIA_EWRONGTHREAD;
  if (!task->word.claim_output()) return -NORIA_ECONSUMED;
  std::int32_t result = NORIA_OK;
  try {
    task->vtable->take(task->state, out);
  } catch (...) {
    result = -NORIA_ETHROWN;
  }
  drop_state(task);
  return result;
}

void detach(Task* task) {
  if (task->word.ends_with_handle()) return free_task(task);
  if (task->local && !task->home->here()) {
    // The output may be dropped on the task's own thread only: the reference travels there.
    if (task->word.send_back_output()) {
      task->word.ref();  // keeps the home until this thread is done with it
      task->home->send_back(task);
    }
  } else if (task->word.release_interest()) {
    drop_state(task);
  }
  unref(task);
}

void finish_send_back(Task* task) {
  if (task->word.claim_output()) drop_state(task);
  unref(task);
}

}  // namespace noria::task
