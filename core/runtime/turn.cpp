// turn.cpp: driving a runtime from a thread of the user's: block_on, turn, block_in_place.
#include <sched.h>

#include <cerrno>

#include "blocking/pool.hpp"
#include "runtime/core.hpp"
#include "runtime/driver.hpp"
#include "runtime/thread_waker.hpp"
#include "sched/scheduler.hpp"

namespace noria::runtime {

using task::t_context;

namespace {

constexpr std::uint32_t kPollsATurn = 1024;  // then turn() answers, whatever is left

// The user's state behind a task of ours: dropped by it unless the user wants to take it himself.
struct Root {
  const noria_task_vtable* vtable;
  void* state;
};

std::int32_t poll_root(void* state, const noria_cx* cx) {
  auto* root = static_cast<Root*>(state);
  return root->vtable->poll(root->state, cx);
}

void drop_root(void* state) {
  auto* root = static_cast<Root*>(state);
  if (root->vtable->take == nullptr && root->vtable->drop != nullptr) root->vtable->drop(root->state);
}

// Where no task does it: what the user's drop throws ends here.
void drop_root_here(Root& root) noexcept {
  try {
    drop_root(&root);
  } catch (...) {
    // Nobody is left to be told.
  }
}

constexpr noria_task_vtable kRoot = {sizeof(noria_task_vtable), 0, poll_root, drop_root, nullptr, "block_on"};

std::int32_t poll_on_thread(Root& root, const noria_cx* cx) noexcept {
  task::Context& context = t_context;
  task::Context before = context;
  context.task = nullptr;
  context.budget = task::kBudget;
  context.budgeted = true;
  context.budget_spent = false;
  std::int32_t result;
  try {
    result = poll_root(&root, cx);
  } catch (...) {
    result = -NORIA_ETHROWN;
  }
  context.task = before.task;
  context.budget = before.budget;
  context.budgeted = before.budgeted;
  context.budget_spent = before.budget_spent;
  return result;
}

noria_join_result outcome(std::int32_t result) {
  if (result == NORIA_PENDING) return {NORIA_JOIN_ABORTED, 0};  // the runtime closed first
  if (result == NORIA_READY) return {NORIA_JOIN_DONE, 0};
  return {NORIA_JOIN_FAILED, task::poll_error(result)};
}

}  // namespace

std::int32_t Core::block_on(const noria_task_vtable* vtable, void* state, noria_join_result* out) {
  if (t_context.worker != nullptr || t_context.blocking || t_context.ending == this) return -NORIA_ENESTED;
  if (closed()) return -NORIA_ESHUTDOWN;
  return options_.current_thread() ? block_on_current(vtable, state, out) : block_on_thread(vtable, state, out);
}

std::int32_t Core::block_on_current(const noria_task_vtable* vtable, void* state, noria_join_result* out) {
  if (std::int32_t error = begin_driving(); error != NORIA_OK) return error;
  sched::Worker& worker = scheduler_->worker(0);
  Root root{vtable, state};
  task::Task* task = nullptr;
  std::int32_t error = spawn_local(&kRoot, &root, &task);
  if (error == NORIA_OK) {
    auto complete = [task] { return (task->word.load() & task::StateWord::kComplete) != 0; };
    while (!complete() && !closed()) {
      if (worker.run_ready(kPollsATurn) == 0 && !complete()) worker.park(kNever);
    }
    if (!complete()) worker.drop_local_tasks(slabs_);  // closed meanwhile: the root goes with the rest
    if (out != nullptr) *out = task::outcome_of(task);
    task::detach(task);
  }
  end_driving();
  return error;
}

std::int32_t Core::block_on_thread(const noria_task_vtable* vtable, void* state, noria_join_result* out) {
  ThreadWaker* thread = ThreadWaker::create();
  if (thread == nullptr) return -ENOMEM;
  if (std::int32_t error = enter(); error != NORIA_OK) {
    thread->release();
    return error;
  }
  {
    sync::MutexLock guard(blocked_lock_);
    thread->set_next(blocked_);
    blocked_ = thread;
  }
  t_context.blocking = true;
  Root root{vtable, state};
  noria_waker waker = thread->waker();
  noria_cx cx{&waker, {0, 0, 0}};
  std::int32_t result = NORIA_PENDING;
  hold_clock();
  for (;;) {
    if (closed()) break;
    result = poll_on_thread(root, &cx);
    if (result != NORIA_PENDING) break;
    release_clock();
    thread->wait_untaken();
    hold_clock();          // first: until the wake is taken, it holds the clock itself (H2 of clock_holds.hpp)
    (void)thread->take();  // before the poll, so that a later wake leads to another (P1)
  }
  release_clock();
  drop_root_here(root);
  t_context.blocking = false;
  {
    sync::MutexLock guard(blocked_lock_);
    ThreadWaker** link = &blocked_;
    while (*link != thread) link = (*link)->next_link();
    *link = thread->next();
  }
  thread->release();
  if (out != nullptr) *out = outcome(result);
  (void)leave();
  return NORIA_OK;
}

// kFree: it is the caller's now, `as` that; else who has it.
std::uint32_t Core::take_worker(std::uint32_t as) {
  for (;;) {
    std::uint32_t found = kFree;
    // ORDER: seq_cst, takes the worker over from whoever had it last; pairs with the stores that give it back.
    if (driving_.compare_exchange_strong(found, as, NORIA_SEQ_CST)) return kFree;
    if (found != kLookedAt) return found;
    ::sched_yield();
  }
}

std::int32_t Core::begin_driving() {
  if (!options_.current_thread()) return -NORIA_EWRONGKIND;
  if (t_context.worker != nullptr || t_context.blocking) return -NORIA_ENESTED;
  std::uintptr_t nobody = 0;
  // ORDER: acq_rel, the first to drive owns it.
  if (!owner_.compare_exchange_strong(nobody, thread_token(), NORIA_ACQ_REL) && nobody != thread_token())
    return -NORIA_EWRONGTHREAD;
  if (take_worker(kDriven) != kFree) return closed() ? -NORIA_ESHUTDOWN : -NORIA_EWRONGTHREAD;
  if (std::int32_t error = closed() ? -NORIA_ESHUTDOWN : enter(); error != NORIA_OK) {
    // ORDER: seq_cst, as end_driving: who closed it meanwhile has left the end to this thread.
    driving_.store(kFree, NORIA_SEQ_CST);
    (void)end_if_closing(0);
    return error;
  }
  scheduler_->set_owner();
  sched::Worker& worker = scheduler_->worker(0);
  worker.attach();
  worker.take_up();
  return NORIA_OK;
}

void Core::end_driving() {
  sched::Worker& worker = scheduler_->worker(0);
  worker.stand_by();
  // A foreign loop that watches the descriptor learns that there is something left.
  if (worker.has_ready() || !scheduler_->inject().empty()) driver_->interrupt();
  worker.detach();
  t_context.core = this;
  // ORDER: seq_cst, gives the worker back, then looks whether it was closed meanwhile; pairs with shutdown_current.
  driving_.store(kFree, NORIA_SEQ_CST);
  (void)end_if_closing(0);
  (void)leave();
}

std::int32_t Core::turn(std::uint64_t timeout_ns, std::uint32_t* polls) {
  if (std::int32_t error = begin_driving(); error != NORIA_OK) return error;
  sched::Worker& worker = scheduler_->worker(0);
  if (!driver_->has_sources()) driver_->wait(0, 0);  // hears the ring, or the descriptor would stay readable
  worker.look_at_driver();
  std::uint32_t count = worker.run_ready(kPollsATurn);
  if (count == 0 && timeout_ns != 0 && !closed()) {
    worker.park(saturating_add(now_ns(), timeout_ns));
    count = worker.run_ready(kPollsATurn);
  }
  end_driving();
  if (polls != nullptr) *polls = count;
  return NORIA_OK;
}

std::int32_t Core::next_timeout(std::uint64_t* timeout_ns) {
  if (!options_.current_thread()) return -NORIA_EWRONGKIND;
  // ORDER: acquire, pairs with begin_driving.
  std::uintptr_t owner = owner_.load(NORIA_ACQUIRE);
  if (owner != 0 && owner != thread_token()) return -NORIA_EWRONGTHREAD;
  if (scheduler_->worker(0).has_ready() || !scheduler_->inject().empty() || closed()) {
    *timeout_ns = 0;
    return NORIA_OK;
  }
  std::uint64_t deadline_ns = kNever;
  for (std::uint32_t i = 0; i <= options_.workers; ++i) {
    std::uint64_t next_ns = driver_->next_deadline_ns(i);
    if (next_ns < deadline_ns) deadline_ns = next_ns;
  }
  std::uint64_t now = now_ns();
  if (deadline_ns == kNever) {
    *timeout_ns = NORIA_FOREVER;
  } else {
    // Paused time jumps as soon as the runtime is turned.
    *timeout_ns = clock_.paused() || deadline_ns <= now ? 0 : deadline_ns - now;
  }
  return NORIA_OK;
}

std::int32_t Core::give_worker_away() {
  sched::Worker* worker = t_context.worker;
  Core* core = worker->core;
  Core* entered = t_context.core;
  if (core->options_.current_thread() || t_context.in_strand || worker->has_locals()) return -NORIA_EWRONGKIND;
  worker->detach();
  t_context.core = entered;
  if (std::int32_t error = core->pool_->run_thread(run_worker_on_pool, worker); error != NORIA_OK) {
    worker->attach();
    t_context.core = entered;
    return error == -ESHUTDOWN ? -NORIA_ESHUTDOWN : error;
  }
  // Until the thread ends: its poll goes on behind the blocking part, still inside the runtime.
  t_context.pool_core = core;
  // ORDER: acq_rel, read by who waits for the end.
  core->blocked_in_place_.fetch_add(1, NORIA_ACQ_REL);
  return NORIA_OK;
}

std::int32_t Core::block_in_place(std::int32_t (*run)(void*), void* arg, std::int32_t* result) {
  Core* holds = t_context.worker_core;
  if (holds != nullptr) {
    if (t_context.task == nullptr) return -NORIA_ENESTED;  // a callback of the worker itself
    holds->hold_clock();  // before another thread has the worker, and until the poll ends (run_worker)
    if (std::int32_t error = give_worker_away(); error != NORIA_OK) {
      holds->release_clock();
      return error;
    }
  }
  std::int32_t answer;
  try {
    answer = run(arg);
  } catch (...) {
    answer = -NORIA_ETHROWN;
  }
  if (result != nullptr) *result = answer;
  return NORIA_OK;
}

}  // namespace noria::runtime
