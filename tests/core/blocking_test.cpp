// The blocking pool: limits, classes, cancel, shutdown with a report, threads that come and go.
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <latch>
#include <mutex>
#include <thread>
#include <vector>

#include "base/allocator.hpp"
#include "base/live.hpp"
#include "blocking/pool.hpp"

using namespace noria;
using namespace noria::blocking;

namespace {

constexpr std::uint64_t kSoonNs = 20 * kNsPerSec;  // liveness only

std::uint64_t soon() { return monotonic_ns() + kSoonNs; }

std::int64_t allocations() { return live_sum()[static_cast<std::size_t>(Live::kAllocations)]; }

// A job that counts what became of it and, while it runs, may stand still until it is let go.
struct TestJob : Job {
  std::atomic<int> runs{0};
  std::atomic<int> discards{0};
  std::latch begun{1};
  std::latch go;

  explicit TestJob(bool stands = false, const char* text = nullptr) : go(stands ? 1 : 0) {
    name = text;
    run = [](Job* job) {
      auto* self = static_cast<TestJob*>(job);
      self->runs.fetch_add(1);
      self->begun.count_down();
      self->go.wait();
    };
    discard = [](Job* job) { static_cast<TestJob*>(job)->discards.fetch_add(1); };
  }
};

Pool* make(const PoolOptions& options = {}) {
  Pool* pool = nullptr;
  cr_assert_eq(Pool::create(options, &pool), 0);
  return pool;
}

PoolOptions with_threads(std::uint32_t n) {
  PoolOptions options;
  for (auto& max : options.max_threads) max = n;
  return options;
}

void end(Pool* pool) {
  pool->close();
  cr_assert(pool->wait_idle(soon()));
  pool->release();
  cr_assert_eq(allocations(), 0);
}

// Many jobs of a few ns: the crew now believes that jobs are short.
void make_jobs_look_short(Pool* pool) {
  constexpr int kJobs = 3000;
  static std::atomic<int> ran;
  ran = 0;
  std::vector<Job> jobs(kJobs);
  for (Job& job : jobs) {
    job.run = [](Job*) {
      if (ran.fetch_add(1) + 1 == kJobs) ran.notify_all();
    };
    cr_assert_eq(pool->submit(job, PoolClass::kUser), 0);
  }
  for (int seen = ran; seen != kJobs; seen = ran) ran.wait(seen);
}

std::atomic<bool> g_no_memory{false};

void fail_on_demand() {
  AllocatorHooks hooks{[](std::size_t size, std::size_t align, void*) -> void* {
                         if (g_no_memory.load()) return nullptr;
                         return std::aligned_alloc(align, (size + align - 1) / align * align);
                       },
                       [](void* p, std::size_t, std::size_t, void*) { std::free(p); }, nullptr};
  cr_assert_eq(set_allocator(hooks), 0);
}

}  // namespace

Test(blocking, Job_runs_once_and_all_is_given_back) {
  Pool* pool = make();
  TestJob jobs[3];
  PoolClass classes[] = {PoolClass::kFiles, PoolClass::kNames, PoolClass::kUser};
  for (int i = 0; i < 3; ++i) cr_assert_eq(pool->submit(jobs[i], classes[i]), 0);
  for (auto& job : jobs) job.begun.wait();
  end(pool);
  for (auto& job : jobs) cr_assert(job.runs == 1 && job.discards == 0);
}

// The case pool-starve: what is stuck in one class delays no other, and nobody in its own class while
// a thread may be added.
Test(blocking, PoolStarve_stuck_class_delays_no_other) {
  Pool* pool = make(with_threads(1));
  TestJob stuck(true), behind, file;
  cr_assert_eq(pool->submit(stuck, PoolClass::kNames), 0);
  stuck.begun.wait();
  cr_assert_eq(pool->submit(behind, PoolClass::kNames), 0);
  cr_assert_eq(pool->submit(file, PoolClass::kFiles), 0);
  file.begun.wait();
  cr_assert_eq(behind.runs, 0);
  cr_assert_eq(pool->metrics(PoolClass::kNames).threads, 1);
  cr_assert_eq(pool->metrics(PoolClass::kNames).queued, 1);
  stuck.go.count_down();
  behind.begun.wait();
  end(pool);
}

