// The sentry's tick (sched/sentry.cpp), a step at a time: a scheduler of three workers, none of which has a thread. Worker 0 is awake,
// worker 1 sleeps in the reactor, worker 2 is parked by the test and is the sentry. The linker leads its futex_wait here (--wrap): each
// call lasts for a tick, and the test decides what happened meanwhile.
#include <criterion/criterion.h>

#include <ctime>
#include <functional>

#include "sched/scheduler.hpp"
#include "support/check.hpp"
#include "task/task.hpp"

using namespace noria;

namespace {

int32_t poll_pending(void*, const noria_cx*) { return NORIA_PENDING; }
const noria_task_vtable kVtable = {sizeof(noria_task_vtable), 0, poll_pending, nullptr, nullptr, "queued"};

// Of I/O nothing ever comes, and of time what the test puts into the wheel of worker 0.
class NoDriver final : public task::Driver {
 public:
  bool armed = false;  // a timer that is due
  std::uint64_t now = 1;
  int fired = 0;

  void wait(std::uint64_t, std::uint64_t) override { NORIA_CHECK(false, "the sentry is not the poller"); }
  void interrupt() override {}
  bool has_sources() const override { return false; }
  std::uint64_t now_ns() const override { return now; }
  std::uint64_t next_deadline_ns(std::uint32_t wheel) const override { return wheel == 0 && armed ? 1 : kNever; }
  bool due(std::uint32_t, std::uint64_t) const override { return false; }
  bool sort_some(std::uint32_t) override { return false; }
  void fire_due(std::uint32_t, std::uint64_t, bool) override {
    armed = false;
    ++fired;
  }
  bool would_jump() const override { return false; }
  bool jump(std::uint64_t) override { return false; }
  void pushed_late() override {}
};

std::function<void()> g_meanwhile;  // during each tick of the sentry

struct Bench {
  NoDriver driver;
  Vector<Slab*> slabs;
  std::unique_ptr<sched::Scheduler> scheduler;

  Bench() {
    for (int i = 0; i < 3; ++i) slabs.push_back(Slab::create([](void*) {}, nullptr));
    sched::Config config;
    config.workers = 3;
    scheduler = std::make_unique<sched::Scheduler>(nullptr, driver, config, slabs);
    cr_assert(scheduler->take_poller(1));
    scheduler->worker(1).park_state().prepare();
    scheduler->idle().park(false);
  }
  ~Bench() {
    scheduler.reset();
    for (Slab* slab : slabs) slab->orphan();
  }
  task::Task* make_task(task::Home& home) {
    void* slot = slabs[0]->alloc(SlotKind::kTask, task::Task::kHeader, kCacheLine);
    return task::construct(slot, &kVtable, nullptr, &home, 1);
  }
  // For a task that is polled too.
  task::Task* make_task(const noria_task_vtable& vtable, void* state) {
    void* slot = slabs[0]->alloc(SlotKind::kTask, task::Task::kHeader, kCacheLine);
    task::Task* task = task::construct(slot, &vtable, state, scheduler.get(), 1);
    task->word.init(task::StateWord::kNotified, 1);
    return task;
  }
  static void end(task::Task* task) {
    task->~Task();
    Slab::free(task);
  }
  sched::Worker& sentry() { return scheduler->worker(2); }
  std::uint64_t acts() { return sentry().counters().sentry_acts.get(); }
};

}  // namespace

// futex_wait(Atomic<std::uint32_t>&, std::uint32_t, std::uint64_t)
extern "C" void __wrap__ZN5noria4sync10futex_waitERSt6atomicIjEjm(Atomic<std::uint32_t>&, std::uint32_t,
                                                                  std::uint64_t timeout_ns) noexcept {
  NORIA_CHECK(timeout_ns <= sched::Scheduler::kSentryTickNs, "a sentry that ticks sleeps until its next tick");
  g_meanwhile();
  timespec tick{0, static_cast<long>(timeout_ns)};
  while (::nanosleep(&tick, &tick) != 0) {
  }
}

// A worker that goes on polling, but slowly, over a queue that is worth it: whichever thread has filled it.
Test(Sentry, P4_backlog_in_any_shard_of_the_inject_queue_is_shared) {
  for (std::uint32_t shard = 0; shard < 3; ++shard) {
    Bench bench;
    task::Task* queued = bench.make_task(*bench.scheduler);
    int ticks = 0;
    g_meanwhile = [&] {
      NORIA_CHECK(++ticks <= 3, "P4: nobody comes to help with what is in shard %u", shard);
      if (ticks == 1) bench.scheduler->inject().push(shard, queued);
      bench.scheduler->worker(0).counters().polls.add(1);
    };
    bench.sentry().park(kNever);
    cr_assert_eq(ticks, 1);
    cr_assert_eq(bench.acts(), 1);
    task::Task* left[1];
    cr_assert_eq(bench.scheduler->inject().pop(0, left), 1);
    cr_assert_eq(left[0], queued);
    Bench::end(queued);
  }
}

// What only its own worker may poll is no reason to get up.
Test(Sentry, Local_tasks_of_a_stuck_worker_are_left_alone) {
  Bench bench;
  sched::Worker& stuck = bench.scheduler->worker(0);
  task::Task* local = bench.make_task(stuck);
  stuck.schedule(local, task::Hint::kWake);
  cr_assert_eq(stuck.queue_depth(), 1);
  int ticks = 0;
  g_meanwhile = [&] {
    if (++ticks == 5) cr_assert(bench.sentry().park_state().notify());
  };
  bench.sentry().park(kNever);
  cr_assert_eq(ticks, 5);
  cr_assert_eq(bench.acts(), 0);
  Bench::end(local);
}

// A worker that goes on polling, and has not come to its wheel for longer than a tick; a timer that is just due is its own affair.
Test(Sentry, P4_timer_that_is_a_tick_late_on_a_worker_with_long_polls_is_a_reason) {
  Bench bench;
  int ticks = 0;
  g_meanwhile = [&] {
    NORIA_CHECK(++ticks <= 3, "P4: nobody fires the timer");
    bench.driver.armed = true;
    if (ticks == 3) bench.driver.now += sched::Scheduler::kSentryTickNs + 1;
    bench.scheduler->worker(0).counters().polls.add(1);
  };
  bench.sentry().park(kNever);
  cr_assert_eq(ticks, 3);
  cr_assert_eq(bench.acts(), 1);
}

// It gets up for both, and what was injected may be long: the timer comes first.
Test(Sentry, P4_due_timer_of_a_stuck_worker_fires_before_what_was_injected_is_polled) {
  Bench bench;
  struct Seen {
    Bench& bench;
    int fired_before = -1;
  } seen{bench};
  noria_task_vtable vtable = kVtable;
  vtable.poll = [](void* state, const noria_cx*) -> int32_t {
    auto* at = static_cast<Seen*>(state);
    at->fired_before = at->bench.driver.fired;
    at->bench.scheduler->stop();
    return NORIA_PENDING;
  };
  task::Task* injected = bench.make_task(vtable, &seen);
  g_meanwhile = [&] {
    NORIA_CHECK(seen.fired_before == -1, "it sleeps on after the end");
    bench.driver.armed = true;
    bench.scheduler->inject().push(0, injected);
  };
  bench.sentry().attach();
  bench.sentry().loop();
  bench.sentry().detach();
  cr_assert_eq(bench.acts(), 1);
  cr_assert_eq(seen.fired_before, 1, "P4: the timer waits behind the injected task");
  Bench::end(injected);
}
