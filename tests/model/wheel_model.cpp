// One timer between the holder of a wheel's lock, who drains, fires and publishes the earliest
// deadline, and two other threads, who cancel and reset. Built as it is, and with NORIA_PLANT_WHEEL=1
// to 4, where each bug must be found.
#include <cstdio>

#include "timer/inbox.hpp"
#include "timer/word.hpp"

namespace noria {
void assert_failed(const char* invariant, const char*, int) {
  std::printf("%s\n", invariant);
  RL_ASSERT(false && "an invariant of the code under test");
  std::abort();
}
}  // namespace noria

namespace {

using noria::timer::Inbox;
using noria::timer::TimerWord;

constexpr std::uint64_t kNever = UINT64_MAX;
constexpr std::uint64_t kFirst = 10;  // the deadline that the timer is armed with
constexpr std::uint64_t kSooner = 4;
constexpr std::uint64_t kSoonest = 2;
constexpr std::uint64_t kLater = 20;

struct Timer {
  TimerWord word;
  rl::var<Timer*> inbox_next;
  rl::var<std::uint64_t> place;  // the slot that it is in, 0 if none; as all below: under the lock
  rl::var<int> held;             // the wheel's reference
  rl::var<int> fired;
};

// The wheel without its slots: one place that is a deadline. The engine's lock makes holders one after
// the other, so that one thread plays them all.
struct OneTimerWheel {
  Inbox<Timer> inbox{kNever};
  Timer timer;

  void arm() {
    VAR(timer.fired) = 0;
    VAR(timer.held) = 1;
    timer.word.arm(kFirst);
    VAR(timer.place) = kFirst;
    inbox.lower_locked(kFirst);
  }

  void let_go() {
    RL_ASSERT(VAR(timer.held) == 1);
    VAR(timer.held) = 0;
    timer.word.hand_back();
  }

  void drain(Timer& taken) {
    RL_ASSERT(VAR(taken.held) == 1);
    bool was_linked = false;
    std::uint64_t deadline = 0;
    TimerWord::Drained drained = taken.word.drain(was_linked, deadline);
    RL_ASSERT(was_linked == (VAR(taken.place) != 0));
    VAR(taken.place) = drained == TimerWord::Drained::kPlace ? deadline : 0;
    if (drained == TimerWord::Drained::kRelease) let_go();
  }

  void expire(std::uint64_t now) {
    VAR(timer.place) = 0;
    std::uint64_t deadline = 0;
    switch (timer.word.expire(now, deadline)) {
      case TimerWord::Expiry::kFire:
        RL_ASSERT(VAR(timer.fired) == 0);
        VAR(timer.fired) = 1;
        return let_go();
      case TimerWord::Expiry::kLater:
        VAR(timer.place) = deadline;
        return;
      case TimerWord::Expiry::kGone:
        return;
    }
  }

  void advance(std::uint64_t now) {
    for (Timer* taken = inbox.take(); taken != nullptr;) {
      Timer* next = VAR(taken->inbox_next);
      drain(*taken);
      taken = next;
    }
    if (VAR(timer.place) != 0 && VAR(timer.place) <= now) expire(now);
    inbox.publish(VAR(timer.place) != 0 ? VAR(timer.place) : kNever);
  }

  TimerWord::Remote reset(std::uint64_t deadline) {
    TimerWord::Remote result = timer.word.reset_remote(deadline);
    if (result == TimerWord::Remote::kPush) {
      inbox.push(timer);
      deadline = timer.word.deadline_after_push_ns();
    }
    if (result == TimerWord::Remote::kPush || result == TimerWord::Remote::kQueued) (void)inbox.lower(deadline);
    return result;
  }

  TimerWord::Remote cancel() {
    TimerWord::Remote result = timer.word.cancel_remote();
    if (result == TimerWord::Remote::kPush) inbox.push(timer);
    return result;
  }

  // The owner's cancel, under the lock.
  bool cancel_mine() {
    TimerWord::Bits bits = timer.word.load();
    do {
      if (!TimerWord::armed(bits)) return false;
    } while (!timer.word.cancel_locked(bits));
    RL_ASSERT(((bits & TimerWord::kLinked) != 0) == (VAR(timer.place) != 0));
    VAR(timer.place) = 0;
    if ((bits & TimerWord::kQueued) == 0) VAR(timer.held) = VAR(timer.held) - 1;
    return true;
  }

  // The owner's reset, under the lock.
  bool reset_mine(std::uint64_t deadline) {
    TimerWord::Bits bits = timer.word.load();
    do {
      if (!TimerWord::armed(bits)) return false;
    } while (!timer.word.reset_locked(bits, deadline));
    if ((bits & TimerWord::kLinked) != 0) VAR(timer.place) = deadline;
    inbox.lower_locked(deadline);
    return true;
  }

