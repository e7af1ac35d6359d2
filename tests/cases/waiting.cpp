// Waiting that must end, and by the right end: at the edge of a time-out, in frozen time, at the end of a budget.
#include <criterion/criterion.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <latch>
#include <thread>

#include "support/pending.hpp"

using namespace noria::test;

namespace {

std::int64_t live_wakers() {
  noria_counts counts{};
  counts.size = sizeof counts;
  assert_ok(noria_live_counts(&counts), "live_counts");
  return counts.wakers;
}

}  // namespace

// The completer comes while the waiter, whose time is over, takes its waker back.
Test(Waiting, Completion_at_the_edge_of_the_time_out_is_not_slept_through) {
  on_each_runtime([](Lane& lane) {
    std::atomic<int> turn{0};
    std::atomic<Pending*> now{nullptr};
    std::thread other([&] {
      for (int seen = 0;;) {
        while (turn == seen) std::this_thread::yield();
        seen = turn;
        if (seen < 0) return;
        for (int spin = seen % 400; spin > 0 && turn == seen; --spin) {
        }
        now.load()->complete();
        now = nullptr;
      }
    });
    for (int round = 1; round <= rounds(2000, 200'000); ++round) {
      Watchdog watchdog("a wait whose time is over");
      Pending pending(lane.rt);
      now = &pending;
      turn = round;
      int32_t status = noria_future_wait(pending.future, 1);
      cr_assert(status == NORIA_OK || status == -ETIMEDOUT);
      while (now.load() != nullptr) std::this_thread::yield();
      NORIA_OK_CALL(noria_future_wait(pending.future, NORIA_FOREVER));
      NORIA_OK_CALL(noria_future_drop(pending.future));
    }
    turn = -1;
    other.join();
  });
}

Test(Waiting, Thread_that_gives_up_leaves_no_waker) {
  on_each_runtime([](Lane& lane) {
    Pending pending(lane.rt);
    std::int64_t before = live_wakers();
    NORIA_STATUS(noria_future_wait(pending.future, kMilli), -ETIMEDOUT);
    cr_assert_eq(live_wakers(), before);
    NORIA_OK_CALL(noria_future_drop(pending.future));
  });
}

// Frozen time stands still while a job is out: the job is done before an hour can have passed.
Test(Waiting, Job_that_is_done_is_no_time_out_in_frozen_time) {
  noria_runtime_options options{};
  options.clock_paused = 1;
  on_each_runtime(
      [](Lane& lane) {
        for (int round = 0; round < rounds(300, 30'000); ++round) {
          noria_future *job = nullptr, *future = nullptr;
          std::latch may_end(1);
          auto run = [](void* arg) -> int32_t {
            static_cast<std::latch*>(arg)->wait();
            return 7;
          };
          NORIA_OK_CALL(noria_spawn_blocking(lane.rt, run, nullptr, &may_end, &job));
          NORIA_OK_CALL(noria_timeout(lane.rt, job, 3600 * kSecond, &future));
          may_end.count_down();
          int32_t answer = 0;
          NORIA_OK_CALL(lane.await(future, &answer, sizeof answer));
          cr_assert_eq(answer, 7);
        }
      },
      options);
}

Test(Waiting, Job_that_outlasts_a_shutdown_is_named) {
  for (Lane lane : {kCurrentThread, kTwoWorkers}) {
    noria_runtime_options options = lane_options(lane);
    assert_ok(noria_runtime_new(&options, &lane.rt), lane.name);
    struct Both {
      std::latch begun{1}, may_end{1};
    } both;
    auto run = [](void* arg) -> int32_t {
      static_cast<Both*>(arg)->begun.count_down();
      static_cast<Both*>(arg)->may_end.wait();
      return 0;
    };
    NORIA_OK_CALL(noria_spawn_blocking(lane.rt, run, nullptr, &both, nullptr));
    both.begun.wait();
    noria_shutdown_report report{};
    report.size = sizeof report;
    NORIA_STATUS(noria_runtime_shutdown(lane.rt, 0, &report), -ETIMEDOUT);
    cr_assert_eq(report.jobs_running, 1);
    cr_assert_str_eq(report.names, "blocking job\n");
    both.may_end.count_down();
    assert_ok(noria_runtime_release(lane.rt), "release");
    await_nothing_alive(lane.name);
  }
}

// budget-lie, A10: what was not taken cannot be given back.
Test(Waiting, Budget_of_a_poll_does_not_grow_by_giving_back) {
  on_each_runtime([](Lane& lane) {
    lane.join(spawn(lane.rt, [polls = 0](const noria_cx* cx) mutable -> int32_t {
      if (polls++ > 0) return NORIA_READY;
      for (int i = 0; i < 1000; ++i) NORIA_OK_CALL(noria_budget_restore());
      int taken = 0;
      while (noria_budget_poll(cx) == NORIA_READY) ++taken;
      NORIA_CHECK(taken == 128, "P5: %d operations in one poll", taken);
      return NORIA_PENDING;
    }));
  });
}
