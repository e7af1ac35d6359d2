// Known faults of deadlines: far-deadline, now-deadline, early-fire, earlier-arm, fired-cancel.
#include <criterion/criterion.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <random>
#include <thread>
#include <vector>

#include "support/runtime_fixture.hpp"

using namespace noria::test;

namespace {

constexpr std::uint64_t kHour = 3600 * kSecond;
constexpr std::uint64_t kLevels = std::uint64_t{1} << 35;  // ticks that the wheel's seven levels reach at least

std::uint64_t now(noria_runtime* rt) {
  std::uint64_t instant = 0;
  assert_ok(noria_now(rt, &instant), "now");
  return instant;
}

noria_future* sleep_until(noria_runtime* rt, std::uint64_t deadline_ns) {
  noria_future* future = nullptr;
  assert_ok(noria_sleep_until(rt, deadline_ns, &future), "sleep_until");
  return future;
}

std::uint64_t plus(std::uint64_t a, std::uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

// The sum over the workers.
std::uint64_t parks(noria_runtime* rt) {
  noria_metrics metrics{};
  metrics.size = sizeof metrics;
  assert_ok(noria_runtime_metrics(rt, &metrics), "metrics");
  return metrics.parks;
}

// Waits until no worker has parked for a while: all sleep.
void settle(Lane& lane) {
  std::uint64_t seen = 0;
  int still = 0;
  lane.until(
      [&] {
        std::uint64_t count = parks(lane.rt);
        still = count == seen && count != 0 ? still + 1 : 0;
        seen = count;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return still == 50;
      },
      "the workers to park");
}

}  // namespace

// A frozen clock that starts at each edge, and deadlines at each edge from there.
Test(far_deadline, Every_deadline_up_to_the_end_of_time_fires_in_its_turn) {
  static std::uint64_t start_ns;
  noria_runtime_options options{};
  options.clock_paused = 1;
  options.clock_now = [](void*) { return start_ns; };
  const std::uint64_t starts[] = {1,
                                  (kLevels - 1) * kMilli,
                                  kLevels * kMilli - 1,
                                  (std::uint64_t{INT_MAX} + 1) * kMilli,
                                  UINT64_MAX / 2,
                                  UINT64_MAX - kLevels * kMilli,
                                  UINT64_MAX - 3 * kMilli};
  for (std::uint64_t start : starts) {
    start_ns = start;
    on_runtimes(
        kCurrent | kTwo,
        [&](Lane& lane) {
          cr_assert_eq(now(lane.rt), start);
          std::vector<std::uint64_t> deadlines;
          for (std::uint64_t delta_ms : {std::uint64_t{1}, std::uint64_t{63}, std::uint64_t{64}, std::uint64_t{INT_MAX},
                                         std::uint64_t{INT_MAX} + 1, std::uint64_t{UINT_MAX} + 1, kLevels - 1, kLevels,
                                         kLevels + 1, 3 * kLevels}) {
            deadlines.push_back(plus(start, delta_ms * kMilli));
            deadlines.push_back(plus(start, delta_ms * kMilli + 1));
          }
          deadlines.push_back(UINT64_MAX - 1);
          std::sort(deadlines.begin(), deadlines.end());
          noria_future* never = sleep_until(lane.rt, UINT64_MAX);
          std::vector<noria_future*> futures;
          // Armed from the last to the first, so that each shortens the sleep.
          NORIA_OK_CALL(lane.run([&](const noria_cx*) -> int32_t {
            for (std::size_t i = deadlines.size(); i-- > 0;) futures.push_back(sleep_until(lane.rt, deadlines[i]));
            return NORIA_READY;
          }));
          for (std::size_t i = 0; i < deadlines.size(); ++i) {
            noria_future* future = futures[deadlines.size() - 1 - i];
            if (deadlines[i] == UINT64_MAX) {
              NORIA_OK_CALL(noria_future_drop(future));
              continue;
            }
            NORIA_OK_CALL(lane.await(future));
            cr_assert_geq(now(lane.rt), deadlines[i], "P6: never early");
          }
          NORIA_STATUS(noria_future_result(never, nullptr, 0), -EAGAIN);
          NORIA_OK_CALL(noria_future_drop(never));
        },
        options);
  }
}

Test(far_deadline, Duration_without_end_does_not_wrap) {
  on_each_runtime([](Lane& lane) {
    for (std::uint64_t duration : {UINT64_MAX, UINT64_MAX - 1, UINT64_MAX - kHour}) {
      noria_future* future = nullptr;
      NORIA_OK_CALL(noria_sleep(lane.rt, duration, &future));
      NORIA_STATUS(noria_future_result(future, nullptr, 0), -EAGAIN);
      NORIA_OK_CALL(noria_future_drop(future));
    }
    lane.inside([] {});
  });
}

Test(now_deadline, Deadline_that_has_passed_is_ready_and_moves_no_time) {
  noria_runtime_options options{};
  options.clock_paused = 1;
  for (bool frozen : {true, false}) {
    options.clock_paused = frozen ? 1 : 0;
    on_each_runtime(
        [&](Lane& lane) {
          std::uint64_t begin = now(lane.rt);
          for (std::uint64_t deadline : {begin, begin - 1, std::uint64_t{0}}) {
            NORIA_OK_CALL(lane.await(sleep_until(lane.rt, deadline)));
            noria_timer* timer = nullptr;
            NORIA_OK_CALL(noria_timer_new(lane.rt, &timer));
            NORIA_OK_CALL(noria_timer_reset(timer, deadline));
            NORIA_OK_CALL(lane.run([&](const noria_cx* cx) { return noria_timer_poll_wait(timer, cx); }));
            noria_future* future = nullptr;
            NORIA_OK_CALL(noria_timer_reset(timer, deadline));
            NORIA_OK_CALL(noria_timer_wait(timer, &future));
            NORIA_OK_CALL(lane.await(future));
            NORIA_OK_CALL(noria_timer_drop(timer));
          }
          if (frozen) cr_assert_eq(now(lane.rt), begin);
        },
        options);
  }
}

Test(early_fire, Ten_thousand_random_sleeps_are_never_shorter_than_asked) {
  on_each_runtime([](Lane& lane) {
    struct Sleeps {
      noria_runtime* rt;
      std::uint64_t duration;
      std::uint64_t begin = 0;
      noria_future* future = nullptr;
      int32_t operator()(const noria_cx* cx) {
        if (future == nullptr) {
          begin = now(rt);
          NORIA_OK_CALL(noria_sleep(rt, duration, &future));
        }
        int32_t status = noria_future_poll(future, cx);
        if (status != NORIA_READY) return status;
        std::uint64_t elapsed = now(rt) - begin;
        NORIA_CHECK(elapsed >= duration, "P6: asked for %llu ns, slept %llu", static_cast<unsigned long long>(duration),
                    static_cast<unsigned long long>(elapsed));
        NORIA_OK_CALL(noria_future_drop(future));
        return NORIA_READY;
      }
    };
    std::mt19937_64 random(test_seed());
    std::vector<noria_task*> tasks;
    for (int i = 0; i < 10'000; ++i) tasks.push_back(spawn(lane.rt, Sleeps{lane.rt, random() % (200 * kMilli)}));
    for (noria_task* task : tasks) lane.join(task);
  });
}

Test(earlier_arm, Earlier_deadline_from_another_thread_shortens_a_sleep_that_has_begun) {
  on_each_runtime([](Lane& lane) {
    noria_future* hour = sleep_until(lane.rt, now(lane.rt) + kHour);
    if (!lane.current_thread()) {
      settle(lane);
      noria_future* soon = sleep_until(lane.rt, now(lane.rt) + 5 * kMilli);
      NORIA_STATUS(noria_future_wait(soon, 8 * kSecond), NORIA_OK);
      NORIA_OK_CALL(noria_future_drop(soon));
    }
    // And while a thread drives or blocks: the other arms what it waits for.
    noria_timer* timer = nullptr;
    NORIA_OK_CALL(noria_timer_new(lane.rt, &timer));
    NORIA_OK_CALL(noria_timer_reset(timer, now(lane.rt) + kHour));
    std::atomic<bool> waits{false};
    std::thread other([&] {
      while (!waits) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));  // most likely asleep by now; it must work either way
      NORIA_OK_CALL(noria_timer_reset(timer, now(lane.rt) + kMilli));
    });
    NORIA_OK_CALL(lane.run([&](const noria_cx* cx) {
      int32_t status = noria_timer_poll_wait(timer, cx);
      waits = true;
      return status;
    }));
    other.join();
    NORIA_OK_CALL(noria_timer_drop(timer));
    NORIA_OK_CALL(noria_future_drop(hour));
  });
}