Test(blocking, Job_behind_stuck_ones_begins_whatever_jobs_were_like_before) {
  for (bool looks_short : {false, true}) {
    Pool* pool = make();
    if (looks_short) make_jobs_look_short(pool);
    std::vector<TestJob*> stuck;
    for (int i = 0; i < 20; ++i) {
      stuck.push_back(new TestJob(true));
      cr_assert_eq(pool->submit(*stuck.back(), PoolClass::kUser), 0);
    }
    for (auto* job : stuck) job->begun.wait();  // all at once, though none returns
    for (auto* job : stuck) job->go.count_down();
    end(pool);
    for (auto* job : stuck) delete job;
  }
}

Test(blocking, Short_jobs_in_mass_add_few_threads) {
  Pool* pool = make();
  for (int i = 0; i < 20; ++i) make_jobs_look_short(pool);
  cr_assert_leq(pool->metrics(PoolClass::kUser).threads, 40);  // usually 2 to 5, of 512
  end(pool);
}

Test(blocking, Queue_limit_answers_EAGAIN_and_room_comes_back) {
  PoolOptions options = with_threads(1);
  options.queue_limit[2] = 3;
  Pool* pool = make(options);
  TestJob stuck(true), queued[3], refused, later;
  cr_assert_eq(pool->submit(stuck, PoolClass::kUser), 0);
  stuck.begun.wait();
  cr_assert_eq(pool->submit(queued[0], PoolClass::kUser), 0);
  std::thread([&] {  // another shard, the same limit
    for (int i = 1; i < 3; ++i) cr_assert_eq(pool->submit(queued[i], PoolClass::kUser), 0);
    cr_assert_eq(pool->submit(refused, PoolClass::kUser), -EAGAIN);
  })
      .join();
  cr_assert_eq(pool->submit(refused, PoolClass::kUser), -EAGAIN);
  cr_assert_eq(pool->metrics(PoolClass::kUser).queued, 3);
  cr_assert(pool->cancel(queued[1]));
  cr_assert_eq(pool->submit(later, PoolClass::kUser), 0);
  stuck.go.count_down();
  later.begun.wait();
  end(pool);
  cr_assert(refused.runs == 0 && refused.discards == 0);
  cr_assert_eq(queued[1].runs, 0);
}

Test(blocking, Cancel_before_start_gives_the_job_back) {
  Pool* pool = make(with_threads(1));
  TestJob stuck(true), cancelled, kept;
  cr_assert_eq(pool->submit(stuck, PoolClass::kUser), 0);
  stuck.begun.wait();
  cr_assert_eq(pool->submit(cancelled, PoolClass::kUser), 0);
  cr_assert_eq(pool->submit(kept, PoolClass::kUser), 0);
  cr_assert(pool->cancel(cancelled));
  cr_assert_not(pool->cancel(cancelled), "only once");
  cr_assert_not(pool->cancel(stuck), "it runs");
  stuck.go.count_down();
  kept.begun.wait();
  cr_assert_not(pool->cancel(kept));
  end(pool);
  cr_assert(cancelled.runs == 0 && cancelled.discards == 0);
}

// The case pool-shutdown: a job that does not return, and jobs that have not begun.
Test(blocking, PoolShutdown_discards_what_has_not_begun_and_names_what_runs) {
  Pool* pool = make(with_threads(1));
  TestJob stuck(true, "reads a dead file system"), queued[5], late;
  cr_assert_eq(pool->submit(stuck, PoolClass::kFiles), 0);
  stuck.begun.wait();
  for (auto& job : queued) cr_assert_eq(pool->submit(job, PoolClass::kFiles), 0);
  pool->close();
  for (auto& job : queued) cr_assert(job.runs == 0 && job.discards == 1);
  cr_assert_eq(pool->submit(late, PoolClass::kFiles), -ESHUTDOWN);
  cr_assert_eq(pool->run_thread([](void*) {}, nullptr), -ESHUTDOWN);
  cr_assert_not(pool->wait_idle(0));
  RunningJob report[4];
  cr_assert_eq(pool->running(report, 4), 1);
  cr_assert_str_eq(report[0].name, "reads a dead file system");
  cr_assert(report[0].pool_class == PoolClass::kFiles);
  cr_assert_eq(pool->running(nullptr, 0), 1, "counts without room");
  stuck.go.count_down();
  end(pool);
}

