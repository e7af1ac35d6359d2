// Sleeping, timers, intervals and the clock, mostly in frozen time, which jumps when nothing is ready.
#include <criterion/criterion.h>

#include <cerrno>
#include <latch>
#include <thread>
#include <vector>

#include "support/clone_waker.hpp"
#include "support/runtime_fixture.hpp"

using namespace noria::test;

namespace {

constexpr std::uint64_t kHour = 3600 * kSecond;

noria_runtime_options paused() {
  noria_runtime_options options{};
  options.clock_paused = 1;
  return options;
}

std::uint64_t now(noria_runtime* rt) {
  std::uint64_t instant = 0;
  assert_ok(noria_now(rt, &instant), "now");
  return instant;
}

noria_future* sleep_for(noria_runtime* rt, std::uint64_t duration_ns) {
  noria_future* future = nullptr;
  assert_ok(noria_sleep(rt, duration_ns, &future), "sleep");
  return future;
}

noria_timer* make_timer(noria_runtime* rt) {
  noria_timer* timer = nullptr;
  assert_ok(noria_timer_new(rt, &timer), "timer_new");
  return timer;
}

std::uint64_t deadline(noria_timer* timer) {
  std::uint64_t instant = 0;
  assert_ok(noria_timer_deadline(timer, &instant), "timer_deadline");
  return instant;
}

noria_interval* make_interval(noria_runtime* rt, std::uint64_t first_ns, std::uint64_t period_ns,
                              std::uint32_t missed) {
  noria_interval* interval = nullptr;
  assert_ok(noria_interval_new(rt, first_ns, period_ns, missed, &interval), "interval_new");
  return interval;
}

std::uint64_t tick(Lane& lane, noria_interval* interval) {
  std::uint64_t instant = 0;
  assert_ok(lane.run([&](const noria_cx* cx) { return noria_interval_poll_tick(interval, cx, &instant); }),
            "poll_tick");
  return instant;
}

}  // namespace

Test(Sleep, Frozen_time_jumps_to_the_deadline) {
  on_each_runtime(
      [](Lane& lane) {
        std::uint64_t begin = now(lane.rt);
        NORIA_OK_CALL(lane.await(sleep_for(lane.rt, kHour)));
        std::uint64_t passed = now(lane.rt) - begin;
        cr_assert_geq(passed, kHour, "P6: never early");
        cr_assert_leq(passed, kHour + kMilli, "P6: late by a tick at most");
      },
      paused());
}

Test(Sleep, Deadlines_are_kept_in_their_order) {
  on_each_runtime(
      [](Lane& lane) {
        std::uint64_t begin = now(lane.rt);
        std::vector<noria_future*> futures;
        for (std::uint64_t i = 50; i > 0; --i) {
          noria_future* future = nullptr;
          NORIA_OK_CALL(noria_sleep_until(lane.rt, begin + i * kSecond, &future));
          futures.push_back(future);
        }
        for (std::uint64_t i = 1; i <= 50; ++i) {
          NORIA_OK_CALL(lane.await(futures[50 - i]));
          cr_assert_geq(now(lane.rt), begin + i * kSecond);
        }
      },
      paused());
}

Test(Sleep, Cancel_and_drop_disarm) {
  on_each_runtime([](Lane& lane) {
    noria_future* future = sleep_for(lane.rt, kHour);
    NORIA_OK_CALL(noria_future_cancel(future));
    cr_assert_eq(lane.await(future), -ECANCELED);
    for (int i = 0; i < 100; ++i) NORIA_OK_CALL(noria_future_drop(sleep_for(lane.rt, kHour)));
    future = sleep_for(lane.rt, kHour);
    lane.inside([&] { NORIA_OK_CALL(noria_future_drop(future)); });
    lane.inside([&] { future = sleep_for(lane.rt, kHour); });
    NORIA_OK_CALL(noria_future_drop(future));
  });
}

