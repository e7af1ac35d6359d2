// Known faults of time that stands still or starts elsewhere: suspend.
#include <criterion/criterion.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <thread>

#include "support/runtime_fixture.hpp"

using namespace noria::test;

namespace {

constexpr std::uint64_t kPeriod = 2 * kMilli;
constexpr int kTicks = 100;

std::uint64_t now(noria_runtime* rt) {
  std::uint64_t instant = 0;
  assert_ok(noria_now(rt, &instant), "now");
  return instant;
}

// In a process that is stopped and continued meanwhile. What is true of each kind of interval, whenever the stop comes.
void tick_through(Lane& lane, std::uint32_t missed) {
  noria_interval* interval = nullptr;
  NORIA_OK_CALL(noria_interval_new(lane.rt, 0, kPeriod, missed, &interval));
  std::uint64_t first = 0, before = 0;
  for (int i = 0; i < kTicks; ++i) {
    std::uint64_t instant = 0;
    NORIA_OK_CALL(lane.run([&](const noria_cx* cx) { return noria_interval_poll_tick(interval, cx, &instant); }));
    NORIA_CHECK(now(lane.rt) >= instant, "P6: never early");
    if (i == 0) {
      first = instant;
    } else if (missed == NORIA_MISSED_BURST) {
      NORIA_CHECK(instant - before == kPeriod, "each tick comes, on the rhythm");
    } else if (missed == NORIA_MISSED_DELAY) {
      NORIA_CHECK(instant - before >= kPeriod, "a period after the late one, at least");
    } else {
      NORIA_CHECK(instant > before && (instant - first) % kPeriod == 0, "on the old rhythm");
    }
    before = instant;
  }
  NORIA_OK_CALL(noria_interval_drop(interval));
}

}  // namespace

Test(suspend, Process_that_is_stopped_keeps_what_each_kind_of_interval_promises) {
  for (std::uint32_t missed : {NORIA_MISSED_BURST, NORIA_MISSED_DELAY, NORIA_MISSED_SKIP}) {
    pid_t child = ::fork();
    if (child == 0) {
      on_runtimes(kCurrent | kTwo, [missed](Lane& lane) { tick_through(lane, missed); });
      ::_exit(0);
    }
    int status = 0;
    // Time that passes while the child stands still is what this is about.
    for (int i = 0; i < 5 && ::waitpid(child, &status, WNOHANG) == 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ::kill(child, SIGSTOP);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ::kill(child, SIGCONT);
    }
    while (::waitpid(child, &status, 0) == child && !WIFEXITED(status) && !WIFSIGNALED(status)) {
    }
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "missed = %u: %d", missed, status);
  }
}

// A clock that stands a hundred years after boot, in the children of a process that may have its own time.
Test(suspend, Sleeps_are_as_long_as_asked_in_another_time_namespace) {
  if (::unshare(CLONE_NEWTIME) != 0) cr_skip_test("no time namespaces for this user");
  std::FILE* offsets = std::fopen("/proc/self/timens_offsets", "w");
  cr_assert_not_null(offsets);
  std::fprintf(offsets, "monotonic 3155760000 0\n");
  cr_assert_eq(std::fclose(offsets), 0);
  pid_t child = ::fork();
  if (child == 0) {
    on_each_runtime([](Lane& lane) {
      std::uint64_t begin = now(lane.rt);
      NORIA_CHECK(begin > 3155760000 * kSecond, "the clock has its offset");
      noria_future* future = nullptr;
      NORIA_OK_CALL(noria_sleep(lane.rt, 3 * kMilli, &future));
      NORIA_OK_CALL(lane.await(future));
      NORIA_CHECK(now(lane.rt) - begin >= 3 * kMilli, "P6: never early");
      NORIA_CHECK(now(lane.rt) - begin < 8 * kSecond, "and not a century late");
    });
    ::_exit(0);
  }
  int status = 0;
  cr_assert_eq(::waitpid(child, &status, 0), child);
  cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d", status);
}
