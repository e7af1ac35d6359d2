// Known faults of blocking pools: lost-blocking, pool-starve, pool-shutdown, and last-handle-inside for jobs.
#include <criterion/criterion.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <latch>
#include <thread>
#include <vector>

#include "support/runtime_fixture.hpp"

using namespace noria::test;

namespace {

int32_t nothing(void*) { return 0; }

struct Stuck {
  Latch begun;
  std::latch may_end{1};
  std::atomic<int> runs{0};
  std::atomic<int> discards{0};
  static int32_t run(void* arg) {
    auto* self = static_cast<Stuck*>(arg);
    self->begun.count_down();
    self->may_end.wait();
    ++self->runs;
    return 0;
  }
  static void discard(void* arg) { ++static_cast<Stuck*>(arg)->discards; }
};

}  // namespace

// The first job of a fresh pool, which has no thread yet, a sharded queue, and nothing else that would wake it.
Test(lost_blocking, One_job_of_a_fresh_runtime_runs) {
  int count = rounds(300, 100'000);
  for (int round = 0; round < count; ++round) {
    Lane lane = round % 2 == 0 ? kTwoWorkers : kCurrentThread;
    on_runtime(lane, [](Lane& fresh) {
      noria_future* future = nullptr;
      NORIA_OK_CALL(noria_spawn_blocking(fresh.rt, nothing, nullptr, nullptr, &future));
      NORIA_OK_CALL(noria_future_wait(future, 8 * kSecond));
      NORIA_OK_CALL(noria_future_drop(future));
    });
  }
}

Test(lost_blocking, Job_that_comes_as_the_threads_go_to_sleep_runs) {
  noria_runtime_options options{};
  options.pool_keep_alive_ns = 50'000;
  on_runtimes(
      kTwo,
      [](Lane& lane) {
        for (int round = 0; round < rounds(2000, 200'000); ++round) {
          noria_future* future = nullptr;
          NORIA_OK_CALL(noria_spawn_blocking(lane.rt, nothing, nullptr, nullptr, &future));
          NORIA_OK_CALL(noria_future_wait(future, 8 * kSecond));
          NORIA_OK_CALL(noria_future_drop(future));
          // Around the keep-alive, so that a thread is just on its way out.
          if (round % 10 == 0) std::this_thread::sleep_for(std::chrono::microseconds(round % 100));
        }
      },
      options);
}

// Jobs that never end fill the user's class; looking up a name goes on.
Test(pool_starve, Stuck_jobs_do_not_delay_name_lookups) {
  noria_runtime_options options{};
  options.pool_user_threads = 2;
  on_each_runtime(
      [](Lane& lane) {
        Stuck one, two, waiting;
        for (Stuck* stuck : {&one, &two, &waiting})
          NORIA_OK_CALL(noria_spawn_blocking(lane.rt, Stuck::run, nullptr, stuck, nullptr));
        one.begun.wait("the first stuck job");
        two.begun.wait("the second stuck job");
        noria_future* future = nullptr;
        // Port 1 answers nothing: the end of the look-up is what is waited for, whatever connect says then.
        NORIA_OK_CALL(noria_tcp_connect(lane.rt, "localhost:1", nullptr, &future));
        noria_tcp* tcp = nullptr;
        int32_t status = lane.await(future, &tcp, sizeof tcp);
        cr_assert_neq(status, NORIA_OK);
        cr_assert_eq(waiting.runs, 0);
        for (Stuck* stuck : {&one, &two, &waiting}) stuck->may_end.count_down();
        lane.until([&] { return one.runs + two.runs + waiting.runs == 3; }, "the stuck jobs' end");
      },
      options);
}

Test(pool_shutdown, Job_that_never_returns_is_named_and_left_and_queued_ones_are_dropped) {
  noria_runtime_options options{};
  options.pool_user_threads = 1;
  for (Lane lane : {kCurrentThread, kOneWorker, kTwoWorkers}) {
    noria_runtime_options with = lane_options(lane, options);
    assert_ok(noria_runtime_new(&with, &lane.rt), lane.name);
    Stuck stuck, queued[10];
    NORIA_OK_CALL(noria_spawn_blocking(lane.rt, Stuck::run, Stuck::discard, &stuck, nullptr));
    stuck.begun.wait("the stuck job");
    std::vector<noria_future*> futures;
    for (Stuck& each : queued) {
      noria_future* future = nullptr;
      NORIA_OK_CALL(noria_spawn_blocking(lane.rt, Stuck::run, Stuck::discard, &each, &future));
      futures.push_back(future);
    }
    noria_shutdown_report report{};
    report.size = sizeof report;
    auto begin = std::chrono::steady_clock::now();
    NORIA_STATUS(noria_runtime_shutdown(lane.rt, 20 * kMilli, &report), -ETIMEDOUT);
    cr_assert(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5), "P7: shutdown ends");
    cr_assert_eq(report.timed_out, 1);
    cr_assert_eq(report.jobs_running, 1);
    cr_assert_eq(report.jobs_dropped, 10);
    for (std::size_t i = 0; i < futures.size(); ++i) {
      cr_assert_eq(queued[i].discards, 1);
      NORIA_STATUS(noria_future_result(futures[i], nullptr, 0), -ECANCELED);
      NORIA_OK_CALL(noria_future_drop(futures[i]));
    }
    assert_ok(noria_runtime_release(lane.rt), "release");
    cr_assert_eq(stuck.runs + stuck.discards, 0);
    stuck.may_end.count_down();
    await_nothing_alive(lane.name);
    cr_assert_eq(stuck.runs, 1);
  }
}

Test(pool_shutdown, Submissions_that_meet_the_shutdown_are_run_or_refused_or_discarded) {
  for (int round = 0; round < rounds(50, 2000); ++round) {
    Lane lane = round % 2 == 0 ? kTwoWorkers : kCurrentThread;
    noria_runtime_options options = lane_options(lane);
    assert_ok(noria_runtime_new(&options, &lane.rt), lane.name);
    struct Count {
      std::atomic<int> ended{0};
      static int32_t run(void* arg) { return ++static_cast<Count*>(arg)->ended, 0; }
      static void discard(void* arg) { ++static_cast<Count*>(arg)->ended; }
    } count;
    int accepted = 0;
    std::atomic<bool> begun{false};
    std::thread submitter([&] {
      for (int i = 0; i < 1000; ++i) {
        int32_t status = noria_spawn_blocking(lane.rt, Count::run, Count::discard, &count, nullptr);
        if (status == -NORIA_ESHUTDOWN) break;
        NORIA_CHECK(status == NORIA_OK, "spawn_blocking: %s", noria_error_name(status));
        ++accepted;
        begun = true;
      }
    });
    while (!begun) std::this_thread::yield();
    assert_ok(noria_runtime_shutdown(lane.rt, 8 * kSecond, nullptr), "shutdown");
    submitter.join();
    cr_assert_eq(count.ended, accepted, "each job that was accepted is run or discarded once");
    assert_ok(noria_runtime_release(lane.rt), "release");
    await_nothing_alive(lane.name);
  }
}

// last-handle-inside: the last handle goes inside a job.
Test(last_handle_inside, Runtime_freed_by_a_job_ends) {
  for (int round = 0; round < rounds(20, 1000); ++round) {
    for (Lane lane : {kCurrentThread, kTwoWorkers}) {
      noria_runtime_options options = lane_options(lane);
      assert_ok(noria_runtime_new(&options, &lane.rt), lane.name);
      auto free_it = [](void* arg) -> int32_t { return noria_runtime_free(static_cast<noria_runtime*>(arg)); };
      NORIA_OK_CALL(noria_spawn_blocking(lane.rt, free_it, nullptr, lane.rt, nullptr));
      await_nothing_alive("a runtime that was freed by its job");
    }
  }
}