  // All is quiet: what is armed has its wake-up, and one advance settles the rest.
  void finish(bool cancelled) {
    if (TimerWord::armed(timer.word.load())) RL_ASSERT(inbox.earliest_ns() <= timer.word.deadline_ns());
    advance(100);
    RL_ASSERT(VAR(timer.fired) == (cancelled ? 0 : 1));
    RL_ASSERT(VAR(timer.held) == 0);
    RL_ASSERT((timer.word.load() & TimerWord::kFlags) == 0);
    RL_ASSERT(inbox.empty());
    RL_ASSERT(inbox.earliest_ns() == kNever);
  }
};

bool won(TimerWord::Remote result) { return result != TimerWord::Remote::kTooLate; }

// A cancel and a reset to sooner meet an advance at which the timer is due.
struct CancelAndReset : rl::test_suite<CancelAndReset, 3> {
  OneTimerWheel wheel;
  rl::var<int> cancelled;

  void before() {
    VAR(cancelled) = 0;
    wheel.arm();
  }
  void thread(unsigned index) {
    if (index == 0) {
      wheel.advance(kFirst);
    } else if (index == 1) {
      VAR(cancelled) = won(wheel.cancel()) ? 1 : 0;
    } else {
      wheel.reset(kSooner);
    }
  }
  void after() { wheel.finish(VAR(cancelled) == 1); }
};

// Two cancels: one of them wins, or fire does.
struct TwoCancels : rl::test_suite<TwoCancels, 3> {
  OneTimerWheel wheel;
  rl::var<int> wins[2];

  void before() { wheel.arm(); }
  void thread(unsigned index) {
    if (index == 0) {
      wheel.advance(kFirst);
    } else {
      VAR(wins[index - 1]) = won(wheel.cancel()) ? 1 : 0;
    }
  }
  void after() {
    int cancels = VAR(wins[0]) + VAR(wins[1]);
    RL_ASSERT(cancels <= 1);
    wheel.finish(cancels == 1);
  }
};

// The owner cancels while another thread cancels and a third resets.
struct OwnerCancels : rl::test_suite<OwnerCancels, 3> {
  OneTimerWheel wheel;
  rl::var<int> wins[2];

  void before() {
    VAR(wins[0]) = VAR(wins[1]) = 0;
    wheel.arm();
  }
  void thread(unsigned index) {
    if (index == 0) {
      VAR(wins[0]) = wheel.cancel_mine() ? 1 : 0;
      wheel.advance(kFirst);
    } else if (index == 1) {
      VAR(wins[1]) = won(wheel.cancel()) ? 1 : 0;
    } else {
      wheel.reset(kSooner);
    }
  }
  void after() {
    RL_ASSERT(VAR(wins[0]) + VAR(wins[1]) == 1);
    wheel.finish(true);
  }
};

// The owner and another thread reset to sooner.
struct OwnerResets : rl::test_suite<OwnerResets, 2> {
  OneTimerWheel wheel;

  void before() { wheel.arm(); }
  void thread(unsigned index) {
    if (index == 0) {
      RL_ASSERT(wheel.reset_mine(kSoonest));
      wheel.advance(1);
    } else {
      RL_ASSERT(won(wheel.reset(kSooner)));
    }
  }
  void after() { wheel.finish(false); }
};

// Two resets to sooner, both before the timer is due: whichever pushes, the sleeper hears of both.
struct TwoResets : rl::test_suite<TwoResets, 3> {
  OneTimerWheel wheel;

  void before() { wheel.arm(); }
  void thread(unsigned index) {
    if (index == 0) {
      wheel.advance(1);
    } else {
      RL_ASSERT(won(wheel.reset(index == 1 ? kSooner : kSoonest)));
    }
  }
  void after() { wheel.finish(false); }
};

// A reset to later that was told of its success is never followed by a fire on the old deadline; the
// second advance meets what a drain has just placed.
struct ResetToLater : rl::test_suite<ResetToLater, 2> {
  OneTimerWheel wheel;

  void before() { wheel.arm(); }
  void thread(unsigned index) {
    if (index == 0) {
      wheel.advance(kFirst);
      wheel.advance(kFirst);
      return;
    }
    if (won(wheel.reset(kLater))) RL_ASSERT(TimerWord::armed(wheel.timer.word.load()));
  }
  void after() { wheel.finish(false); }
};

template <typename Model>
bool holds(const char* name, rl::iteration_t rounds) {
  rl::test_params params;
  params.search_type = rounds == 0 ? rl::sched_bound : rl::sched_random;
  params.context_bound = 3;
  params.iteration_count = rounds;
  std::printf("%s:\n", name);
  rl::simulate<Model>(params);
  return params.test_result == rl::test_result_success;
}

}  // namespace

int main() {
#ifdef NORIA_PLANT_WHEEL
  constexpr rl::iteration_t kRounds = 200000;
#else
  constexpr rl::iteration_t kRounds = 0;
#endif
  bool all_hold = holds<ResetToLater>("reset to later", kRounds) && holds<OwnerResets>("owner resets", kRounds) &&
                  holds<OwnerCancels>("owner cancels", kRounds) && holds<TwoCancels>("two cancels", kRounds) &&
                  holds<TwoResets>("two resets", kRounds) && holds<CancelAndReset>("cancel and reset", kRounds);
#ifdef NORIA_PLANT_WHEEL
  std::printf("the planted bug was %sfound\n", all_hold ? "not " : "");
  return all_hold ? 1 : 0;
#else
  return all_hold ? 0 : 1;
#endif
}