// Everybody has left; the thread ends later, and takes the pool's memory with it.
Test(blocking, PoolShutdown_stuck_thread_ends_after_everybody_left) {
  static std::latch stopped(1);
  PoolOptions options;
  options.on_thread_stop = [](void*) { stopped.count_down(); };
  Pool* pool = make(options);
  TestJob stuck(true);
  cr_assert_eq(pool->submit(stuck, PoolClass::kUser), 0);
  stuck.begun.wait();
  pool->close();
  cr_assert_not(pool->wait_idle(monotonic_ns() + kNsPerMs));
  pool->release();
  cr_assert_gt(allocations(), 0);
  stuck.go.count_down();
  stopped.wait();
  for (std::uint64_t until = soon(); allocations() != 0;) {
    cr_assert_lt(monotonic_ns(), until);
    std::this_thread::yield();
  }
}

Test(blocking, Shutdown_from_inside_a_job_waits_for_the_others) {
  struct Inside : Job {
    Pool* pool;
    std::atomic<int> answer{-1};
  } inside;
  inside.pool = make();
  inside.run = [](Job* job) {
    auto* self = static_cast<Inside*>(job);
    self->pool->close();
    bool idle = self->pool->wait_idle(soon());
    self->pool->release();
    self->answer = idle ? 1 : 0;
    self->answer.notify_all();
  };
  TestJob other;
  cr_assert_eq(inside.pool->submit(other, PoolClass::kUser), 0);
  other.begun.wait();
  cr_assert_eq(inside.pool->submit(inside, PoolClass::kUser), 0);
  inside.answer.wait(-1);
  cr_assert_eq(inside.answer, 1);
}

Test(blocking, RunThread_runs_at_once_beside_a_full_class) {
  PoolOptions options = with_threads(1);
  options.queue_limit[2] = 1;
  Pool* pool = make(options);
  TestJob stuck(true), queued;
  cr_assert_eq(pool->submit(stuck, PoolClass::kUser), 0);
  stuck.begun.wait();
  cr_assert_eq(pool->submit(queued, PoolClass::kUser), 0);
  static std::latch called(2), go(1);
  auto call = [](void* data) {
    static_cast<std::latch*>(data)->count_down();
    go.wait();
  };
  cr_assert_eq(pool->run_thread(call, &called), 0);
  cr_assert_eq(pool->run_thread(call, &called), 0);
  called.wait();
  RunningJob report[3];
  cr_assert_eq(pool->running(report, 3), 3);
  cr_assert_eq(pool->metrics(PoolClass::kUser).threads, 3);
  cr_assert_eq(queued.runs, 0);
  go.count_down();
  stuck.go.count_down();
  queued.begun.wait();
  end(pool);
}

Test(blocking, RunThread_takes_an_idle_thread_if_there_is_one) {
  static std::atomic<int> started{0};
  PoolOptions options;
  options.on_thread_start = [](void*) { started.fetch_add(1); };
  Pool* pool = make(options);
  TestJob first;
  cr_assert_eq(pool->submit(first, PoolClass::kUser), 0);
  for (std::uint64_t until = soon(); pool->metrics(PoolClass::kUser).idle != 1;) {
    cr_assert_lt(monotonic_ns(), until);
    std::this_thread::yield();
  }
  std::latch called(1);
  cr_assert_eq(pool->run_thread([](void* data) { static_cast<std::latch*>(data)->count_down(); }, &called), 0);
  called.wait();
  cr_assert_eq(started, 1);
  TestJob after;  // the thread serves the class again
  cr_assert_eq(pool->submit(after, PoolClass::kUser), 0);
  after.begun.wait();
  end(pool);
}

