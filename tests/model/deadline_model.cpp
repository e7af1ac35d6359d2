// The deadline that the poller sleeps for (G2): a worker that sleeps in the reactor, and two threads that arm earlier deadlines, with the
// park state of the engine and the steps of sched/park.cpp, sched/scheduler.cpp and timer/inbox.hpp around it. Whenever all rest, the
// poller sleeps for nothing later than what is armed. Built as it is, and with NORIA_PLANT_DEADLINE=1 to 3, where each bug must be found:
// 1 no second look at the deadlines, 2 the instant is published without order, 3 who arms looks before the deadline is visible.
#include "sync/parker.hpp"

#include <cstdio>

#ifndef NORIA_PLANT_DEADLINE
#define NORIA_PLANT_DEADLINE 0
#endif

namespace {

using noria::sync::ParkState;

constexpr std::uint64_t kNever = UINT64_MAX;
constexpr int kPatience = 2;  // looks of a sleeper at the reactor, then it rests; who is rung later goes on in after()

template <unsigned kArmers>
struct DeadlineModel : rl::test_suite<DeadlineModel<kArmers>, 1 + kArmers> {
  ParkState park;
  rl::atomic<std::uint64_t> earliest;  // of the wheel: task::Driver::next_deadline_ns
  rl::atomic<std::uint64_t> sleep_deadline;
  rl::atomic<int> poller;
  rl::atomic<int> unparked;  // the reactor's own bell: a wait ends by it, this one or the next
  rl::var<std::uint64_t> rests_until;

  void before() {
    earliest.store(kNever, rl::mo_relaxed, $);
    sleep_deadline.store(0, rl::mo_relaxed, $);
    poller.store(0, rl::mo_relaxed, $);
    unparked.store(0, rl::mo_relaxed, $);
    VAR(rests_until) = 0;
  }

  // --- who arms
  void lower(std::uint64_t deadline_ns) {
    std::uint64_t now = earliest.load(rl::mo_relaxed, $);
    while (!earliest.compare_exchange_weak(now, deadline_ns < now ? deadline_ns : now, rl::mo_seq_cst, $)) {
    }
  }

  void ring_poller() {
    if (poller.load(rl::mo_seq_cst, $) == 0) return;
    if (park.ring()) unparked.store(1, rl::mo_seq_cst, $);
  }

  void arm(std::uint64_t deadline_ns) {
#if NORIA_PLANT_DEADLINE == 3
    std::uint64_t sleeps_until = sleep_deadline.load(rl::mo_seq_cst, $);
    lower(deadline_ns);
#else
    lower(deadline_ns);
    std::uint64_t sleeps_until = sleep_deadline.load(rl::mo_seq_cst, $);
#endif
    if (deadline_ns < sleeps_until) ring_poller();
  }

  // --- the poller
  void publish(std::uint64_t deadline_ns) {
#if NORIA_PLANT_DEADLINE == 2
    sleep_deadline.store(deadline_ns, rl::mo_release, $);
#else
    sleep_deadline.store(deadline_ns, rl::mo_seq_cst, $);
#endif
  }

  std::uint64_t nearest() { return earliest.load(rl::mo_seq_cst, $); }

  std::uint64_t publish_deadline() {
    std::uint64_t deadline_ns = nearest();
    for (;;) {
      publish(deadline_ns);
#if NORIA_PLANT_DEADLINE == 1
      return deadline_ns;
#endif
      std::uint64_t again_ns = nearest();
      if (again_ns >= deadline_ns) return deadline_ns;
      deadline_ns = again_ns;
    }
  }

  // False: nothing has ended it so far.
  bool wait() {
    for (int i = 0; i < kPatience; ++i) {
      if (unparked.load(rl::mo_acquire, $) != 0 && unparked.exchange(0, rl::mo_acq_rel, $) != 0) return true;
      rl::yield(1, $);
    }
    return false;
  }

  void hear_bell() {
    if (park.load() != ParkState::kBell) return;
    park.hush();
  }

  void sleep() {
    for (;;) {
      std::uint64_t deadline_ns = publish_deadline();
      if (!wait()) {
        VAR(rests_until) = deadline_ns;
        return;
      }
      sleep_deadline.store(0, rl::mo_release, $);
      hear_bell();
    }
  }

  void thread(unsigned index) {
    if (index != 0) return arm(10 * index);
    poller.store(1, rl::mo_seq_cst, $);
    park.prepare();
    sleep();
  }

  // A wait that was ended after it came to rest goes on.
  void after() {
    if (unparked.load(rl::mo_seq_cst, $) != 0) {
      sleep_deadline.store(0, rl::mo_release, $);
      unparked.store(0, rl::mo_seq_cst, $);
      hear_bell();
      sleep();
    }
    RL_ASSERT(VAR(rests_until) <= nearest());
  }
};

template <typename Model>
rl::test_result_e exhaust(unsigned switches) {
  rl::test_params params;
  params.search_type = rl::sched_bound;
  params.context_bound = switches;
  rl::simulate<Model>(params);
  return params.test_result;
}

template <typename Model>
rl::test_result_e sample(unsigned count) {
  rl::test_params params;
  params.search_type = rl::sched_random;
  params.iteration_count = count;
  rl::simulate<Model>(params);
  return params.test_result;
}

}  // namespace

int main() {
#if NORIA_PLANT_DEADLINE != 0
  bool found = sample<DeadlineModel<2>>(200000) == rl::test_result_user_assert_failed ||
               exhaust<DeadlineModel<1>>(4) == rl::test_result_user_assert_failed;
  std::printf("the planted bug was %sfound\n", found ? "" : "not ");
  return found ? 0 : 1;
#else
  return exhaust<DeadlineModel<1>>(3) == rl::test_result_success &&
                 sample<DeadlineModel<2>>(1000000) == rl::test_result_success
             ? 0
             : 1;
#endif
}