Test(earlier_arm, Later_deadlines_wake_nobody) {
  on_runtimes(kMulti, [](Lane& lane) {
    noria_future* hour = sleep_until(lane.rt, now(lane.rt) + kHour);
    settle(lane);
    std::uint64_t before = parks(lane.rt);
    std::vector<noria_future*> later;
    for (std::uint64_t i = 0; i < 1000; ++i)
      later.push_back(sleep_until(lane.rt, now(lane.rt) + 2 * kHour + i * kSecond));
    settle(lane);
    cr_assert_leq(parks(lane.rt) - before, 20, "%llu wake-ups for 1,000 later deadlines",
                  static_cast<unsigned long long>(parks(lane.rt) - before));
    for (noria_future* future : later) NORIA_OK_CALL(noria_future_drop(future));
    NORIA_OK_CALL(noria_future_drop(hour));
  });
}

Test(fired_cancel, Threads_cancel_and_reset_what_others_own) {
  on_runtimes(kTwo | kFour, [](Lane& lane) {
    constexpr std::size_t kTimers = 64;
    std::vector<noria_timer*> timers(kTimers);
    for (noria_timer*& timer : timers) NORIA_OK_CALL(noria_timer_new(lane.rt, &timer));
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937_64 random(test_seed() + t);
        for (int i = 0; i < rounds(3000, 300'000); ++i) {
          noria_timer* timer = timers[random() % kTimers];
          if (random() % 4 == 0) {
            int32_t status = noria_timer_cancel(timer);
            NORIA_CHECK(status == NORIA_OK || status == -EALREADY, "cancel: %d", status);
          } else {
            NORIA_OK_CALL(noria_timer_reset(timer, now(lane.rt) + random() % (2 * kMilli)));
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (noria_timer* timer : timers) {
      std::uint64_t deadline = now(lane.rt) + kMilli;
      NORIA_OK_CALL(noria_timer_reset(timer, deadline));
      NORIA_OK_CALL(lane.run([&](const noria_cx* cx) { return noria_timer_poll_wait(timer, cx); }));
      cr_assert_geq(now(lane.rt), deadline);
      NORIA_OK_CALL(noria_timer_drop(timer));
    }
  });
}
