// One worker, driven by the test: which of its ready tasks it polls when, how often it looks at I/O and time, and what it counts.
#include <criterion/criterion.h>

#include <memory>
#include <vector>

#include "sched/scheduler.hpp"
#include "support/check.hpp"
#include "task/task.hpp"

using namespace noria;

namespace {

// Its time moves when a task's poll moves it; of I/O nothing ever comes.
class StepDriver : public task::Driver {
 public:
  std::uint64_t time_ns = 1'000 * kNsPerSec;
  std::uint64_t looked_ns = time_ns;
  std::uint64_t longest_ns = 0;  // between two looks

  void wait(std::uint64_t, std::uint64_t) override {}
  void interrupt() override {}
  bool has_sources() const override { return false; }
  std::uint64_t now_ns() const override { return time_ns; }
  std::uint64_t next_deadline_ns(std::uint32_t) const override { return kNever; }
  bool due(std::uint32_t, std::uint64_t now_ns) const override {
    auto* self = const_cast<StepDriver*>(this);
    if (now_ns - looked_ns > longest_ns) self->longest_ns = now_ns - looked_ns;
    self->looked_ns = now_ns;
    return false;
  }
  bool sort_some(std::uint32_t) override { return false; }
  void fire_due(std::uint32_t, std::uint64_t, bool) override {}
  bool would_jump() const override { return false; }
  bool jump(std::uint64_t) override { return false; }
  void pushed_late() override {}
};

// A scheduler whose worker 0 is this thread's.
struct Bench {
  StepDriver driver;
  Vector<Slab*> slabs;
  std::unique_ptr<sched::Scheduler> scheduler;

  explicit Bench(std::uint32_t workers = 1) {
    for (std::uint32_t i = 0; i < workers; ++i) slabs.push_back(Slab::create([](void*) {}, nullptr));
    sched::Config config;
    config.workers = workers;
    scheduler = std::make_unique<sched::Scheduler>(nullptr, driver, config, slabs);
    worker().attach();
  }
  ~Bench() {
    worker().detach();
    scheduler.reset();
    for (Slab* slab : slabs) slab->orphan();
  }
  sched::Worker& worker() { return scheduler->worker(0); }
};

// A slot of a task; the test ends it.
task::Task* make_task(Bench& bench, task::Home& home, const noria_task_vtable& vtable, void* state,
                      std::uint64_t bits) {
  void* slot = bench.slabs[0]->alloc(SlotKind::kTask, task::Task::kHeader, kCacheLine);
  task::Task* task = task::construct(slot, &vtable, state, &home, 1);
  task->word.init(bits, 1);
  return task;
}

void end_task(task::Task* task) {
  task->~Task();
  Slab::free(task);
}

// Two tasks that wake each other.
struct Pair {
  struct Half {
    task::Task* task = nullptr;
    task::Task* other = nullptr;
    std::uint64_t polls = 0;
  } halves[2];

  explicit Pair(Bench& bench) {
    static constexpr noria_task_vtable kVtable = {sizeof(noria_task_vtable), 0, poll, nullptr, nullptr, "half"};
    halves[0].task = make_task(bench, *bench.scheduler, kVtable, &halves[0], task::StateWord::kNotified);
    halves[1].task = make_task(bench, *bench.scheduler, kVtable, &halves[1], 0);
    halves[0].other = halves[1].task;
    halves[1].other = halves[0].task;
    bench.scheduler->schedule(halves[0].task, task::Hint::kSpawn);
  }
  ~Pair() {
    for (Half& half : halves) end_task(half.task);
  }
  std::uint64_t polls() const { return halves[0].polls + halves[1].polls; }
  static int32_t poll(void* state, const noria_cx*) {
    auto* half = static_cast<Half*>(state);
    ++half->polls;
    task::wake_by_ref(half->other);
    return NORIA_PENDING;
  }
};

// A task that is woken in each poll.
struct Yielding {
  Bench& bench;
  std::uint64_t poll_ns;
  task::Task* task;

  Yielding(Bench& of, std::uint64_t takes_ns) : bench(of), poll_ns(takes_ns) {
    static constexpr noria_task_vtable kVtable = {sizeof(noria_task_vtable), 0, poll, nullptr, nullptr, "yielding"};
    task = make_task(bench, *bench.scheduler, kVtable, this, task::StateWord::kNotified);
    bench.scheduler->schedule(task, task::Hint::kSpawn);
  }
  ~Yielding() { end_task(task); }
  static int32_t poll(void* state, const noria_cx* cx) {
    auto* self = static_cast<Yielding*>(state);
    self->bench.driver.time_ns += self->poll_ns;
    cx->waker->vtable->wake_by_ref(cx->waker);
    return NORIA_PENDING;
  }
};

}  // namespace

