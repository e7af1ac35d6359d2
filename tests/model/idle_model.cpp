// No lost wake-up (P1, the case idle-check): two workers that park and two threads that push from outside, with the idle word and
// the park state of the engine and the steps of sched/park.cpp and sched/scheduler.cpp around them. Whenever all threads rest, the
// inject queue is empty and the counts of awake and searching workers are zero (I1, I2); no sentry is asleep while
// a worker is awake (I3). Built twice: as it is, and with NORIA_PLANT_IDLE, where the bug must be found.
#include "sync/idle_word.hpp"
#include "sync/parker.hpp"

#include <cstdio>

namespace {

using noria::sync::IdleWord;
using noria::sync::ParkState;

constexpr int kPushes = 1;    // of each pusher
constexpr int kPatience = 2;  // looks of a sleeper at its word, then it rests; who is notified later goes on in after()

template <unsigned kWorkers, unsigned kPushers>
struct IdleModel : rl::test_suite<IdleModel<kWorkers, kPushers>, kWorkers + kPushers> {
  IdleWord idle{kWorkers};
  ParkState park_state[kWorkers];
  rl::mutex lock;
  rl::var<int> queue;     // guarded by lock
  rl::atomic<int> size;   // as task::Inject, Q1
  rl::atomic<int> early;  // wake-ups without a waker (deadlines, I/O) that are left
  rl::var<bool> searching[kWorkers];
  rl::var<bool> asleep[kWorkers];

  void before() {
    VAR(queue) = 0;
    size.store(0, rl::mo_relaxed, $);
    early.store(1, rl::mo_relaxed, $);
    for (unsigned i = 0; i < kWorkers; ++i) {
      VAR(searching[i]) = false;
      VAR(asleep[i]) = false;
    }
  }

  void check(IdleWord::View view) {
    RL_ASSERT(view.awake() <= kWorkers + kPushers + 1);  // more than the workers: one that nobody was found for
    RL_ASSERT(view.searching() <= view.awake());
    RL_ASSERT(view.awake() == 0 || !view.sentry_asleep());
  }

  // --- scheduler.cpp
  bool notify_one() {
    for (unsigned i = 0; i < kWorkers; ++i) {
      if (park_state[i].notify()) return true;
    }
    return false;
  }

  void ring(std::uint32_t bell) {
    if (bell != IdleWord::kNobody) (void)park_state[bell].ring();
  }

  bool empty() { return size.load(rl::mo_seq_cst, $) == 0; }

  void ensure_awake() {
    std::uint32_t bell = IdleWord::kNobody;
    while (idle.wake_first(bell)) {
      bool found = notify_one();
      if (!found) idle.undo_wake();
      ring(bell);
#ifdef NORIA_PLANT_IDLE_ONCE
      return;  // the planted bug: nobody looks after those who relied on the count
#endif
      if (found || empty()) return;
    }
  }

  void push() {
    lock.lock($);
    VAR(queue) = VAR(queue) + 1;
    size.store(VAR(queue), rl::mo_seq_cst, $);
    lock.unlock($);
    ensure_awake();
  }

  // --- worker.cpp and park.cpp
  bool take() {
    if (size.load(rl::mo_relaxed, $) == 0) return false;
    lock.lock($);
    bool any = VAR(queue) != 0;
    VAR(queue) = 0;
    size.store(0, rl::mo_relaxed, $);
    lock.unlock($);
    return any;
  }

  void begin_sleep(unsigned self) {
    park_state[self].prepare();
    check(idle.park(VAR(searching[self])));
    VAR(searching[self]) = false;
    if (kWorkers == 1 || !idle.take_sentry(self, IdleWord::kNobody)) return;
    VAR(asleep[self]) = idle.sentry_sleeps(self);
  }

  void end_sleep(unsigned self) {
    if (park_state[self].load() == ParkState::kNotified) {
      (void)park_state[self].finish();
      VAR(searching[self]) = true;
    } else {
      std::uint32_t bell;
      idle.unpark(false, bell);
      if (bell != IdleWord::kNobody && bell != self) ring(bell);
      if (park_state[self].finish() == ParkState::kNotified) {
        idle.count_once(false);
        VAR(searching[self]) = true;
      }
    }
    if (kWorkers > 1) check(idle.view());
    if (kWorkers > 1 && idle.leave_sentry(self)) ring(1 - self);
    VAR(asleep[self]) = false;
  }

  // A deadline or an event wakes it, at any look, or where every schedule is tried at the second.
  bool wakes_early(int look) {
    if (kWorkers == 1 ? look != 1 : rl::rand(3) != 0) return false;
    return early.load(rl::mo_relaxed, $) > 0 && early.fetch_sub(1, rl::mo_relaxed, $) > 0;
  }

  // False: it rests, parked.
  bool sleep(unsigned self) {
    if (!empty()) return true;
    for (int i = 0; i < kPatience; ++i) {
      std::uint32_t state = park_state[self].load();
      if (state == ParkState::kNotified) return true;
      if (state == ParkState::kBell) {
        park_state[self].hush();
        VAR(asleep[self]) = false;
      }
      if (wakes_early(i)) return true;
      rl::yield(1, $);
    }
    return false;
  }

  void work(unsigned self) {
    for (;;) {
      if (take()) continue;
      if (VAR(searching[self])) {
        VAR(searching[self]) = false;
        idle.stop_search();
      }
      begin_sleep(self);
      if (!sleep(self)) return;
      end_sleep(self);
    }
  }

  void thread(unsigned index) {
    if (index < kWorkers) return work(index);
    for (int i = 0; i < kPushes; ++i) push();
  }

  // Who was notified after it came to rest goes on; then all rest.
  void after() {
    early.store(0, rl::mo_relaxed, $);
    for (bool again = true; again;) {
      again = false;
      for (unsigned i = 0; i < kWorkers; ++i) {
        if (park_state[i].load() != ParkState::kNotified) continue;
        end_sleep(i);
        work(i);
        again = true;
      }
    }
    RL_ASSERT(empty());
    RL_ASSERT(VAR(queue) == 0);
    RL_ASSERT(idle.view().awake() == 0);
    RL_ASSERT(idle.view().searching() == 0);
  }
};

// Every schedule with up to `switches` switches that no thread asked for.
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
#if defined(NORIA_PLANT_IDLE) || defined(NORIA_PLANT_IDLE_ONCE)
  bool found = sample<IdleModel<2, 2>>(20000) == rl::test_result_user_assert_failed ||
               exhaust<IdleModel<1, 2>>(4) == rl::test_result_user_assert_failed;
  std::printf("the planted bug was %sfound\n", found ? "" : "not ");
  return found ? 0 : 1;
#else
  return exhaust<IdleModel<1, 2>>(3) == rl::test_result_success &&

                 sample<IdleModel<2, 2>>(200000) == rl::test_result_success
             ? 0
             : 1;
#endif
}
