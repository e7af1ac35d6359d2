// One worker, driven by the test: which of its ready tasks it polls when, how often it looks at I/O and time, and what it counts.
#include <criterion/criterion.h>

#include <memory>

#include "sched/scheduler.hpp"
#include "support/check.hpp"
#include "task/task.hpp"

using namespace noria;

namespace {

// Its time moves when a task's poll moves it; of I/O nothing ever comes.
class StepDriver final : public task::Driver {
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

// A task that is woken in each poll.
struct Yielding {
  Bench& bench;
  std::uint64_t poll_ns;
  task::Task* task;

  Yielding(Bench& of, std::uint64_t takes_ns) : bench(of), poll_ns(takes_ns) {
    static constexpr noria_task_vtable kVtable = {sizeof(noria_task_vtable), 0, poll, nullptr, nullptr, "yielding"};
    void* slot = bench.slabs[0]->alloc(SlotKind::kTask, task::Task::kHeader, kCacheLine);
    task = task::construct(slot, &kVtable, this, bench.scheduler.get(), 1);
    task->word.init(task::StateWord::kNotified, 1);
    bench.scheduler->schedule(task, task::Hint::kSpawn);
  }
  ~Yielding() {
    task->~Task();
    Slab::free(task);
  }
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