// Polls of one length: from the second window on two looks are a millisecond apart, and a poll at most. A sleep does not make it
// forget what it has learned.
Test(Worker, P6_looks_at_timers_every_millisecond_whatever_the_polls_take) {
  for (std::uint64_t poll_ns : {1'000, 17'000, 100'000, 500'000, 900'000, 1'100'000, 7'000'000}) {
    Bench bench;
    {
      Yielding one(bench, poll_ns), two(bench, poll_ns);
      for (int sleep = 0; sleep < 3; ++sleep) {
        if (sleep == 0) (void)bench.worker().run_ready(200);  // long enough for two windows
        bench.driver.looked_ns = bench.driver.time_ns;
        bench.driver.longest_ns = 0;
        (void)bench.worker().run_ready(400);
        NORIA_CHECK(bench.driver.longest_ns != 0 && bench.driver.longest_ns <= kNsPerMs + poll_ns,
                    "with polls of %llu ns a timer waits for %llu ns", static_cast<unsigned long long>(poll_ns),
                    static_cast<unsigned long long>(bench.driver.longest_ns));
        bench.worker().stand_by();
        bench.driver.time_ns += 100 * kNsPerMs;
        bench.worker().take_up();
      }
    }
  }
}

// Where polls are short the reading of the clock would cost more than they do.
Test(Worker, Looks_at_timers_every_61_polls_where_those_are_short) {
  Bench bench;
  {
    Yielding one(bench, 7'000'000), two(bench, 7'000'000);
    (void)bench.worker().run_ready(200);  // it looks at each poll
    one.poll_ns = two.poll_ns = 100;
    (void)bench.worker().run_ready(200);
    bench.driver.looked_ns = bench.driver.time_ns;
    bench.driver.longest_ns = 0;
    (void)bench.worker().run_ready(610);
    cr_assert_eq(bench.driver.longest_ns, 6100);
  }
}

// Also while nothing else is in the ring.
Test(Worker, P5_after_three_polls_from_the_lifo_slot_what_was_injected_has_its_turn) {
  Bench bench;
  {
    Pair pair(bench);
    (void)bench.worker().run_ready(2);
    struct Seen {
      Pair& pair;
      std::uint64_t after = 0;
    } seen{pair};
    static constexpr noria_task_vtable kVtable = {sizeof(noria_task_vtable),
                                                  0,
                                                  [](void* state, const noria_cx*) -> int32_t {
                                                    auto* at = static_cast<Seen*>(state);
                                                    at->after = at->pair.polls();
                                                    return NORIA_PENDING;
                                                  },
                                                  nullptr,
                                                  nullptr,
                                                  "injected"};
    task::Task* injected = make_task(bench, *bench.scheduler, kVtable, &seen, task::StateWord::kNotified);
    bench.scheduler->inject().push(0, injected);
    (void)bench.worker().run_ready(50);
    cr_assert(seen.after != 0 && seen.after <= 2 + 3, "P5: it came after %llu polls of the pair (0: not at all)",
              static_cast<unsigned long long>(seen.after));
    end_task(injected);
  }
}

// Tasks that count their polls and wait for nothing.
struct Counting {
  static constexpr noria_task_vtable kVtable = {sizeof(noria_task_vtable),
                                                0,
                                                [](void* polls, const noria_cx*) -> int32_t {
                                                  ++*static_cast<std::uint64_t*>(polls);
                                                  return NORIA_PENDING;
                                                },
                                                nullptr,
                                                nullptr,
                                                "counting"};
  std::uint64_t polls = 0;
  std::vector<task::Task*> tasks;

  Counting(Bench& bench, int count) {
    for (int i = 0; i < count; ++i)
      tasks.push_back(make_task(bench, *bench.scheduler, kVtable, &polls, task::StateWord::kNotified));
  }
  ~Counting() {
    for (task::Task* task : tasks) end_task(task);
  }
};

Test(Worker, P5_what_spilled_over_has_its_turn_beside_a_flood_from_outside) {
  Bench bench;
  {
    Yielding one(bench, 100), two(bench, 100);
    Counting outside(bench, 2000), spilled(bench, 64);
    for (task::Task* task : outside.tasks) bench.scheduler->inject().push(0, task);
    bench.scheduler->inject().spill(0, spilled.tasks);
    (void)bench.worker().run_ready(400);
    cr_assert_gt(outside.polls, 0);
    cr_assert_gt(spilled.polls, 0);
    while (outside.polls + spilled.polls < 2064) (void)bench.worker().run_ready(100);
  }
}

// The ring is full at every look: of what yields, 256 that never rest.
Test(Worker, P5_what_spilled_over_has_its_turn_where_the_ring_is_always_full) {
  Bench bench;
  {
    std::vector<std::unique_ptr<Yielding>> yielding;
    for (std::uint32_t i = 0; i < sync::Ring<task::Task>::kSlots; ++i)
      yielding.push_back(std::make_unique<Yielding>(bench, 100));
    Counting spilled(bench, 10), outside(bench, 10);
    bench.scheduler->inject().spill(0, spilled.tasks);
    for (task::Task* task : outside.tasks) bench.scheduler->inject().push(0, task);
    (void)bench.worker().run_ready(5000);
    cr_assert_eq(spilled.polls, 10);
    cr_assert_eq(outside.polls, 10);
  }
}

// The end of a local task's output wakes more than there is room for beside what lies in the inject queue.
Test(Worker, Takes_no_more_from_afar_than_fits_behind_what_a_local_task_has_woken) {
  Bench bench;
  {
    Counting woken(bench, 300), outside(bench, 200);
    for (task::Task* task : woken.tasks) task->word.init(0, 1);
    struct Drop {
      static int32_t poll(void*, const noria_cx*) { return NORIA_PENDING; }
      static void wake_all(void* tasks) {
        for (task::Task* task : *static_cast<std::vector<task::Task*>*>(tasks)) task::wake_by_ref(task);
      }
    };
    static constexpr noria_task_vtable kVtable = {
        sizeof(noria_task_vtable), 0, Drop::poll, Drop::wake_all, nullptr, "local"};
    using Word = task::StateWord;
    task::Task* first = make_task(bench, bench.worker(), kVtable, &woken.tasks, Word::kNotified);
    task::Task* ended = make_task(bench, bench.worker(), kVtable, &woken.tasks, 0);
    ended->word.init(Word::kComplete | Word::kOutput | Word::kLocal, 2);
    bench.worker().schedule(first, task::Hint::kSpawn);
    bench.worker().schedule(ended, task::Hint::kSpawn);
    for (task::Task* task : outside.tasks) bench.scheduler->inject().push(0, task);
    while (woken.polls + outside.polls < 500) (void)bench.worker().run_ready(100);
    end_task(first);
    end_task(ended);
  }
}

Test(Worker, Leaves_to_a_busy_worker_what_spilled_over_from_it_until_there_is_nothing_else_to_do) {
  for (bool busy : {true, false}) {
    Bench bench(2);
    {
      Counting spilled(bench, 3);
      std::unique_ptr<Yielding> others[2];
      if (busy) {
        for (auto& one : others) one = std::make_unique<Yielding>(bench, 100);
      }
      bench.scheduler->inject().spill(1, spilled.tasks);
      (void)bench.worker().run_ready(1000);
      cr_assert_eq(spilled.polls, busy ? 0 : 3);
    }
  }
}

Test(Worker, Counts_every_poll_from_the_lifo_slot) {
  Bench bench;
  {
    Pair pair(bench);
    (void)bench.worker().run_ready(40);
    cr_assert_eq(bench.worker().counters().polls.get(), 40);
    cr_assert_eq(bench.worker().counters().lifo_polls.get(), 39);  // the first came from the ring
  }
}

Test(Worker, Counts_the_wake_of_another_worker_for_its_local_task) {
  Bench bench(2);
  sched::Worker& other = bench.scheduler->worker(1);
  static constexpr noria_task_vtable kVtable = {sizeof(noria_task_vtable),
                                                0,
                                                [](void*, const noria_cx*) -> int32_t { return NORIA_PENDING; },
                                                nullptr,
                                                nullptr,
                                                "local"};
  task::Task* local = make_task(bench, other, kVtable, nullptr, 0);
  other.park_state().prepare();
  (void)bench.scheduler->idle().park(false);
  task::wake_by_ref(local);
  cr_assert_eq(other.park_state().load(), sync::ParkState::kNotified);
  cr_assert_eq(bench.worker().counters().wakes_sent.get(), 1);
  cr_assert_eq(other.counters().wakes_sent.get(), 0);
  end_task(local);
}

namespace {

// Another thread arms a deadline while the poller reads them: it has seen what the poller slept for before, and rings nobody.
class ArmedMeanwhile final : public StepDriver {
 public:
  mutable int reads = 0;
  std::uint64_t next_deadline_ns(std::uint32_t wheel) const override {
    if (wheel != 1) return kNever;  // the guests'
    return ++reads == 1 ? kNever : 5;
  }
};

}  // namespace

Test(Worker, G2_deadline_that_is_armed_while_the_poller_publishes_is_slept_for) {
  ArmedMeanwhile driver;
  Vector<Slab*> slabs;
  slabs.push_back(Slab::create([](void*) {}, nullptr));
  {
    sched::Config config;
    sched::Scheduler scheduler(nullptr, driver, config, slabs);
    scheduler.worker(0).attach();
    scheduler.worker(0).stand_by();
    cr_assert_eq(scheduler.sleep_deadline(), 5);
    scheduler.worker(0).take_up();
    scheduler.worker(0).detach();
  }
  slabs[0]->orphan();
}