Test(Sleep, Shutdown_cancels) {
  for (Lane lane : {kCurrentThread, kTwoWorkers}) {
    noria_runtime_options options = lane_options(lane);
    assert_ok(noria_runtime_new(&options, &lane.rt), lane.name);
    noria_future *future = sleep_for(lane.rt, kHour), *late = nullptr;
    noria_timer* timer = make_timer(lane.rt);
    NORIA_OK_CALL(noria_timer_reset(timer, UINT64_MAX));
    noria_future* wait = nullptr;
    NORIA_OK_CALL(noria_timer_wait(timer, &wait));
    assert_ok(noria_runtime_shutdown(lane.rt, kSecond, nullptr), "shutdown");
    NORIA_STATUS(noria_future_result(future, nullptr, 0), -ECANCELED);
    NORIA_STATUS(noria_future_result(wait, nullptr, 0), -ECANCELED);
    NORIA_STATUS(noria_sleep(lane.rt, 1, &late), -NORIA_ESHUTDOWN);
    NORIA_STATUS(noria_timer_reset(timer, 1), -NORIA_ESHUTDOWN);
    NORIA_OK_CALL(noria_future_drop(future));
    NORIA_OK_CALL(noria_future_drop(wait));
    NORIA_OK_CALL(noria_timer_drop(timer));
    assert_ok(noria_runtime_release(lane.rt), "release");
    await_nothing_alive(lane.name);
  }
}

Test(Timer, Fires_and_is_armed_again_without_end) {
  on_each_runtime(
      [](Lane& lane) {
        noria_timer* timer = make_timer(lane.rt);
        cr_assert_eq(deadline(timer), NORIA_FOREVER);
        for (int i = 0; i < 100; ++i) {
          std::uint64_t until = now(lane.rt) + kSecond;
          NORIA_OK_CALL(noria_timer_reset(timer, until));
          NORIA_OK_CALL(lane.run([&](const noria_cx* cx) { return noria_timer_poll_wait(timer, cx); }));
          cr_assert_geq(now(lane.rt), until);
          NORIA_OK_CALL(lane.run([&](const noria_cx* cx) { return noria_timer_poll_wait(timer, cx); }));
          cr_assert_eq(deadline(timer), NORIA_FOREVER, "it has fired");
          NORIA_STATUS(noria_timer_cancel(timer), -EALREADY);
        }
        NORIA_OK_CALL(noria_timer_drop(timer));
      },
      paused());
}

Test(Timer, Reset_moves_it_in_both_directions_and_cancel_stops_it) {
  on_each_runtime([](Lane& lane) {
    noria_timer* timer = make_timer(lane.rt);
    ForeignWaker waker;
    NORIA_STATUS(noria_timer_poll_wait(timer, waker.cx()), NORIA_PENDING);
    NORIA_OK_CALL(noria_timer_reset(timer, now(lane.rt) + kHour));
    NORIA_OK_CALL(noria_timer_reset(timer, now(lane.rt) + 2 * kHour));
    std::uint64_t until = now(lane.rt) + 2 * kMilli;
    NORIA_OK_CALL(noria_timer_reset(timer, until));
    cr_assert_eq(deadline(timer), until);
    NORIA_OK_CALL(lane.run([&](const noria_cx* cx) { return noria_timer_poll_wait(timer, cx); }));
    cr_assert_geq(now(lane.rt), until);
    NORIA_OK_CALL(noria_timer_reset(timer, now(lane.rt) + kHour));
    NORIA_OK_CALL(noria_timer_cancel(timer));
    NORIA_STATUS(noria_timer_cancel(timer), -EALREADY);
    cr_assert_eq(deadline(timer), NORIA_FOREVER);
    // Cancelled, and at once armed again.
    for (int i = 0; i < 100; ++i) {
      NORIA_OK_CALL(noria_timer_reset(timer, now(lane.rt) + kHour));
      NORIA_OK_CALL(noria_timer_cancel(timer));
    }
    NORIA_OK_CALL(noria_timer_reset(timer, 0));
    NORIA_OK_CALL(lane.run([&](const noria_cx* cx) { return noria_timer_poll_wait(timer, cx); }));
    NORIA_OK_CALL(noria_timer_drop(timer));
  });
}

Test(Timer, Moved_to_later_again_and_again_it_fires_at_the_last_deadline_alone) {
  on_each_runtime(
      [](Lane& lane) {
        noria_timer* timer = make_timer(lane.rt);
        std::uint64_t until = 0;
        auto move_and_wait = [&](const noria_cx* cx) {
          // All in the first poll: between two, paused time may jump to the deadline.
          for (std::uint64_t second = until == 0 ? 1 : 21; second <= 20; ++second) {
            until = now(lane.rt) + second * kSecond;
            NORIA_OK_CALL(noria_timer_reset(timer, until));
            cr_assert_eq(deadline(timer), until);
          }
          return noria_timer_poll_wait(timer, cx);
        };
        NORIA_OK_CALL(lane.run(move_and_wait));
        cr_assert_geq(now(lane.rt), until);
        cr_assert_lt(now(lane.rt), until + kSecond);
        NORIA_OK_CALL(noria_timer_drop(timer));
      },
      paused());
}

