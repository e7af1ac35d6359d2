// pool-shutdown: a job that does not return, and jobs that have not begun, when the runtime ends.
#include <criterion/criterion.h>

#include <vector>

#include "support/runtime_fixture.hpp"

using namespace noria::test;

namespace {

struct Job {
  Latch began;
  Latch end;
  std::atomic<int> runs{0};
  std::atomic<int> discards{0};
  static int32_t run(void* arg) {
    auto* self = static_cast<Job*>(arg);
    ++self->runs;
    self->began.count_down();
    self->end.wait("the end of the job");
    return 0;
  }
  static void discard(void* arg) { ++static_cast<Job*>(arg)->discards; }
};

}  // namespace

Test(PoolShutdown, pool_shutdown_job_that_does_not_return) {
  for (std::uint32_t workers : {0u, 1u, 2u}) {
    noria_runtime_options options = lane_options(Lane{"", workers});
    noria_runtime* rt = nullptr;
    NORIA_OK_CALL(noria_runtime_new(&options, &rt));
    Job stuck;
    noria_future* future = nullptr;
    NORIA_OK_CALL(noria_spawn_blocking(rt, Job::run, Job::discard, &stuck, &future));
    stuck.began.wait("the stuck job");
    noria_shutdown_report report{};
    report.size = sizeof report;
    NORIA_STATUS(noria_runtime_shutdown(rt, 50 * kMilli, &report), -ETIMEDOUT);
    cr_assert(report.timed_out == 1 && report.jobs_running == 1 && report.polls_running == 0);
    NORIA_STATUS(noria_future_result(future, nullptr, 0), -ECANCELED);
    NORIA_OK_CALL(noria_future_drop(future));
    NORIA_OK_CALL(noria_runtime_release(rt));
    stuck.end.count_down();
    await_nothing_alive("a job that outlived its runtime");
    cr_assert(stuck.runs == 1 && stuck.discards == 0);
  }
}

Test(PoolShutdown, pool_shutdown_jobs_not_begun) {
  for (std::uint32_t workers : {0u, 2u}) {
    noria_runtime_options options = lane_options(Lane{"", workers});
    options.pool_user_threads = 1;
    noria_runtime* rt = nullptr;
    NORIA_OK_CALL(noria_runtime_new(&options, &rt));
    Job first;
    NORIA_OK_CALL(noria_spawn_blocking(rt, Job::run, Job::discard, &first, nullptr));
    first.began.wait("the job that runs");
    std::vector<Job> queued(50);
    std::vector<noria_future*> futures(50);
    for (std::size_t i = 0; i < queued.size(); ++i)
      NORIA_OK_CALL(noria_spawn_blocking(rt, Job::run, Job::discard, &queued[i], i % 2 == 0 ? &futures[i] : nullptr));
    std::thread ender([&] {  // once the end has begun
      noria_strand* strand = nullptr;
      while (noria_strand_new(rt, &strand) == NORIA_OK) NORIA_OK_CALL(noria_strand_drop(strand));
      first.end.count_down();
    });
    noria_shutdown_report report{};
    report.size = sizeof report;
    int32_t status = noria_runtime_shutdown(rt, 8 * kSecond, &report);
    ender.join();
    NORIA_STATUS(status, NORIA_OK);
    int began = 0;
    for (std::size_t i = 0; i < queued.size(); ++i) {
      NORIA_CHECK(queued[i].runs + queued[i].discards == 1, "job %zu: %d runs, %d discards", i, queued[i].runs.load(),
                  queued[i].discards.load());
      began += queued[i].runs;
      if (futures[i] == nullptr) continue;
      NORIA_STATUS(noria_future_result(futures[i], nullptr, 0), queued[i].runs != 0 ? NORIA_OK : -ECANCELED);
      NORIA_OK_CALL(noria_future_drop(futures[i]));
    }
    cr_assert_eq(began, 0, "a job began after the end had");
    cr_assert_eq(report.jobs_dropped, queued.size());
    NORIA_OK_CALL(noria_runtime_release(rt));
    await_nothing_alive("jobs that had not begun");
  }
}

// What a discarded job calls is a call from inside of the runtime that ends: it is told so, and waits for nothing (P7).
Test(PoolShutdown, pool_shutdown_from_a_discard) {
  struct Ender {
    noria_runtime* rt = nullptr;
    std::atomic<bool> may_end{false};
    std::atomic<int32_t> told{-1};
    static int32_t run(void* arg) {
      while (!static_cast<Ender*>(arg)->may_end) std::this_thread::yield();
      return NORIA_OK;
    }
    static void discard(void* arg) {
      auto* self = static_cast<Ender*>(arg);
      self->told = noria_runtime_shutdown(self->rt, NORIA_FOREVER, nullptr);
      self->may_end = true;
    }
  };
  for (std::uint32_t workers : {0u, 2u}) {
    noria_runtime_options options = lane_options(Lane{"", workers});
    options.pool_user_threads = 1;
    Watchdog watchdog("P7: a shutdown from a discard", kWatchdogSeconds);
    Ender ender;
    NORIA_OK_CALL(noria_runtime_new(&options, &ender.rt));
    NORIA_OK_CALL(noria_spawn_blocking(ender.rt, Ender::run, nullptr, &ender, nullptr));
    NORIA_OK_CALL(noria_spawn_blocking(ender.rt, Ender::run, Ender::discard, &ender, nullptr));
    NORIA_STATUS(noria_runtime_shutdown(ender.rt, 8 * kSecond, nullptr), NORIA_OK);
    cr_assert_eq(ender.told, NORIA_PENDING);
    NORIA_OK_CALL(noria_runtime_release(ender.rt));
    await_nothing_alive("a runtime that a discard has ended");
  }
}
