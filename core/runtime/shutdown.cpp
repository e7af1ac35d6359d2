// shutdown.cpp: the end of a runtime.
//
//   kOpen -> kClaimed   the first shutdown or last release: jobs that have not begun are dropped, none is taken, nor any local task
//   kClaimed -> kClosing  spawns are refused, workers are told to stop
//   kClosing -> kEnding one thread takes it down: waits for workers and jobs, drops every task, cancels every future
//   kEnding -> kEnded   the report is written; whoever waits is woken
//
// The order of taking down: workers leave (each drops its local tasks on its own thread), pool threads leave, queues are emptied, tasks
// and futures that stand in no queue are found by a walk over the slabs, the reactor is closed, wheels are cleared. A poll or job that outlasts the
// time-out keeps its thread, and the thread its hold on the core; the last worker to leave sweeps once more.
// No lock is held while any of this runs foreign code.
#include <pthread.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/allocator.hpp"
#include "blocking/pool.hpp"
#include "runtime/core.hpp"
#include "runtime/driver.hpp"
#include "runtime/thread_waker.hpp"
#include "sched/scheduler.hpp"
#include "sync/futex.hpp"

namespace noria::runtime {

using task::t_context;

namespace {

// A poll or job that is just ending is not called stuck, however short the caller's time-out is.
constexpr std::uint64_t kGraceNs = 50 * kNsPerMs;
constexpr std::uint64_t kReaperPatienceNs = kNsPerSec;

}  // namespace

std::int32_t Core::shutdown(std::uint64_t timeout_ns, noria_shutdown_report* report) {
  if (options_.current_thread()) return shutdown_current(timeout_ns, report);
  bool first = close();
  if (!inside()) return end(timeout_ns, report);
  if (first) start_reaper();
  return NORIA_PENDING;
}

// True: the caller closes it, and nobody else.
bool Core::claim() {
  std::uint32_t open = kOpen;
  // ORDER: acq_rel, one closes it.
  return phase_.compare_exchange_strong(open, kClaimed, NORIA_ACQ_REL);
}

// True: this call has closed it.
bool Core::close() {
  if (!claim()) return false;
  close_claimed();
  return true;
}

// The pool comes first: who sees that the runtime is closed may end a job, and no other job may begin after it.
void Core::close_claimed() {
  // What the jobs' discard functions call is a call from inside.
  Core* before = t_context.ending;
  t_context.ending = this;
  pool_->close();
  t_context.ending = before;
  // ORDER: seq_cst, pairs with closed() and end_if_closing().
  phase_.store(kClosing, NORIA_SEQ_CST);
  scheduler_->stop();
  sync::MutexLock guard(blocked_lock_);
  for (ThreadWaker* waker = blocked_; waker != nullptr; waker = waker->next()) waker->notify();
}

std::int32_t Core::end(std::uint64_t timeout_ns, noria_shutdown_report* report) {
  std::uint64_t deadline_ns = saturating_add(monotonic_ns(), timeout_ns > kGraceNs ? timeout_ns : kGraceNs);
  std::uint32_t closing = kClosing;
  // ORDER: acq_rel, one thread takes it down.
  if (phase_.compare_exchange_strong(closing, kEnding, NORIA_ACQ_REL)) {
    take_down(deadline_ns);
    // ORDER: seq_cst, publishes the report, and stands before the look below; pairs with pushed_late.
    phase_.store(kEnded, NORIA_SEQ_CST);
    if (!scheduler_->inject().empty()) sweep_late();
    Swept late;
    sweep_futures(late);
    sync::futex_wake_all(phase_);
    // ORDER: seq_cst, pairs with part_ended: the last may have come between the wait and kEnded.
    if (report_.timed_out != 0 && left_.load(NORIA_SEQ_CST) == 0) sweep(true);
  }
  return wait_for_end(deadline_ns, report);
}

std::int32_t Core::wait_for_end(std::uint64_t deadline_ns, noria_shutdown_report* report) {
  for (;;) {
    // ORDER: acquire, pairs with the release of kEnded.
    std::uint32_t phase = phase_.load(NORIA_ACQUIRE);
    if (phase == kEnded) break;
    std::uint64_t now_ns = monotonic_ns();
    if (now_ns >= deadline_ns) {
      if (report != nullptr) {
        *report = {};
        report->size = sizeof *report;
        report->timed_out = 1;
      }
      return -ETIMEDOUT;
    }
    sync::futex_wait(phase_, phase, deadline_ns - now_ns);
  }
  // What the first shutdown left running may have ended since.
  bool timed_out = report_.timed_out != 0 && !(wait_for_workers(deadline_ns) && pool_->wait_idle(deadline_ns));
  if (report != nullptr) {
    *report = report_;
    report->size = sizeof *report;
    report->timed_out = timed_out ? 1 : 0;
  }
  return timed_out ? -ETIMEDOUT : NORIA_OK;
}

void Core::take_down(std::uint64_t deadline_ns) {
  Core* before = t_context.ending;
  t_context.ending = this;
  bool workers_left = wait_for_workers(deadline_ns);
  bool jobs_left = pool_->wait_idle(deadline_ns);
  if (!workers_left || !jobs_left) name_running();
  Swept swept = sweep(workers_left);
  // ORDER: relaxed, as in count_dropped_job.
  report_.jobs_dropped = jobs_dropped_.load(NORIA_RELAXED);
  report_.tasks_dropped += swept.tasks;
  report_.futures_cancelled += swept.futures;
  join_threads(workers_left);
  report_.timed_out = workers_left && jobs_left ? 0 : 1;
  t_context.ending = before;
}

// False: at the deadline there were polls running. A worker that is merely on its way out is waited for.
bool Core::wait_for_workers(std::uint64_t deadline_ns) {
  for (;;) {
    // ORDER: acquire, pairs with part_ended.
    std::uint32_t left = left_.load(NORIA_ACQUIRE);
    if (left == 0) return true;
    std::uint64_t now_ns = monotonic_ns();
    if (now_ns >= deadline_ns && polls_running() != 0) return false;
    sync::futex_wait(left_, left, now_ns < deadline_ns ? deadline_ns - now_ns : kNsPerMs);
  }
}

std::uint32_t Core::polls_running() const {
  // ORDER: acquire, pairs with block_in_place.
  std::uint32_t count = blocked_in_place_.load(NORIA_ACQUIRE);
  for (std::uint32_t i = 0; i < options_.workers; ++i) {
    if (scheduler_->worker(i).running_name() != nullptr) ++count;
  }
  return count;
}

void Core::name_running() {
  std::size_t used = 0;
  auto add = [&](const char* name) {
    int n = std::snprintf(report_.names + used, sizeof report_.names - used, "%s\n", name);
    if (n > 0 && used + static_cast<std::size_t>(n) < sizeof report_.names) {
      used += static_cast<std::size_t>(n);
    } else {
      report_.names[used] = '\0';
    }
  };
  for (std::uint32_t i = 0; i < options_.workers; ++i) {
    const char* name = scheduler_->worker(i).running_name();
    if (name == nullptr) continue;
    ++report_.polls_running;
    add(name);
  }
  // ORDER: acquire, as in polls_running.
  for (std::uint32_t i = blocked_in_place_.load(NORIA_ACQUIRE); i != 0; --i) {
    ++report_.polls_running;
    add("block_in_place");
  }
  blocking::RunningJob jobs[16];
  std::size_t count = pool_->running(jobs, 16);
  report_.jobs_running = static_cast<std::uint32_t>(count);
  for (std::size_t i = 0; i < count && i < 16; ++i) add(jobs[i].name);
}

void Core::join_threads(bool all_left) {
  for (pthread_t thread : threads_) {
    if (all_left && !::pthread_equal(thread, ::pthread_self())) {
      ::pthread_join(thread, nullptr);
    } else {
      ::pthread_detach(thread);
    }
  }
  threads_.clear();
}

void Core::start_reaper() {
  add_holder();
  pthread_t thread;
  if (::pthread_create(&thread, nullptr, reap, this) == 0) {
    ::pthread_detach(thread);
    return;
  }
  // ORDER: seq_cst, pairs with part_ended.
  last_worker_ends_.store(true, NORIA_SEQ_CST);
  // ORDER: seq_cst, pairs with part_ended: the last may have left before it could see the flag.
  if (left_.load(NORIA_SEQ_CST) == 0) (void)end(0, nullptr);
  drop_holder();
}

void* Core::reap(void* data) {
  auto* core = static_cast<Core*>(data);
  (void)core->end(kReaperPatienceNs, nullptr);
  core->drop_holder();
  return nullptr;
}

// A current-thread runtime. Inside of it, whoever drives ends it when he returns; from a job of its pool too, unless nobody drives. What
// has local tasks is ended by their thread only: another is refused, but for a job, which closes it and leaves the rest to the owner's next call.
std::int32_t Core::shutdown_current(std::uint64_t timeout_ns, noria_shutdown_report* report) {
  if (t_context.worker_core == this || t_context.ending == this) {
    close();
    return NORIA_PENDING;
  }
  if (t_context.pool_core == this) {
    close();
    (void)end_if_closing(0);
    return NORIA_PENDING;
  }
  std::uint32_t found = take_worker(kLookedAt);
  if (found == kDriven) return -NORIA_EWRONGTHREAD;
  if (found == kFree) {
    bool foreign = left_to_owner();
    bool first = !foreign && claim();  // from here on nobody makes a local task
    // ORDER: seq_cst, gives it back.
    driving_.store(kFree, NORIA_SEQ_CST);
    if (foreign) return -NORIA_EWRONGTHREAD;
    if (first) close_claimed();
  }
  std::uint64_t deadline_ns = saturating_add(monotonic_ns(), timeout_ns > kGraceNs ? timeout_ns : kGraceNs);
  (void)end_if_closing(timeout_ns);
  return wait_for_end(deadline_ns, report);
}

// Ends a current-thread runtime that is closed and not ended yet, unless somebody drives it: he does, when he has given the worker
// back (both the store of driving_ and the look at the phase are seq_cst, so one of the two sees the other). Nor where local tasks belong to
// another thread: that one does when it comes next.
bool Core::end_if_closing(std::uint64_t timeout_ns) {
  // ORDER: seq_cst, see above.
  while (phase_.load(NORIA_SEQ_CST) == kClosing) {
    if (take_worker(kLookedAt) != kFree) return false;
    bool foreign = left_to_owner();
    // ORDER: seq_cst, gives it back, or keeps it.
    driving_.store(foreign ? kFree : kTakenDown, NORIA_SEQ_CST);
    if (foreign) {
      driver_->interrupt();
      return false;
    }
    end_worker_here();
    (void)end(timeout_ns, nullptr);
    // ORDER: seq_cst, gives it back.
    driving_.store(kFree, NORIA_SEQ_CST);
  }
  return true;
}

// The calling thread drives the only worker, and is its last owner.
void Core::end_worker_here() {
  sched::Worker& worker = scheduler_->worker(0);
  Core* before = t_context.core;
  bool driven = worker_here() != nullptr;
  if (!driven) worker.attach();
  worker.drop_local_tasks(slabs_);
  if (!driven) worker.detach();
  t_context.core = before;
}

// Whether there are local tasks that another thread than this has to drop.
bool Core::left_to_owner() {
  // ORDER: acquire, pairs with begin_driving.
  std::uintptr_t owner = owner_.load(NORIA_ACQUIRE);
  return owner != 0 && owner != thread_token() && has_local_tasks();
}

bool Core::has_local_tasks() {
  using Word = task::StateWord;
  bool found = false;
  for (Slab* slab : slabs_) {
    slab->for_each_live(SlotKind::kTask, [&found](void* slot) {
      std::uint64_t word = static_cast<task::Task*>(slot)->word.load();
      if ((word & Word::kLocal) != 0 && ((word & Word::kComplete) == 0 || (word & Word::kOutput) != 0)) found = true;
    });
  }
  return found;
}

}  // namespace noria::runtime