Test(Timer, Wait_futures_follow_the_timer) {
  on_each_runtime([](Lane& lane) {
    noria_timer* timer = make_timer(lane.rt);
    noria_future *one = nullptr, *two = nullptr, *three = nullptr;
    NORIA_STATUS(noria_timer_wait(timer, &one), -NORIA_EBADSTATE);
    NORIA_OK_CALL(noria_timer_reset(timer, now(lane.rt) + kHour));
    NORIA_OK_CALL(noria_timer_wait(timer, &one));
    NORIA_OK_CALL(noria_timer_wait(timer, &two));
    NORIA_OK_CALL(noria_timer_wait(timer, &three));
    NORIA_OK_CALL(noria_future_drop(two));
    NORIA_OK_CALL(noria_timer_reset(timer, now(lane.rt) + kMilli));
    NORIA_OK_CALL(lane.await(one));
    NORIA_OK_CALL(lane.await(three));
    NORIA_OK_CALL(noria_timer_wait(timer, &one));
    NORIA_OK_CALL(lane.await(one));
    NORIA_OK_CALL(noria_timer_reset(timer, now(lane.rt) + kHour));
    NORIA_OK_CALL(noria_timer_wait(timer, &one));
    NORIA_OK_CALL(noria_timer_cancel(timer));
    cr_assert_eq(lane.await(one), -ECANCELED);
    NORIA_OK_CALL(noria_timer_reset(timer, now(lane.rt) + kHour));
    NORIA_OK_CALL(noria_timer_wait(timer, &one));
    NORIA_OK_CALL(noria_timer_drop(timer));
    cr_assert_eq(lane.await(one), -ECANCELED);
  });
}

