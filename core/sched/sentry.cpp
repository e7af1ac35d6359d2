// sentry.cpp: one of the idle workers watches the awake ones (P4).
//
// Every tick it compares each awake worker's count of polls and parks with what it saw before. A count that stands still is a poll that
// runs long, whatever the sentry itself did meanwhile: what it saw is kept from one sleep to the next, so that a sentry that is woken
// again and again still finds it. If there is anything that the stuck worker keeps from others (its queue and LIFO slot, its wheel, the inject queue, a reactor
// that nobody polls), the sentry gets up and does it, what is due first. A count that moves slowly over a long queue is a backlog; it is shared then.
// When a tick finds all parked, and nobody has polled since the one before, the sentry sleeps without end, and whoever wakes first rings it (I3, I4).
#include <utility>

#include "base/clock.hpp"
#include "sched/scheduler.hpp"
#include "sched/sleep.hpp"
#include "sched/worker.hpp"

namespace noria::sched {

using sync::IdleWord;
using task::Task;

bool Worker::tick(Sleep& sleep) {
  IdleWord& idle = scheduler_.idle();
  IdleWord::View now = idle.view();
  if (now.sentry() != index_) {
    sleep.sentry = false;  // another sleeper has taken the part over from the poller
    return false;
  }
  if (sleep.asleep) {
    if (now.sentry_asleep()) return false;
    sleep.asleep = false;
    sleep.quiet_ticks = 0;
  }
  // An event or a bell ends a sleep early; only a whole tick says that somebody stands still.
  std::uint64_t real_ns = monotonic_ns();
  if (real_ns - ticked_ns_ < Scheduler::kSentryTickNs) return false;
  ticked_ns_ = real_ns;
  if (now.awake() == 0) {
    std::uint64_t steps = 0;
    for (std::uint32_t i = 0; i < scheduler_.workers(); ++i) steps += steps_since_tick(i);
    if (steps != 0) sleep.quiet_ticks = 0;
    if (steps == 0 && ++sleep.quiet_ticks >= Scheduler::kQuietTicks && idle.sentry_sleeps(index_)) sleep.asleep = true;
    return false;
  }
  sleep.quiet_ticks = 0;
  if (!must_act()) return false;
  acting_ = true;
  counters_.sentry_acts.add(1);
  return true;
}

// How long of real time it may sleep at a stretch: a sentry that ticks, until its next tick.
std::uint64_t Worker::cap_ns(const Sleep& sleep) const {
  if (!sleep.sentry || sleep.asleep) return kNever;
  std::uint64_t since_ns = monotonic_ns() - ticked_ns_;
  return since_ns < Scheduler::kSentryTickNs ? Scheduler::kSentryTickNs - since_ns : 0;
}

// Polls and parks of a worker since this one saw it last.
std::uint64_t Worker::steps_since_tick(std::uint32_t index) {
  WorkerCounters& counters = scheduler_.worker(index).counters();
  std::uint64_t steps = counters.polls.get() + counters.parks.get();
  return steps - std::exchange(seen_steps_[index], steps);
}

// Where nobody is idle there is no sentry: a busy worker looks after those that wait behind a stuck poll, now and then (P5).
void Worker::help_beside_work() {
  until_help_ = kHelpInterval;
  std::uint64_t real_ns = monotonic_ns();
  std::uint64_t since_ns = real_ns - ticked_ns_;
  if (scheduler_.workers() == 1 || since_ns < Scheduler::kSentryTickNs) return;
  ticked_ns_ = real_ns;
  for (std::uint32_t i = 0; i < scheduler_.workers(); ++i) {
    Worker& worker = scheduler_.worker(i);
    std::uint64_t moved = steps_since_tick(i);
    if (i == index_ || worker.park_state().parked()) continue;
    // What has spilled over from one that goes on polling is its own, unless it is worth another worker.
    bool stuck = moved == 0;
    if (!stuck && scheduler_.inject().spilled(i) * (since_ns / moved) <= Scheduler::kBacklogNs) continue;
    Task* spilled[kTaken];
    std::size_t count = scheduler_.inject().pop_spilled(i, spilled);
    for (Task* task : std::span(spilled, count)) push(task, task::Hint::kRequeue);
    counters_.steals.add(count);
    if (!stuck || worker.stealable() == 0) continue;
    sync::Ring<Task> taken;
    std::uint32_t stolen = 0;
    if (Task* first = worker.steal_for(taken, true, stolen)) push(first, task::Hint::kRequeue);
    while (Task* task = taken.pop()) push(task, task::Hint::kRequeue);
    counters_.steals.add(stolen);
  }
}

bool Worker::must_act() {
  std::uint64_t now_ns = scheduler_.driver().now_ns();
  bool act = false;
  for (std::uint32_t i = 0; i < scheduler_.workers(); ++i) {
    Worker& worker = scheduler_.worker(i);
    std::uint64_t moved = steps_since_tick(i);
    if (i == index_ || worker.park_state().parked()) continue;
    if (moved == 0) {
      act = act || stuck_worker_needs_help(worker, now_ns);
    } else {
      std::uint64_t queued = worker.stealable() + scheduler_.inject().size();
      act = act || queued * (Scheduler::kSentryTickNs / moved) > Scheduler::kBacklogNs;
      // It polls, and has not found the time to look at its wheel: its polls take long since a moment ago.
      std::uint64_t deadline_ns = scheduler_.driver().next_deadline_ns(i);
      act = act || (deadline_ns < now_ns && now_ns - deadline_ns > Scheduler::kSentryTickNs);
    }
  }
  return act;
}

bool Worker::stuck_worker_needs_help(Worker& worker, std::uint64_t now_ns) {
  if (worker.stealable() != 0 || !scheduler_.inject().empty()) return true;
  task::Driver& driver = scheduler_.driver();
  if (driver.next_deadline_ns(worker.index()) <= now_ns) return true;
  if (scheduler_.poller() != IdleWord::kNobody) return false;
  if (driver.has_sources()) return true;
  for (std::uint32_t i = 0; i <= scheduler_.workers(); ++i) {
    if (driver.next_deadline_ns(i) <= now_ns) return true;
  }
  return false;
}

// Everything that a stuck worker may keep from others but for its queues; what comes of it lands in this worker's. It comes before
// what was injected: that may take long.
void Worker::serve_the_stuck() {
  acting_ = false;
  helping_ = true;
  task::Driver& driver = scheduler_.driver();
  std::uint64_t now_ns = driver.now_ns();
  for (std::uint32_t i = 0; i <= scheduler_.workers(); ++i) {
    if (driver.next_deadline_ns(i) <= now_ns) driver.fire_due(i, now_ns, i == index_);
  }
  if (!scheduler_.take_poller(index_)) return;
  driver.wait(0, 0);
  scheduler_.leave_poller();
}

}  // namespace noria::sched
