#include "sched/scheduler.hpp"

#include "base/assert.hpp"
#include "sync/futex.hpp"
#include "task/context.hpp"

namespace noria::sched {

using sync::IdleWord;
using task::t_context;

namespace {
constinit Atomic<std::uint32_t> g_threads{0};
}

constinit thread_local ThreadIds t_ids;

void ThreadIds::number_thread() {
  // ORDER: relaxed, a number that is different, nothing more.
  number = g_threads.fetch_add(1, NORIA_RELAXED) + 1;
}

Scheduler::Scheduler(runtime::Core* of, task::Driver& driver, const Config& config, const Vector<Slab*>& slabs)
    : Home(of), driver_(driver), config_(config), inject_(config.workers), idle_(config.workers) {
  for (std::uint32_t i = 0; i < config.workers; ++i) {
    workers_.push_back(make_allocated<Worker>(*this, i, slabs[i], config.seed + i));
  }
}

void Scheduler::schedule(task::Task* task, task::Hint hint) {
  Worker* worker = t_context.worker;
  if (NORIA_LIKELY(worker != nullptr && &worker->scheduler() == this)) {
    worker->push(task, hint);
    return;
  }
  inject_.push(thread_number(), task);
  ensure_awake();
  if (NORIA_UNLIKELY(stopping())) driver_.pushed_late();
}

void Scheduler::send_back(task::Task*) { NORIA_ASSERT(false, "only local tasks are sent back"); }

// Between the count and its undoing another pusher may have trusted it, and the worker that was on its way may have gone to sleep: so the
// queue is looked at again after an undoing (seq_cst both: the pusher stores the size, then reads the word).
void Scheduler::ensure_awake() {
  std::uint32_t bell;
  while (idle_.wake_first(bell)) {
    bool woken = notify_one(true);
    if (!woken) idle_.undo_wake();
    if (bell != IdleWord::kNobody) ring(bell);
    if (woken || inject_.empty()) return;
  }
}

void Scheduler::undo_wake() {
  idle_.undo_wake();
  if (!inject_.empty()) ensure_awake();
}

void Scheduler::wake_for_backlog(Worker& from) {
  IdleWord::View now = idle_.hint();
  if (now.awake() >= config_.workers || now.searching() != 0) return;
  std::uint32_t bell;
  if (!idle_.wake_more(config_.workers, bell)) return;
  if (notify_one(false)) {
    from.counters().wakes_sent.add(1);
  } else {
    undo_wake();
  }
  if (bell != IdleWord::kNobody) ring(bell);
}

// The worker is counted as awake and searching by the caller.
bool Scheduler::notify(std::uint32_t index) {
  Worker& worker = *workers_[index];
  if (!worker.park_state().notify()) return false;
  if (worker.in_reactor()) {
    driver_.interrupt();
  } else {
    sync::futex_wake(worker.park_state().word());
  }
  return true;
}

// The first worker to wake is the poller, so that I/O and tasks stay on one CPU; further ones are sleepers, the sentry after them.
bool Scheduler::notify_one(bool poller_first) {
  std::uint32_t polling = poller();
  std::uint32_t sentry = idle_.hint().sentry();
  if (poller_first && polling != IdleWord::kNobody && notify(polling)) return true;
  for (std::uint32_t i = 0; i < config_.workers; ++i) {
    if (i != polling && i != sentry && notify(i)) return true;
  }
  if (sentry != IdleWord::kNobody && sentry != polling && notify(sentry)) return true;
  for (std::uint32_t i = 0; i < config_.workers; ++i) {
    if (notify(i)) return true;
  }
  return false;
}

void Scheduler::wake_worker(std::uint32_t index) {
  std::uint32_t bell;
  idle_.unpark(true, bell);
  Worker* by = t_context.worker;
  if (!notify(index)) {
    undo_wake();
  } else if (by != nullptr && &by->scheduler() == this) {
    by->counters().wakes_sent.add(1);
  }
  if (bell != IdleWord::kNobody && bell != index) ring(bell);
}

bool Scheduler::ring(std::uint32_t index) {
  Worker& worker = *workers_[index];
  if (!worker.park_state().ring()) return false;
  if (worker.in_reactor()) {
    driver_.interrupt();
  } else {
    sync::futex_wake(worker.park_state().word());
  }
  return true;
}

void Scheduler::ring_poller() {
  std::uint32_t index = poller();
  if (index != IdleWord::kNobody) ring(index);
}

void Scheduler::deadline_armed(std::uint64_t deadline_ns) {
  if (deadline_ns < sleep_deadline()) ring_poller();
}

bool Scheduler::take_poller(std::uint32_t worker) {
  std::uint32_t nobody = IdleWord::kNobody;
  // ORDER: relaxed, a look that the exchange checks; seq_cst, acquires what the last poller left; pairs with poller().
  return poller_.load(NORIA_RELAXED) == nobody && poller_.compare_exchange_strong(nobody, worker, NORIA_SEQ_CST);
}

void Scheduler::leave_poller() {
  // ORDER: release, gives the reactor to the next poller.
  poller_.store(IdleWord::kNobody, NORIA_RELEASE);
}

void Scheduler::stop() {
  // ORDER: seq_cst, before the look at who is parked; pairs with stopping().
  stopping_.store(true, NORIA_SEQ_CST);
  for (std::uint32_t i = 0; i < config_.workers; ++i) wake_worker(i);
}

}  // namespace noria::sched
