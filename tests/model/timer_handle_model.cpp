// A timer handle (runtime/timer_handle.hpp) with the engine's timer word and the steps of runtime/timer_handle.cpp around it: a wheel that fires
// it, and two threads that reset and cancel it. Whenever all rest, an armed timer is in the wheel, at a deadline that is not later than what was
// said last (H5). Built as it is, and with NORIA_PLANT_HANDLE=1 and 2, where each bug must be found: 1 cancel makes the wheel's deadline later after it has
// given lock_ back, 2 a reset brings its own deadline to the wheel, not the one that was said last.
#include "timer/word.hpp"

#include <cstdio>

#ifndef NORIA_PLANT_HANDLE
#define NORIA_PLANT_HANDLE 0
#endif

namespace noria {
void assert_failed(const char* invariant, const char*, int) {
  std::printf("%s\n", invariant);
  RL_ASSERT(false && "an invariant of the code under test");
  std::abort();
}
}  // namespace noria

namespace {

using noria::timer::TimerWord;

constexpr std::uint64_t kNever = UINT64_MAX;
constexpr std::uint64_t kFirst = 10;
constexpr std::uint64_t kSooner = 5;
constexpr std::uint64_t kSoonest = 4;
constexpr std::uint64_t kLater = 20;

struct Handle {
  rl::mutex engine_lock;  // the wheel's own
  TimerWord word;
  rl::var<std::uint64_t> place;  // the slot that it is in, 0 if none: under engine_lock

  rl::mutex wheel_lock;
  rl::mutex lock;
  rl::var<bool> armed;  // as all below: under lock
  rl::var<bool> in_wheel;
  rl::var<std::uint64_t> said;
  rl::var<int> told;

  void begin() {
    VAR(place) = kFirst;
    word.arm(kFirst);
    VAR(armed) = VAR(in_wheel) = true;
    VAR(said) = kFirst;
    VAR(told) = 0;
  }

  // --- the wheel
  void wheel_arm(std::uint64_t deadline_ns) {
    engine_lock.lock($);
    word.arm(deadline_ns);
    VAR(place) = deadline_ns;
    engine_lock.unlock($);
  }

  void wheel_reset(std::uint64_t deadline_ns) {
    engine_lock.lock($);
    TimerWord::Bits bits = word.load();
    bool armed_there = TimerWord::armed(bits);
    while (armed_there && !word.reset_locked(bits, deadline_ns)) armed_there = TimerWord::armed(bits);
    if (armed_there) VAR(place) = deadline_ns;
    engine_lock.unlock($);
  }

  void advance(std::uint64_t now_ns) {
    bool fires = false;
    engine_lock.lock($);
    if (VAR(place) != 0 && VAR(place) <= now_ns) {
      std::uint64_t deadline_ns = 0;
      TimerWord::Expiry expiry = word.expire(now_ns, deadline_ns);
      RL_ASSERT(expiry != TimerWord::Expiry::kGone);
      fires = expiry == TimerWord::Expiry::kFire;
      VAR(place) = fires ? 0 : deadline_ns;
    }
    engine_lock.unlock($);
    if (!fires) return;
    word.hand_back();
    on_fire(now_ns);
  }

  // --- the handle
  bool behind() { return VAR(armed) && (!VAR(in_wheel) || VAR(said) < word.deadline_ns()); }

  void arm(std::uint64_t deadline_ns) {
    wheel_arm(deadline_ns);
    lock.lock($);
    VAR(in_wheel) = true;
    lock.unlock($);
  }

  void on_fire(std::uint64_t now_ns) {
    wheel_lock.lock($);
    lock.lock($);
    VAR(in_wheel) = false;
    bool again = VAR(armed) && VAR(said) > now_ns;
    if (VAR(armed) && !again) {
      VAR(armed) = false;
      VAR(told) = VAR(told) + 1;
    }
    std::uint64_t deadline_ns = VAR(said);
    lock.unlock($);
    if (again) arm(deadline_ns);
    wheel_lock.unlock($);
  }

  void reset(std::uint64_t deadline_ns) {
    lock.lock($);
    VAR(armed) = true;
    VAR(said) = deadline_ns;
    bool is_behind = behind();
    lock.unlock($);
    if (is_behind) move(deadline_ns);
  }

  void move(std::uint64_t own_ns) {
    wheel_lock.lock($);
    lock.lock($);
    bool still = behind();
    bool there = VAR(in_wheel);
    std::uint64_t deadline_ns = VAR(said);
    lock.unlock($);
#if NORIA_PLANT_HANDLE == 2
    still = true;
    deadline_ns = own_ns;
#endif
    (void)own_ns;
    if (still && there) wheel_reset(deadline_ns);
    if (still && !there) arm(deadline_ns);
    wheel_lock.unlock($);
  }

  void cancel() {
    wheel_lock.lock($);
    lock.lock($);
    bool later = VAR(armed) && VAR(in_wheel);
    if (VAR(armed)) VAR(said) = kNever;
    VAR(armed) = false;
#if NORIA_PLANT_HANDLE == 1
    lock.unlock($);
    if (later) (void)word.reset_remote(kNever);
#else
    if (later) (void)word.reset_remote(kNever);
    lock.unlock($);
#endif
    wheel_lock.unlock($);
  }

  void finish() {
    if (VAR(armed)) {
      RL_ASSERT(VAR(in_wheel) && TimerWord::armed(word.load()));
      RL_ASSERT(word.deadline_ns() <= VAR(said) && VAR(place) <= VAR(said));
    }
    for (int i = 0; i < 3; ++i) advance(100);
    RL_ASSERT(!VAR(armed));
  }
};

// Fired at its first deadline while one thread resets it to `One` and another to `Two`; 0 cancels.
template <std::uint64_t One, std::uint64_t Two>
struct Meeting : rl::test_suite<Meeting<One, Two>, 3> {
  Handle handle;

  void before() { handle.begin(); }
  void thread(unsigned index) {
    if (index == 0) return handle.advance(kFirst);
    std::uint64_t deadline_ns = index == 1 ? One : Two;
    if (deadline_ns == 0) return handle.cancel();
    handle.reset(deadline_ns);
  }
  void after() { handle.finish(); }
};

template <typename Model>
bool holds() {
  rl::test_params params;
  params.search_type = rl::sched_random;
  params.iteration_count = 100000;
  rl::simulate<Model>(params);
  return params.test_result == rl::test_result_success;
}

}  // namespace

int main() {
  bool all_hold = holds<Meeting<kSooner, kSoonest>>() && holds<Meeting<kSooner, kLater>>() &&
                  holds<Meeting<0, kLater>>() && holds<Meeting<0, kSooner>>();
#if NORIA_PLANT_HANDLE != 0
  std::printf("the planted bug was %sfound\n", all_hold ? "not " : "");
  return all_hold ? 1 : 0;
#else
  return all_hold ? 0 : 1;
#endif
}
