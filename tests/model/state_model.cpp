// The task's state word: two workers, a waker that outlives the task perhaps, and a handle that aborts, joins, takes and goes, in
// random schedules. Built twice: as it is, and with NORIA_PLANT_STATE, where a wake during a poll is lost and the bug must be found.
// What must hold: a task is in one queue at most (S1) and polled by one thread at a time (P2); the last wake leads to a poll
// that sees what was written before it (P1); its state is dropped once, its memory is freed once, after everybody.
#include "task/state.hpp"

#include <cstdio>

namespace {

using noria::task::StateWord;
using noria::task::ToComplete;
using noria::task::ToIdle;
using noria::task::ToRunning;

constexpr int kWakes = 3;  // of the waker
constexpr unsigned kWorkers = 2;
constexpr int kPatience = 4;  // looks of an idle worker at the queue, then it rests

struct StateModel : rl::test_suite<StateModel, kWorkers + 2> {
  StateWord word;
  rl::atomic<int> queued;   // 1: it is in the queue
  rl::atomic<int> written;  // what the waker tells before each wake
  rl::atomic<int> aborted;
  rl::var<int> state;  // the user's: the running thread alone may touch it
  rl::var<int> seen;   // by the last poll; belongs to the running thread
  rl::var<int> drops;
  rl::var<int> memory;
  rl::var<int> outcome;
  rl::atomic<int> freed;
  rl::atomic<int> told;
  rl::var<int> asked;
  bool released;  // the handle's thread, then after()

  void before() {
    word.init(StateWord::kNotified | StateWord::kJoinInterest, 3);  // itself, the waker, the handle
    queued.store(1, rl::mo_relaxed, $);
    released = false;
    for (rl::atomic<int>* zero : {&written, &aborted, &freed, &told}) zero->store(0, rl::mo_relaxed, $);
    for (rl::var<int>* zero : {&state, &seen, &drops, &memory, &outcome, &asked}) VAR((*zero)) = 0;
  }

  void touch() { RL_ASSERT(VAR(memory) == 0); }

  // --- task.cpp
  void schedule() {
    RL_ASSERT(queued.exchange(1, rl::mo_acq_rel, $) == 0);  // S1
  }

  void free_task() {
    VAR(memory) = 1;  // a race with whoever still holds a reference
    RL_ASSERT(freed.exchange(1, rl::mo_relaxed, $) == 0);
  }

  void unref() {
    touch();
    if (word.unref()) free_task();
  }

  void drop_state() {
    VAR(state) = VAR(state) + 1;
    VAR(drops) = VAR(drops) + 1;
  }

  void complete(bool keep) {
    if (!keep) drop_state();
    bool kept = false;
    ToComplete done = word.to_complete(keep, kept);
    if (keep && !kept) drop_state();
    if (done.notify) {
      told.store(1, rl::mo_release, $);
      unref();
    } else if (done.free) {
      free_task();
    }
  }

  void drop_claimed() {
    VAR(outcome) = 2;
    complete(false);
  }

  void run() {
    touch();
    if (word.to_running() == ToRunning::kDrop) return drop_claimed();
    VAR(state) = VAR(state) + 1;  // P2: two polls at once are a data race
    VAR(seen) = written.load(rl::mo_relaxed, $);
    if (VAR(seen) == kWakes) {
      VAR(outcome) = 1;
      return complete(true);
    }
    switch (word.to_idle()) {
      case ToIdle::kIdle:
        return;
      case ToIdle::kRequeue:
        return schedule();
      case ToIdle::kDrop:
        return drop_claimed();
    }
  }

  // --- the threads
  void work() {
    for (int i = 0; i < kPatience; ++i) {
      if (queued.exchange(0, rl::mo_acq_rel, $) != 0) {
        run();
      } else {
        rl::yield(1, $);
      }
    }
  }

  void wake() {
    for (int i = 1; i < kWakes; ++i) {
      written.store(i, rl::mo_relaxed, $);
      touch();
      if (word.wake_by_ref()) schedule();
    }
    written.store(kWakes, rl::mo_relaxed, $);
    touch();
    if (rl::rand(2) == 0) {
      if (word.wake_by_ref()) schedule();
      return unref();
    }
    bool last = false;
    if (word.wake_by_value(last)) {
      schedule();
    } else if (last) {
      free_task();
    }
  }

  void handle() {
    touch();
    if (rl::rand(3) == 0) {
      aborted.store(1, rl::mo_relaxed, $);
      if (word.cancel()) schedule();
    }
    if (rl::rand(2) == 0) {
      VAR(asked) = 1;
      if (word.ask_for_completion()) {
        told.store(1, rl::mo_release, $);
        RL_ASSERT(VAR(outcome) != 0);  // the outcome is seen by who learns of the end
        if (rl::rand(2) == 0 && VAR(outcome) == 1 && word.claim_output()) drop_state();
      }
    }
    if (rl::rand(2) == 0) return;  // the handle goes in after()
    release_handle();
  }

  void release_handle() {
    released = true;
    if (word.release_interest()) drop_state();
    unref();
  }

  void thread(unsigned index) {
    if (index < kWorkers) return work();
    if (index == kWorkers) return wake();
    handle();
  }

  void after() {
    while (queued.exchange(0, rl::mo_acq_rel, $) != 0) run();
    if (freed.load(rl::mo_relaxed, $) == 0) {
      RL_ASSERT((word.load() & StateWord::kComplete) != 0);  // else its last wake was lost
      if (!released) release_handle();
    }
    RL_ASSERT(freed.load(rl::mo_relaxed, $) == 1);
    RL_ASSERT(VAR(drops) == 1);
    RL_ASSERT(VAR(outcome) == 1 || aborted.load(rl::mo_relaxed, $) == 1);
    RL_ASSERT(VAR(asked) == 0 || told.load(rl::mo_relaxed, $) == 1);
  }
};

}  // namespace

int main() {
  rl::test_params params;
  params.search_type = rl::sched_random;
  params.iteration_count = 300000;
#ifdef NORIA_PLANT_STATE
  rl::simulate<StateModel>(params);
  bool found = params.test_result == rl::test_result_user_assert_failed;
  std::printf("the planted bug was %sfound\n", found ? "" : "not ");
  return found ? 0 : 1;
#else
  return rl::simulate<StateModel>(params) ? 0 : 1;
#endif
}
