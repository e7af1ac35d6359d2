// What the options of a runtime do: the number of workers that the machine gives, and those whose effect is seen from outside.
// The files of cgroups and the affinity are this test's (fopen and sched_getaffinity are wrapped), so that any machine will do.
#include <criterion/criterion.h>
#include <sched.h>

#include <atomic>
#include <cstring>
#include <map>
#include <string>
#include <thread>

#include "support/runtime_fixture.hpp"

using namespace noria::test;

namespace {

struct Machine {
  std::map<std::string, std::string> files;
  int cpus = 0;  // 0: the real ones
};
Machine g_machine;

std::uint32_t workers_of(const Machine& machine, std::uint32_t asked = 0, std::uint32_t most = 0) {
  g_machine = machine;
  noria_runtime_options options{};
  options.size = sizeof options;
  options.workers = asked;
  options.max_workers = most;
  noria_runtime* rt = nullptr;
  NORIA_OK_CALL(noria_runtime_new(&options, &rt));
  noria_runtime_info_data info{};
  info.size = sizeof info;
  NORIA_OK_CALL(noria_runtime_info(rt, &info));
  NORIA_CHECK(info.max_workers == (most != 0 ? most : info.workers), "max_workers is %u", info.max_workers);
  NORIA_OK_CALL(noria_runtime_free(rt));
  g_machine = {};
  return info.workers;
}

std::uint64_t pool_threads(noria_runtime* rt) {
  noria_metrics metrics{};
  metrics.size = sizeof metrics;
  NORIA_OK_CALL(noria_runtime_metrics(rt, &metrics));
  return metrics.pool_threads;
}

void run_a_job(noria_runtime* rt) {
  noria_future* job = nullptr;
  NORIA_OK_CALL(noria_spawn_blocking(
      rt, [](void*) { return 0; }, nullptr, nullptr, &job));
  NORIA_OK_CALL(noria_future_wait(job, NORIA_FOREVER));
  NORIA_OK_CALL(noria_future_drop(job));
}

}  // namespace

extern "C" {
std::FILE* __real_fopen(const char* path, const char* mode);
std::FILE* __wrap_fopen(const char* path, const char* mode) {
  bool of_cgroups = std::strcmp(path, "/proc/self/cgroup") == 0 || std::strncmp(path, "/sys/fs/cgroup", 14) == 0;
  if (!of_cgroups) return __real_fopen(path, mode);
  auto found = g_machine.files.find(path);
  if (found == g_machine.files.end()) return nullptr;
  return ::fmemopen(found->second.data(), found->second.size(), "r");
}

int __real_sched_getaffinity(pid_t pid, std::size_t size, cpu_set_t* set);
int __wrap_sched_getaffinity(pid_t pid, std::size_t size, cpu_set_t* set) {
  if (g_machine.cpus == 0) return __real_sched_getaffinity(pid, size, set);
  std::memset(set, 0, size);
  for (int i = 0; i < g_machine.cpus; ++i) CPU_SET_S(static_cast<std::size_t>(i), size, set);
  return 0;
}
}

Test(Options, Workers_are_those_of_the_affinity_where_no_quota_is_set) {
  cr_assert_eq(workers_of({{}, 1}), 1);
  cr_assert_eq(workers_of({{}, 3}), 3);
  cr_assert_eq(workers_of({{{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "max 100000\n"}}, 5}), 5);
}

Test(Options, Workers_are_the_cgroup_quota_rounded_up) {
  auto quota = [](const char* cpu_max) {
    return workers_of({{{"/proc/self/cgroup", "0::/box\n"}, {"/sys/fs/cgroup/box/cpu.max", cpu_max}}, 8});
  };
  cr_assert_eq(quota("200000 100000\n"), 2);
  cr_assert_eq(quota("200001 100000\n"), 3);
  cr_assert_eq(quota("50000 100000\n"), 1);
  cr_assert_eq(quota("1000 100000\n"), 1);
  cr_assert_eq(quota("1600000 100000\n"), 8, "no more than the affinity allows");
  cr_assert_eq(quota("nonsense\n"), 8);
}

Test(Options, Workers_are_the_least_quota_up_to_the_root) {
  std::map<std::string, std::string> files = {{"/proc/self/cgroup", "1:cpu:/x\n0::/outer/middle/inner\n"},
                                              {"/sys/fs/cgroup/outer/middle/inner/cpu.max", "max 100000\n"},
                                              {"/sys/fs/cgroup/outer/middle/cpu.max", "600000 100000\n"},
                                              {"/sys/fs/cgroup/outer/cpu.max", "300000 100000\n"}};
  cr_assert_eq(workers_of({files, 8}), 3);
  files["/sys/fs/cgroup/cpu.max"] = "150000 100000\n";
  cr_assert_eq(workers_of({files, 8}), 2);
}