Test(blocking, Threads_end_after_the_keep_alive_and_come_back) {
  static std::atomic<int> stopped{0};
  PoolOptions options;
  options.keep_alive_ns = kNsPerMs;
  options.on_thread_stop = [](void*) {
    stopped.fetch_add(1);
    stopped.notify_all();
  };
  Pool* pool = make(options);
  for (int i = 0; i < 3; ++i) {
    TestJob job;
    cr_assert_eq(pool->submit(job, PoolClass::kUser), 0);
    job.begun.wait();
    stopped.wait(i);
    cr_assert_eq(pool->metrics(PoolClass::kUser).threads, 0);
  }
  end(pool);
}

Test(blocking, Thread_has_its_name_hooks_and_no_signals) {
  struct Seen {
    std::atomic<int> starts{0}, stops{0};
    char name[16] = {};
    sigset_t mask;
  };
  static Seen seen;
  PoolOptions options;
  options.thread_name = "a-prefix-that-is-long";
  options.hook_data = &seen;
  options.on_thread_start = [](void* data) {
    auto* s = static_cast<Seen*>(data);
    s->starts.fetch_add(1);
    pthread_getname_np(pthread_self(), s->name, sizeof s->name);
    pthread_sigmask(SIG_BLOCK, nullptr, &s->mask);
  };
  options.on_thread_stop = [](void* data) { static_cast<Seen*>(data)->stops.fetch_add(1); };
  Pool* pool = make(options);
  sigset_t before, after;
  pthread_sigmask(SIG_BLOCK, nullptr, &before);
  TestJob job;
  cr_assert_eq(pool->submit(job, PoolClass::kUser), 0);
  job.begun.wait();
  pthread_sigmask(SIG_BLOCK, nullptr, &after);
  end(pool);
  cr_assert(seen.starts == 1 && seen.stops == 1);
  cr_assert_str_eq(seen.name, "a-prefix-that-0");
  cr_assert(sigismember(&seen.mask, SIGINT) && sigismember(&seen.mask, SIGCHLD));
  cr_assert_not(sigismember(&seen.mask, SIGSEGV));
  cr_assert_eq(sigismember(&before, SIGINT), sigismember(&after, SIGINT));
}

Test(blocking, Thread_that_cannot_be_made_is_told_only_if_there_is_none) {
  fail_on_demand();
  Pool* pool = make();
  TestJob refused, stuck(true), behind, another;
  g_no_memory = true;
  cr_assert_eq(pool->submit(refused, PoolClass::kUser), -EAGAIN);
  cr_assert_neq(pool->run_thread([](void*) {}, nullptr), 0);
  cr_assert_eq(pool->metrics(PoolClass::kUser).queued, 0);
  g_no_memory = false;
  cr_assert_eq(pool->submit(stuck, PoolClass::kUser), 0);
  stuck.begun.wait();
  g_no_memory = true;
  cr_assert_eq(pool->submit(behind, PoolClass::kUser), 0);
  cr_assert_eq(pool->metrics(PoolClass::kUser).threads, 1);
  g_no_memory = false;  // the next submission tries again, for both
  cr_assert_eq(pool->submit(another, PoolClass::kUser), 0);
  behind.begun.wait();
  another.begun.wait();
  stuck.go.count_down();
  end(pool);
  cr_assert(refused.runs == 0 && refused.discards == 0);
}

Test(blocking, Job_behind_runs_though_no_thread_can_be_made) {
  fail_on_demand();
  Pool* pool = make();
  TestJob stuck(true), behind;
  cr_assert_eq(pool->submit(stuck, PoolClass::kUser), 0);
  stuck.begun.wait();
  g_no_memory = true;
  cr_assert_eq(pool->submit(behind, PoolClass::kUser), 0);
  stuck.go.count_down();
  behind.begun.wait();
  end(pool);
}

Test(blocking, Options_without_threads_are_refused) {
  PoolOptions options;
  options.max_threads[1] = 0;
  Pool* pool = nullptr;
  cr_assert_eq(Pool::create(options, &pool), -EINVAL);
  cr_assert_eq(allocations(), 0);
}
