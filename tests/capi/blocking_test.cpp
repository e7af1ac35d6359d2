// Jobs on the blocking pool: each is run or discarded once, whatever is done to its future.
#include <criterion/criterion.h>

#include <atomic>
#include <cerrno>
#include <latch>
#include <stdexcept>
#include <vector>

#include "support/runtime_fixture.hpp"

using namespace noria::test;

namespace {

struct Job {
  std::atomic<int> runs{0}, discards{0};
  Latch begun;
  std::latch may_end{1};  // not with the main thread's watchdog
  int32_t answer = 7;
  bool throws = false;

  static int32_t run(void* arg) {
    auto* self = static_cast<Job*>(arg);
    self->begun.count_down();
    self->may_end.wait();
    ++self->runs;
    if (self->throws) throw std::runtime_error("job");
    return self->answer;
  }
  static int32_t run_at_once(void* arg) {
    ++static_cast<Job*>(arg)->runs;
    return static_cast<Job*>(arg)->answer;
  }
  static void discard(void* arg) { ++static_cast<Job*>(arg)->discards; }
};

noria_future* submit(noria_runtime* rt, int32_t (*run)(void*), Job& job) {
  noria_future* future = nullptr;
  assert_ok(noria_spawn_blocking(rt, run, Job::discard, &job, &future), "spawn_blocking");
  return future;
}

}  // namespace

Test(SpawnBlocking, Result_is_what_the_job_answered) {
  on_each_runtime([](Lane& lane) {
    for (int32_t answer : {7, 0, -EIO}) {
      Job job;
      job.answer = answer;
      int32_t got = 1;
      cr_assert_eq(lane.await(submit(lane.rt, Job::run_at_once, job), &got, sizeof got), NORIA_OK,
                   "an error that the job answers is not the future's own");
      cr_assert_eq(got, answer);
      cr_assert_eq(job.runs, 1);
      cr_assert_eq(job.discards, 0);
    }
  });
}

Test(SpawnBlocking, Detached_job_runs) {
  on_each_runtime([](Lane& lane) {
    std::atomic<int> runs{0};
    constexpr int kJobs = 100;
    for (int i = 0; i < kJobs; ++i) {
      auto count = [](void* arg) -> int32_t { return ++*static_cast<std::atomic<int>*>(arg), 0; };
      NORIA_OK_CALL(noria_spawn_blocking(lane.rt, count, nullptr, &runs, nullptr));
    }
    lane.until([&] { return runs == kJobs; }, "detached jobs");
  });
}

Test(SpawnBlocking, Cancel_of_a_running_job_is_told_at_once_and_the_job_goes_on) {
  on_each_runtime([](Lane& lane) {
    Job job;
    noria_future* future = submit(lane.rt, Job::run, job);
    job.begun.wait("the job's begin");
    NORIA_OK_CALL(noria_future_cancel(future));
    cr_assert_eq(lane.await(future), -ECANCELED);
    cr_assert_eq(job.runs, 0);
    job.may_end.count_down();
    lane.until([&] { return job.runs == 1; }, "the job's end");
    cr_assert_eq(job.discards, 0);
  });
}

Test(SpawnBlocking, Cancel_before_the_begin_discards) {
  noria_runtime_options options{};
  options.pool_user_threads = 1;
  on_each_runtime(
      [](Lane& lane) {
        Job blocker, cancelled, dropped;
        noria_future* first = submit(lane.rt, Job::run, blocker);
        blocker.begun.wait("the blocker's begin");
        noria_future* second = submit(lane.rt, Job::run, cancelled);
        noria_future* third = submit(lane.rt, Job::run, dropped);
        NORIA_OK_CALL(noria_future_cancel(second));
        cr_assert_eq(lane.await(second), -ECANCELED);
        cr_assert_eq(cancelled.discards, 1);
        NORIA_OK_CALL(noria_future_drop(third));
        cr_assert_eq(dropped.discards, 1);
        blocker.may_end.count_down();
        cr_assert_eq(lane.await(first), NORIA_OK);
        cr_assert_eq(cancelled.runs + dropped.runs, 0);
      },
      options);
}

Test(SpawnBlocking, Exception_of_a_job_becomes_an_error) {
  on_each_runtime([](Lane& lane) {
    Job job;
    job.throws = true;
    job.may_end.count_down();
    int32_t got = 1;
    cr_assert_eq(lane.await(submit(lane.rt, Job::run, job), &got, sizeof got), -NORIA_ETHROWN);
    cr_assert_eq(job.runs, 1);
  });
}

Test(SpawnBlocking, Full_queue_is_told_and_the_argument_stays_the_callers) {
  noria_runtime_options options{};
  options.pool_user_threads = 1;
  options.pool_queue_limit = 1;
  on_each_runtime(
      [](Lane& lane) {
        Job blocker, queued, refused;
        noria_future* first = submit(lane.rt, Job::run, blocker);
        blocker.begun.wait("the blocker's begin");
        noria_future* second = submit(lane.rt, Job::run_at_once, queued);
        noria_future* third = nullptr;
        NORIA_STATUS(noria_spawn_blocking(lane.rt, Job::run, Job::discard, &refused, &third), -EAGAIN);
        NORIA_STATUS(noria_spawn_blocking(lane.rt, Job::run, Job::discard, &refused, nullptr), -EAGAIN);
        blocker.may_end.count_down();
        cr_assert_eq(lane.await(first), NORIA_OK);
        cr_assert_eq(lane.await(second), NORIA_OK);
        cr_assert_eq(refused.runs + refused.discards, 0);
      },
      options);
}