Test(Timer, Reset_cancel_and_fire_from_several_threads_leave_a_timer_that_works) {
  on_each_runtime([](Lane& lane) {
    noria_timer* timer = make_timer(lane.rt);
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < rounds(2000, 200'000); ++i) {
          if (t == 0 && i % 3 == 0) {
            int32_t status = noria_timer_cancel(timer);
            NORIA_CHECK(status == NORIA_OK || status == -EALREADY, "cancel: %d", status);
          } else {
            NORIA_OK_CALL(noria_timer_reset(timer, now(lane.rt) + static_cast<std::uint64_t>(i % 5) * 300'000));
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::uint64_t until = now(lane.rt) + 3 * kMilli;
    NORIA_OK_CALL(noria_timer_reset(timer, until));
    NORIA_OK_CALL(lane.run([&](const noria_cx* cx) { return noria_timer_poll_wait(timer, cx); }));
    cr_assert_geq(now(lane.rt), until);
    NORIA_OK_CALL(noria_timer_drop(timer));
  });
}

Test(Timer, Deadline_that_passes_while_a_waker_is_left_is_seen) {
  on_each_runtime([](Lane& lane) {
    noria_timer* timer = make_timer(lane.rt);
    CloneWaker resets([&] { NORIA_OK_CALL(noria_timer_reset(timer, 1)); });
    NORIA_STATUS(noria_timer_poll_wait(timer, resets.cx()), NORIA_READY);
    NORIA_OK_CALL(noria_timer_drop(timer));
  });
}

Test(Timer, Foreign_waker_may_arm_it_again_and_drop_futures) {
  on_each_runtime([](Lane& lane) {
    noria_timer* timer = make_timer(lane.rt);
    noria_future* future = nullptr;
    NORIA_OK_CALL(noria_timer_reset(timer, now(lane.rt) + kMilli));
    NORIA_OK_CALL(noria_timer_wait(timer, &future));
    Latch woken;
    ForeignWaker again([&] {
      NORIA_OK_CALL(noria_future_drop(future));
      NORIA_OK_CALL(noria_timer_reset(timer, now(lane.rt) + kMilli));
      woken.count_down();
    });
    NORIA_STATUS(noria_future_on_ready(future, again.waker()), NORIA_PENDING);
    lane.wait(woken, "the timer's future");
    NORIA_OK_CALL(lane.run([&](const noria_cx* cx) { return noria_timer_poll_wait(timer, cx); }));
    NORIA_OK_CALL(noria_timer_drop(timer));
    lane.until([&] { return again.alive() == 0; }, "the waker");
  });
}

Test(Interval, Ticks_keep_the_rhythm) {
  on_each_runtime(
      [](Lane& lane) {
        for (std::uint32_t missed : {NORIA_MISSED_BURST, NORIA_MISSED_DELAY, NORIA_MISSED_SKIP}) {
          std::uint64_t first = (now(lane.rt) / kMilli + 5) * kMilli;
          noria_interval* interval = make_interval(lane.rt, first, 10 * kMilli, missed);
          for (std::uint64_t i = 0; i < 20; ++i) cr_assert_eq(tick(lane, interval), first + i * 10 * kMilli);
          NORIA_OK_CALL(noria_interval_drop(interval));
        }
      },
      paused());
}

// suspend: what happens to the ticks that were missed while nobody looked, or while the machine slept.
Test(Interval, Missed_ticks_come_at_once_delay_the_rhythm_or_are_left_out) {
  on_runtimes(
      kCurrent,
      [](Lane& lane) {
        struct Row {
          std::uint32_t missed;
          std::uint64_t ticks[5];  // in ms after the first, when 35 ms have passed before the second is asked for
        };
        for (const Row& row :
             {Row{NORIA_MISSED_BURST, {0, 10, 20, 30, 40}}, Row{NORIA_MISSED_DELAY, {0, 10, 45, 55, 65}},
              Row{NORIA_MISSED_SKIP, {0, 10, 40, 50, 60}}}) {
          NORIA_OK_CALL(noria_clock_advance(lane.rt, kMilli - now(lane.rt) % kMilli));
          std::uint64_t first = now(lane.rt);
          noria_interval* interval = make_interval(lane.rt, 0, 10 * kMilli, row.missed);
          cr_assert_eq(tick(lane, interval), first);
          NORIA_OK_CALL(noria_clock_advance(lane.rt, 35 * kMilli));
          for (int i = 1; i < 5; ++i)
            cr_assert_eq(tick(lane, interval) - first, row.ticks[i] * kMilli, "row %u, tick %d", row.missed, i);
          NORIA_OK_CALL(noria_interval_drop(interval));
        }
      },
      paused());
}

Test(Interval, Tick_future_brings_the_instant_and_keeps_an_unread_tick) {
  on_each_runtime(
      [](Lane& lane) {
        std::uint64_t first = (now(lane.rt) / kMilli + 5) * kMilli;
        noria_interval* interval = make_interval(lane.rt, first, 10 * kMilli, NORIA_MISSED_BURST);
        noria_future* future = nullptr;
        std::uint64_t instant = 0;
        for (std::uint64_t i = 0; i < 10; ++i) {
          NORIA_OK_CALL(noria_interval_tick(interval, &future));
          NORIA_OK_CALL(lane.await(future, &instant, sizeof instant));
          cr_assert_eq(instant, first + i * 10 * kMilli);
        }
        NORIA_OK_CALL(noria_interval_tick(interval, &future));
        NORIA_OK_CALL(lane.run([&](const noria_cx* cx) { return noria_future_poll(future, cx); }));
        NORIA_OK_CALL(noria_future_drop(future));
        cr_assert_eq(tick(lane, interval), first + 100 * kMilli, "P8: the tick that was not read comes again");
        NORIA_OK_CALL(noria_interval_tick(interval, &future));
        NORIA_OK_CALL(noria_interval_drop(interval));
        NORIA_OK_CALL(lane.await(future, &instant, sizeof instant));
        cr_assert_eq(instant, first + 110 * kMilli, "the future outlives the handle");
      },
      paused());
}

Test(Interval, Reset_starts_a_period_from_now_and_cancel_keeps_the_tick) {
  on_each_runtime(
      [](Lane& lane) {
        noria_interval* interval = make_interval(lane.rt, now(lane.rt) + kHour, 10 * kMilli, NORIA_MISSED_BURST);
        std::uint64_t begin = now(lane.rt);
        NORIA_OK_CALL(noria_interval_reset(interval));
        std::uint64_t instant = tick(lane, interval);
        cr_assert_geq(instant, begin + 10 * kMilli);
        cr_assert_lt(instant, begin + kHour);
        noria_future* future = nullptr;
        NORIA_OK_CALL(noria_interval_tick(interval, &future));
        NORIA_OK_CALL(noria_future_cancel(future));
        int32_t status = lane.await(future);
        cr_assert(status == -ECANCELED || status == NORIA_OK);
        if (status == -ECANCELED) cr_assert_eq(tick(lane, interval), instant + 10 * kMilli);
        NORIA_OK_CALL(noria_interval_drop(interval));
      },
      paused());
}

Test(Interval, Period_beyond_the_end_of_time_never_ticks_twice) {
  on_each_runtime([](Lane& lane) {
    noria_interval* interval = make_interval(lane.rt, 0, UINT64_MAX, NORIA_MISSED_SKIP);
    tick(lane, interval);
    ForeignWaker waker;
    std::uint64_t instant = 0;
    NORIA_STATUS(noria_interval_poll_tick(interval, waker.cx(), &instant), NORIA_PENDING);
    NORIA_OK_CALL(noria_interval_drop(interval));
    lane.until([&] { return waker.alive() == 0; }, "the waker");
  });
}

Test(Clock, Pause_advance_and_resume) {
  on_each_runtime([](Lane& lane) {
    NORIA_STATUS(noria_clock_advance(lane.rt, 1), -NORIA_EBADSTATE);
    NORIA_STATUS(noria_clock_resume(lane.rt), -NORIA_EBADSTATE);
    NORIA_OK_CALL(noria_clock_pause(lane.rt));
    NORIA_STATUS(noria_clock_pause(lane.rt), -EALREADY);
    std::uint64_t begin = now(lane.rt);
    cr_assert_eq(now(lane.rt), begin);
    NORIA_OK_CALL(noria_clock_advance(lane.rt, kHour));
    cr_assert_eq(now(lane.rt), begin + kHour);
    noria_future* future = sleep_for(lane.rt, kHour);
    NORIA_OK_CALL(noria_clock_advance(lane.rt, 2 * kHour));
    NORIA_OK_CALL(lane.await(future));
    NORIA_OK_CALL(noria_clock_resume(lane.rt));
    std::uint64_t after = now(lane.rt);
    cr_assert_geq(after, begin + 3 * kHour, "time goes on from where it stood");
    NORIA_OK_CALL(lane.await(sleep_for(lane.rt, kMilli)));
    cr_assert_geq(now(lane.rt), after + kMilli);
  });
}

Test(Clock, Blocking_job_keeps_frozen_time_from_jumping) {
  on_each_runtime(
      [](Lane& lane) {
        Latch begun;
        std::latch may_end(1);  // not with the main thread's watchdog
        struct Both {
          Latch* begun;
          std::latch* may_end;
        } both = {&begun, &may_end};
        noria_future* job = nullptr;
        auto run = [](void* arg) -> int32_t {
          static_cast<Both*>(arg)->begun->count_down();
          static_cast<Both*>(arg)->may_end->wait();
          return 0;
        };
        NORIA_OK_CALL(noria_spawn_blocking(lane.rt, run, nullptr, &both, &job));
        begun.wait("the job");
        std::uint64_t begin = now(lane.rt);
        noria_future* future = sleep_for(lane.rt, kHour);
        lane.inside([] {});
        cr_assert_eq(now(lane.rt), begin);
        may_end.count_down();
        NORIA_OK_CALL(lane.await(job));
        NORIA_OK_CALL(lane.await(future));
      },
      paused());
}

Test(Time, Without_the_driver_everything_tells_so) {
  noria_runtime_options options{};
  options.enable_time = NORIA_NONE;
  on_each_runtime(
      [](Lane& lane) {
        noria_future* future = nullptr;
        noria_timer* timer = nullptr;
        noria_interval* interval = nullptr;
        std::uint64_t instant = 0;
        NORIA_STATUS(noria_now(lane.rt, &instant), -NORIA_ENODRIVER);
        NORIA_STATUS(noria_sleep(lane.rt, 1, &future), -NORIA_ENODRIVER);
        NORIA_STATUS(noria_sleep_until(lane.rt, 1, &future), -NORIA_ENODRIVER);
        NORIA_STATUS(noria_timer_new(lane.rt, &timer), -NORIA_ENODRIVER);
        NORIA_STATUS(noria_interval_new(lane.rt, 0, 1, 0, &interval), -NORIA_ENODRIVER);
        NORIA_STATUS(noria_clock_pause(lane.rt), -NORIA_ENODRIVER);
        NORIA_STATUS(noria_clock_advance(lane.rt, 1), -NORIA_ENODRIVER);
        NORIA_STATUS(noria_clock_resume(lane.rt), -NORIA_ENODRIVER);
        noria_semaphore* semaphore = nullptr;
        NORIA_OK_CALL(noria_semaphore_new(lane.rt, 0, &semaphore));
        noria_future* inner = nullptr;
        NORIA_OK_CALL(noria_semaphore_acquire(semaphore, 1, &inner));
        NORIA_STATUS(noria_timeout(lane.rt, inner, 1, &future), -NORIA_ENODRIVER);
        NORIA_OK_CALL(noria_future_drop(inner));
        NORIA_OK_CALL(noria_semaphore_drop(semaphore));
      },
      options);
}

Test(Time, Misuse_is_told) {
  on_each_runtime([](Lane& lane) {
    noria_future* future = nullptr;
    noria_timer *timer = make_timer(lane.rt), *none = nullptr;
    noria_interval *interval = make_interval(lane.rt, 0, 1, 0), *other = nullptr;
    ForeignWaker waker;
    std::uint64_t instant = 0;
    NORIA_STATUS(noria_now(lane.rt, nullptr), -EINVAL);
    NORIA_STATUS(noria_now(nullptr, &instant), -NORIA_ENOCONTEXT);
    NORIA_STATUS(noria_sleep(lane.rt, 1, nullptr), -EINVAL);
    NORIA_STATUS(noria_sleep(nullptr, 1, &future), -NORIA_ENOCONTEXT);
    NORIA_STATUS(noria_sleep_until(lane.rt, 1, nullptr), -EINVAL);
    NORIA_STATUS(noria_timer_new(lane.rt, nullptr), -EINVAL);
    NORIA_STATUS(noria_timer_new(nullptr, &none), -NORIA_ENOCONTEXT);
    NORIA_STATUS(noria_timer_reset(nullptr, 1), -EINVAL);
    NORIA_STATUS(noria_timer_cancel(nullptr), -EINVAL);
    NORIA_STATUS(noria_timer_poll_wait(nullptr, waker.cx()), -EINVAL);
    NORIA_STATUS(noria_timer_poll_wait(timer, nullptr), -EINVAL);
    NORIA_STATUS(noria_timer_wait(nullptr, &future), -EINVAL);
    NORIA_STATUS(noria_timer_wait(timer, nullptr), -EINVAL);
    NORIA_STATUS(noria_timer_deadline(nullptr, &instant), -EINVAL);
    NORIA_STATUS(noria_timer_deadline(timer, nullptr), -EINVAL);
    NORIA_STATUS(noria_timer_drop(nullptr), -EINVAL);
    NORIA_STATUS(noria_interval_new(lane.rt, 0, 0, 0, &other), -EINVAL);
    NORIA_STATUS(noria_interval_new(lane.rt, 0, 1, 3, &other), -EINVAL);
    NORIA_STATUS(noria_interval_new(lane.rt, 0, 1, 0, nullptr), -EINVAL);
    NORIA_STATUS(noria_interval_poll_tick(nullptr, waker.cx(), &instant), -EINVAL);
    NORIA_STATUS(noria_interval_poll_tick(interval, nullptr, &instant), -EINVAL);
    NORIA_STATUS(noria_interval_poll_tick(interval, waker.cx(), nullptr), -EINVAL);
    NORIA_STATUS(noria_interval_tick(nullptr, &future), -EINVAL);
    NORIA_STATUS(noria_interval_tick(interval, nullptr), -EINVAL);
    NORIA_STATUS(noria_interval_reset(nullptr), -EINVAL);
    NORIA_STATUS(noria_interval_drop(nullptr), -EINVAL);
    NORIA_STATUS(noria_clock_pause(nullptr), -NORIA_ENOCONTEXT);
    NORIA_OK_CALL(noria_interval_drop(interval));
    NORIA_OK_CALL(noria_timer_drop(timer));
    interval = make_interval(lane.rt, now(lane.rt) + kHour, 1, 0);
    noria_future* second = nullptr;
    NORIA_OK_CALL(noria_interval_tick(interval, &future));
    NORIA_STATUS(noria_interval_tick(interval, &second), -EBUSY);
    NORIA_OK_CALL(noria_future_cancel(future));
    NORIA_OK_CALL(noria_interval_tick(interval, &second));
    NORIA_OK_CALL(noria_future_drop(second));
    NORIA_OK_CALL(noria_future_drop(future));
    NORIA_OK_CALL(noria_interval_drop(interval));
  });
}
