// Frozen time stands still from a job's hold until the thread in block_on that the job has woken holds it itself (H1, H2; P6): the holds of
// the engine, the steps of a job, of a ThreadWaker and of block_on_thread around them, and a poller that jumps whenever it may. Built as
// it is, and with bugs: NORIA_PLANT_HOLDS, a hold does not wait for a jump; NORIA_PLANT_TAKE, the wake is taken before time is held.
#include <cstdio>

#include "runtime/clock_holds.hpp"

namespace {

struct HoldsModel : rl::test_suite<HoldsModel, 3> {
  noria::runtime::ClockHolds holds;
  rl::atomic<int> time;
  rl::atomic<int> notified;
  rl::var<int> seen;  // the time of the job, told by the wake

  void before() {
    time.store(0, rl::mo_relaxed, $);
    notified.store(0, rl::mo_relaxed, $);
    VAR(seen) = 0;
  }

  int now() { return time.load(rl::mo_acquire, $); }

  void poller() {
    for (int i = 0; i < 3; ++i) {
      (void)holds.jump([this] { return notified.load(rl::mo_acquire, $) != 0; },
                       [this] { time.fetch_add(1, rl::mo_acq_rel, $); });
    }
  }

  void job() {
    holds.hold();
    int begun = now();
    RL_ASSERT(now() == begun);
    VAR(seen) = begun;
    notified.exchange(1, rl::mo_acq_rel, $);
    (void)holds.release();
  }

  void block_on() {
    while (notified.load(rl::mo_acquire, $) == 0) rl::yield(1, $);
#ifdef NORIA_PLANT_TAKE
    notified.exchange(0, rl::mo_acq_rel, $);
    holds.hold();
#else
    holds.hold();
    notified.exchange(0, rl::mo_acq_rel, $);
#endif
    RL_ASSERT(now() == VAR(seen));
    (void)holds.release();
  }

  void thread(unsigned index) {
    if (index == 0) return poller();
    if (index == 1) return job();
    block_on();
  }
};

}  // namespace

int main() {
  rl::test_params params;
  params.search_type = rl::sched_random;
  params.iteration_count = 200000;
  bool ok = rl::simulate<HoldsModel>(params);
#if defined(NORIA_PLANT_HOLDS) || defined(NORIA_PLANT_TAKE)
  bool found = !ok && params.test_result == rl::test_result_user_assert_failed;
  std::printf("the planted bug was %sfound\n", found ? "" : "not ");
  return found ? 0 : 1;
#else
  return ok ? 0 : 1;
#endif
}