Test(SpawnBlocking, Many_jobs_awaited_by_tasks_each_answer) {
  on_each_runtime([](Lane& lane) {
    struct Awaits {
      noria_runtime* rt;
      int32_t value;
      noria_future* future = nullptr;
      int32_t operator()(const noria_cx* cx) {
        auto answer = [](void* arg) { return static_cast<int32_t>(reinterpret_cast<std::intptr_t>(arg)); };
        void* arg = reinterpret_cast<void*>(static_cast<std::intptr_t>(value));
        if (future == nullptr) NORIA_OK_CALL(noria_spawn_blocking(rt, answer, nullptr, arg, &future));
        int32_t status = noria_future_poll(future, cx);
        if (status != NORIA_READY) return status;
        int32_t got = 0;
        NORIA_OK_CALL(noria_future_result(future, &got, sizeof got));
        NORIA_OK_CALL(noria_future_drop(future));
        return got == value ? NORIA_READY : -EPROTO;
      }
    };
    std::vector<noria_task*> tasks;
    for (int i = 0; i < 2000; ++i) tasks.push_back(spawn(lane.rt, Awaits{lane.rt, i}));
    for (noria_task* task : tasks) cr_assert_eq(lane.join(task).kind, NORIA_JOIN_DONE);
  });
}

Test(SpawnBlocking, Cancel_from_another_thread_leads_to_one_of_run_and_discard) {
  on_each_runtime([](Lane& lane) {
    for (int round = 0; round < rounds(500, 50'000); ++round) {
      Job job;
      noria_future* future = submit(lane.rt, Job::run_at_once, job);
      NORIA_OK_CALL(noria_future_cancel(future));
      int32_t status = lane.await(future);
      lane.until([&] { return job.runs + job.discards > 0; }, "run or discard");
      cr_assert_eq(job.runs + job.discards, 1);
      cr_assert(status == -ECANCELED || job.runs == 1);
    }
  });
}

Test(SpawnBlocking, Shutdown_discards_what_has_not_begun_and_waits_for_what_runs) {
  noria_runtime_options options{};
  options.pool_user_threads = 1;
  for (Lane lane : {kCurrentThread, kTwoWorkers}) {
    noria_runtime_options with = lane_options(lane, options);
    assert_ok(noria_runtime_new(&with, &lane.rt), lane.name);
    Job running, queued;
    noria_future* first = submit(lane.rt, Job::run, running);
    running.begun.wait("the job's begin");
    noria_future* second = submit(lane.rt, Job::run, queued);
    noria_shutdown_report report{};
    report.size = sizeof report;
    NORIA_STATUS(noria_runtime_shutdown(lane.rt, 0, &report), -ETIMEDOUT);
    cr_assert_eq(report.jobs_running, 1, "P7");
    cr_assert_eq(queued.discards, 1, "P7");
    NORIA_STATUS(noria_future_result(second, nullptr, 0), -ECANCELED);
    noria_future* late = nullptr;
    NORIA_STATUS(noria_spawn_blocking(lane.rt, Job::run, nullptr, &queued, &late), -NORIA_ESHUTDOWN);
    running.may_end.count_down();
    NORIA_OK_CALL(noria_future_drop(first));
    NORIA_OK_CALL(noria_future_drop(second));
    assert_ok(noria_runtime_release(lane.rt), "release");
    await_nothing_alive(lane.name);
    cr_assert_eq(running.runs, 1);
  }
}

Test(SpawnBlocking, Misuse_is_told) {
  on_each_runtime([](Lane& lane) {
    noria_future* future = nullptr;
    Job job;
    NORIA_STATUS(noria_spawn_blocking(lane.rt, nullptr, nullptr, &job, &future), -EINVAL);
    NORIA_STATUS(noria_spawn_blocking(nullptr, Job::run, nullptr, &job, &future), -NORIA_ENOCONTEXT);
    int32_t answer = 0;
    char small = 0;
    future = submit(lane.rt, Job::run_at_once, job);
    lane.until([&] { return noria_future_result(future, &small, sizeof small) == -EINVAL; }, "the job");
    NORIA_STATUS(noria_future_result(future, &answer, 0), -EINVAL);
    NORIA_STATUS(noria_future_result(future, nullptr, sizeof answer), -EINVAL);
    NORIA_OK_CALL(noria_future_result(future, &answer, sizeof answer));
    NORIA_STATUS(noria_future_result(future, &answer, sizeof answer), -NORIA_ECONSUMED);
    NORIA_OK_CALL(noria_future_drop(future));
  });
}