Test(Options, Workers_are_the_quota_of_cgroups_version_1_too) {
  std::map<std::string, std::string> files = {{"/proc/self/cgroup", "4:cpu,cpuacct:/\n"},
                                              {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "250000\n"},
                                              {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"}};
  cr_assert_eq(workers_of({files, 8}), 3);
  files["/sys/fs/cgroup/cpu/cpu.cfs_quota_us"] = "-1\n";
  cr_assert_eq(workers_of({files, 8}), 8);
}

Test(Options, Workers_that_were_asked_for_are_had_whatever_the_quota) {
  std::map<std::string, std::string> files = {{"/proc/self/cgroup", "0::/\n"},
                                              {"/sys/fs/cgroup/cpu.max", "100000 100000\n"}};
  cr_assert_eq(workers_of({files, 2}, 4), 4);
  assert_nothing_alive("workers");
}

Test(Options, Max_workers_above_workers_is_told_and_runs) {
  cr_assert_eq(workers_of({}, 2, 6), 2);
  noria_runtime_options options{};
  options.size = sizeof options;
  options.workers = 2;
  options.max_workers = 6;
  Lane lane = kTwoWorkers;
  NORIA_OK_CALL(noria_runtime_new(&options, &lane.rt));
  for (int i = 0; i < 100; ++i) lane.join(spawn(lane.rt, [](const noria_cx*) -> int32_t { return NORIA_READY; }));
  noria_worker_metrics metrics{};
  metrics.size = sizeof metrics;
  NORIA_OK_CALL(noria_runtime_worker_metrics(lane.rt, 1, &metrics));
  NORIA_STATUS(noria_runtime_worker_metrics(lane.rt, 2, &metrics), -EINVAL);
  NORIA_OK_CALL(noria_runtime_free(lane.rt));
  assert_nothing_alive("max_workers");
}

Test(Options, Idle_pool_thread_leaves_after_the_keep_alive) {
  noria_runtime_options options{};
  options.size = sizeof options;
  options.workers = 1;
  options.pool_keep_alive_ns = kMilli;
  noria_runtime* rt = nullptr;
  NORIA_OK_CALL(noria_runtime_new(&options, &rt));
  run_a_job(rt);
  std::uint64_t begin_ns = 0, now_ns = 0;
  NORIA_OK_CALL(noria_now(rt, &begin_ns));
  while (pool_threads(rt) != 0) {
    NORIA_OK_CALL(noria_now(rt, &now_ns));
    NORIA_CHECK(now_ns - begin_ns < 5 * kSecond, "an idle thread stays, although 1 ms was asked for");
    std::this_thread::yield();
  }
  NORIA_OK_CALL(noria_runtime_free(rt));

  options.pool_keep_alive_ns = 3600 * kSecond;
  NORIA_OK_CALL(noria_runtime_new(&options, &rt));
  run_a_job(rt);
  cr_assert_eq(pool_threads(rt), 1, "the thread of the job stays");
  NORIA_OK_CALL(noria_runtime_free(rt));
  await_nothing_alive("keep-alive");
}

// Two tasks that yield for ever keep the ring filled; whenever an injected task has run, the next one is injected in the next poll.
Test(Options, P5_inject_interval_is_the_number_of_polls_between_two_looks) {
  for (std::uint32_t interval = 1; interval <= 64; interval = interval < 4 ? interval + 1 : 2 * interval) {
    Watchdog watchdog("an inject interval");
    Lane lane = kOneWorker;
    noria_runtime_options options = lane_options(lane);
    options.inject_interval = interval;
    NORIA_OK_CALL(noria_runtime_new(&options, &lane.rt));
    std::atomic<bool> end{false}, wanted{false}, injected{false};
    std::uint32_t polls = 0, rounds_done = 0, longest = 0;  // the worker's
    auto yielding = [&](const noria_cx* cx) -> int32_t {
      if (end) return NORIA_READY;
      ++polls;
      if (!injected) {
        wanted = true;
        while (!injected) std::this_thread::yield();
        polls = 0;
      }
      return noria_yield(cx);
    };
    auto from_outside = [&](const noria_cx*) -> int32_t {
      if (rounds_done++ != 0 && polls > longest) longest = polls;
      injected = false;
      if (rounds_done == 20) end = true;
      return NORIA_READY;
    };
    noria_task* one = spawn(lane.rt, yielding);
    noria_task* two = spawn(lane.rt, yielding);
    for (int i = 0; i < 20; ++i) {
      while (!wanted && !end) std::this_thread::yield();
      wanted = false;
      spawn_detached(lane.rt, from_outside);
      injected = true;
    }
    lane.join(one);
    lane.join(two);
    NORIA_CHECK(longest <= interval, "P5: %u polls before an injected task, the interval is %u", longest, interval);
    NORIA_CHECK(longest + 2 >= interval, "a look at the inject queue every %u polls, the interval is %u", longest,
                interval);
    NORIA_OK_CALL(noria_runtime_free(lane.rt));
  }
  assert_nothing_alive("inject intervals");
}

Test(Options, Seed_is_the_one_given_or_another_each_time) {
  auto seed_of = [](std::uint64_t given) {
    noria_runtime_options options{};
    options.size = sizeof options;
    options.workers = 1;
    options.seed = given;
    noria_runtime* rt = nullptr;
    NORIA_OK_CALL(noria_runtime_new(&options, &rt));
    noria_runtime_info_data info{};
    info.size = sizeof info;
    NORIA_OK_CALL(noria_runtime_info(rt, &info));
    NORIA_OK_CALL(noria_runtime_free(rt));
    return info.seed;
  };
  cr_assert_eq(seed_of(42), 42);
  cr_assert_eq(seed_of(UINT64_MAX), UINT64_MAX);
  cr_assert_neq(seed_of(0), seed_of(0));
  assert_nothing_alive("seeds");
}
