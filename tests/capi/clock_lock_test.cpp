// A clock that the user has given runs under no lock of the engine's: while it does, another thread uses the same timer or interval, and
// the clock answers only when that thread has come through.
#include <criterion/criterion.h>

#include <functional>
#include <utility>

#include "support/runtime_fixture.hpp"

using namespace noria::test;

namespace {

std::function<void()>* g_beside = nullptr;  // on another thread, in each look at the clock
thread_local bool t_beside = false;

std::uint64_t look(void*) {
  if (g_beside != nullptr && !t_beside) {
    std::thread([] {
      t_beside = true;
      (*g_beside)();
    }).join();
  }
  return 1000 * kSecond;
}

// `body` with a clock that waits for `beside` in each look.
void with(std::function<void()> beside, const std::function<void()>& body) {
  Watchdog watchdog("a clock under a lock");
  g_beside = &beside;
  body();
  g_beside = nullptr;
}

noria_runtime_options with_clock() {
  noria_runtime_options options{};
  options.clock_now = look;
  return options;
}

}  // namespace

Test(ClockLock, Timers_ask_the_clock_under_no_lock) {
  on_runtimes(
      kCurrent,
      [](Lane& lane) {
        ForeignWaker waker;
        noria_timer* timer = nullptr;
        noria_future* wait = nullptr;
        NORIA_OK_CALL(noria_timer_new(lane.rt, &timer));
        NORIA_OK_CALL(noria_timer_reset(timer, 2000 * kSecond));
        with(
            [timer] {
              std::uint64_t deadline = 0;
              NORIA_OK_CALL(noria_timer_deadline(timer, &deadline));
            },
            [&] {
              NORIA_STATUS(noria_timer_poll_wait(timer, waker.cx()), NORIA_PENDING);
              NORIA_OK_CALL(noria_timer_wait(timer, &wait));
              NORIA_OK_CALL(noria_timer_reset(timer, 1));
              NORIA_OK_CALL(noria_runtime_turn(lane.rt, 0, nullptr));  // it fires
            });
        NORIA_OK_CALL(noria_future_result(wait, nullptr, 0));
        NORIA_OK_CALL(noria_future_drop(wait));
        NORIA_OK_CALL(noria_timer_drop(timer));
      },
      with_clock());
}

Test(ClockLock, Intervals_ask_the_clock_under_no_lock) {
  on_runtimes(
      kCurrent,
      [](Lane& lane) {
        ForeignWaker waker;
        noria_interval* interval = nullptr;
        noria_future* tick = nullptr;
        NORIA_OK_CALL(noria_interval_new(lane.rt, 1, kSecond, NORIA_MISSED_SKIP, &interval));
        auto drop_tick = [&tick] {
          if (tick != nullptr) NORIA_OK_CALL(noria_future_drop(std::exchange(tick, nullptr)));
        };
        std::uint64_t instant = 0;
        NORIA_OK_CALL(noria_interval_tick(interval, &tick));
        with(drop_tick, [&] { NORIA_STATUS(noria_interval_poll_tick(interval, waker.cx(), &instant), NORIA_READY); });
        NORIA_OK_CALL(noria_interval_tick(interval, &tick));
        with(drop_tick, [&] { NORIA_OK_CALL(noria_interval_reset(interval)); });
        cr_assert_eq(tick, nullptr);
        NORIA_OK_CALL(noria_interval_drop(interval));
      },
      with_clock());
}
