// P4, isolation: while any worker is idle, one poll that runs long delays no other ready task, event or due timer. Each stuck poll
// here ends only after what it might hold up has run: if it is held up, the test hangs, and the watchdog tells.
#include <criterion/criterion.h>
#include <dirent.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include <cstring>

#include "support/runtime_fixture.hpp"

using namespace noria::test;

namespace {

constexpr unsigned kIdleBeside = kTwo | kFour;
int repeats() { return rounds(25, 500); }

// Switches of context of all threads of this process but the calling one, and how many threads there are.
[[maybe_unused]] std::uint64_t switches_of_others() {
  std::uint64_t sum = 0;
  DIR* tasks = ::opendir("/proc/self/task");
  NORIA_CHECK(tasks != nullptr, "no /proc");
  while (dirent* entry = ::readdir(tasks)) {
    long tid = std::strtol(entry->d_name, nullptr, 10);
    if (tid == 0 || tid == ::syscall(SYS_gettid)) continue;
    std::string path = std::string("/proc/self/task/") + entry->d_name + "/status";
    std::FILE* file = std::fopen(path.c_str(), "re");
    if (file == nullptr) continue;
    char line[256];
    while (std::fgets(line, sizeof line, file) != nullptr) {
      unsigned long long count = 0;
      if (std::sscanf(line, "voluntary_ctxt_switches: %llu", &count) == 1 ||
          std::sscanf(line, "nonvoluntary_ctxt_switches: %llu", &count) == 1)
        sum += count;
    }
    std::fclose(file);
  }
  ::closedir(tasks);
  return sum;
}

[[maybe_unused]] void pause_ms(long ms) {
  timespec time{ms / 1000, (ms % 1000) * 1'000'000};
  ::nanosleep(&time, nullptr);
}

}  // namespace

Test(PromiseIsolation, P4_lifo_slot_behind_a_stuck_poll) {
  on_runtimes(kIdleBeside, [](Lane& lane) {
    for (int i = 0; i < repeats(); ++i) {
      lane.join(spawn(lane.rt, [&](const noria_cx*) -> int32_t {
        Latch ran;
        spawn_detached(lane.rt, [&](const noria_cx*) -> int32_t { return ran.count_down(), NORIA_READY; });
        ran.wait("P4: the task in the LIFO slot of a stuck worker");
        return NORIA_READY;
      }));
    }
  });
}

// The other worker is never idle for a whole tick of the sentry.
Test(PromiseIsolation, P4_lifo_slot_behind_a_stuck_poll_beside_a_timer_that_ticks) {
  on_runtimes(kTwo, [](Lane& lane) {
    std::atomic<bool> end{false};
    noria_future* sleep = nullptr;
    noria_task* ticker = spawn(lane.rt, [&](const noria_cx* cx) -> int32_t {
      while (!end) {
        if (sleep == nullptr) NORIA_OK_CALL(noria_sleep(lane.rt, kMilli, &sleep));
        if (noria_future_poll(sleep, cx) == NORIA_PENDING) return NORIA_PENDING;
        NORIA_OK_CALL(noria_future_drop(std::exchange(sleep, nullptr)));
      }
      if (sleep != nullptr) NORIA_OK_CALL(noria_future_drop(sleep));
      return NORIA_READY;
    });
    for (int i = 0; i < repeats(); ++i) {
      lane.join(spawn(lane.rt, [&](const noria_cx*) -> int32_t {
        Latch ran;
        spawn_detached(lane.rt, [&](const noria_cx*) -> int32_t { return ran.count_down(), NORIA_READY; });
        ran.wait("P4: the task in the LIFO slot, beside a timer");
        return NORIA_READY;
      }));
    }
    end = true;
    lane.join(ticker);
  });
}

// Paused time does not move while a poll runs, the sentry's tick does.
Test(PromiseIsolation, P4_with_the_clock_paused) {
  noria_runtime_options options{};
  options.clock_paused = 1;
  on_runtimes(
      kIdleBeside,
      [](Lane& lane) {
        for (int i = 0; i < repeats(); ++i) {
          lane.join(spawn(lane.rt, [&](const noria_cx*) -> int32_t {
            Latch ran;
            spawn_detached(lane.rt, [&](const noria_cx*) -> int32_t { return ran.count_down(), NORIA_READY; });
            ran.wait("P4: the task in the LIFO slot of a stuck worker, time paused");
            return NORIA_READY;
          }));
        }
      },
      options);
}

Test(PromiseIsolation, P4_queue_behind_a_stuck_poll) {
  on_runtimes(kIdleBeside, [](Lane& lane) {
    for (int i = 0; i < repeats(); ++i) {
      int tasks = 2 + (i * 37) % 400;  // beyond the ring too
      lane.join(spawn(lane.rt, [&lane, tasks](const noria_cx*) -> int32_t {
        Latch ran(tasks);
        for (int t = 0; t < tasks; ++t)
          spawn_detached(lane.rt, [&](const noria_cx*) -> int32_t { return ran.count_down(), NORIA_READY; });
        ran.wait("P4: the tasks in the queue of a stuck worker");
        return NORIA_READY;
      }));
    }
  });
}

Test(PromiseIsolation, P4_inject_queue_while_the_only_awake_worker_is_stuck) {
  on_runtimes(kIdleBeside, [](Lane& lane) {
    for (int i = 0; i < repeats(); ++i) {
      Latch began, ran;
      noria_task* stuck = spawn(lane.rt, [&](const noria_cx*) -> int32_t {
        began.count_down();
        ran.wait("P4: a task from outside while a poll is stuck");
        return NORIA_READY;
      });
      began.wait("the stuck poll");
      spawn_detached(lane.rt, [&](const noria_cx*) -> int32_t { return ran.count_down(), NORIA_READY; });
      lane.join(stuck);
    }
  });
}

Test(PromiseIsolation, P4_wheel_of_a_stuck_worker) {
  on_runtimes(kIdleBeside, [](Lane& lane) {
    for (int i = 0; i < repeats(); ++i) {
      lane.join(spawn(lane.rt, [&lane, i](const noria_cx*) -> int32_t {
        ForeignWaker fired;
        noria_future* sleep = nullptr;
        NORIA_OK_CALL(noria_sleep(lane.rt, static_cast<std::uint64_t>(1 + i % 7) * kMilli, &sleep));
        if (noria_future_on_ready(sleep, fired.waker()) == NORIA_PENDING)
          fired.wait(1, "P4: a timer in the wheel of a stuck worker");
        NORIA_OK_CALL(noria_future_drop(sleep));
        return NORIA_READY;
      }));
    }
  });
}

Test(PromiseIsolation, P4_timer_armed_by_a_task_behind_a_stuck_poll) {
  on_runtimes(kIdleBeside, [](Lane& lane) {
    for (int i = 0; i < repeats(); ++i) {
      Latch done;
      lane.join(spawn(lane.rt, [&](const noria_cx*) -> int32_t {
        spawn_detached(lane.rt,
                       [&, sleep = static_cast<noria_future*>(nullptr)](const noria_cx* cx) mutable -> int32_t {
                         if (sleep == nullptr) NORIA_OK_CALL(noria_sleep(lane.rt, kMilli, &sleep));
                         if (noria_future_poll(sleep, cx) == NORIA_PENDING) return NORIA_PENDING;
                         NORIA_OK_CALL(noria_future_drop(sleep));
                         done.count_down();
                         return NORIA_READY;
                       });
        done.wait("P4: a task with a timer behind a stuck poll");
        return NORIA_READY;
      }));
    }
  });
}

Test(PromiseIsolation, P4_reactor_beside_a_stuck_worker) {
  on_runtimes(kIdleBeside, [](Lane& lane) {
    int fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    for (int i = 0; i < repeats(); ++i) {
      lane.join(spawn(lane.rt, [&lane, fd](const noria_cx*) -> int32_t {
        ForeignWaker ready;
        noria_source* source = nullptr;
        noria_readiness seen{};
        NORIA_OK_CALL(noria_source_new(lane.rt, fd, &source));
        if (noria_source_poll_ready(source, NORIA_READABLE, ready.cx(), &seen) == NORIA_PENDING) {
          std::uint64_t one = 1;
          NORIA_CHECK(::write(fd, &one, sizeof one) == sizeof one, "eventfd");
          ready.wait(1, "P4: an event while a worker is stuck");
        }
        std::uint64_t value = 0;
        NORIA_CHECK(::read(fd, &value, sizeof value) == sizeof value && value == 1, "eventfd");
        NORIA_OK_CALL(noria_source_drop(source));
        return NORIA_READY;
      }));
    }
    ::close(fd);
  });
}

Test(PromiseIsolation, P4_all_workers_but_one_stuck) {
  on_runtimes(kFour, [](Lane& lane) {
    for (int i = 0; i < repeats() / 5 + 1; ++i) {
      Latch began(3), ran;
      noria_task* stuck[3];
      for (noria_task*& task : stuck) {
        task = spawn(lane.rt, [&](const noria_cx*) -> int32_t {
          began.count_down();
          ran.wait("P4: a task beside three stuck workers");
          return NORIA_READY;
        });
      }
      began.wait("three stuck polls");
      lane.join(spawn(lane.rt, [&](const noria_cx*) -> int32_t {
        spawn_detached(lane.rt, [&](const noria_cx*) -> int32_t { return ran.count_down(), NORIA_READY; });
        return NORIA_READY;
      }));
      for (noria_task* task : stuck) lane.join(task);
    }
  });
}

// ThreadSanitizer has a thread of its own, which wakes up.
#if !NORIA_TEST_TSAN
Test(PromiseIsolation, P4_all_parked_means_no_wake_ups) {
  on_runtimes(kMulti, [](Lane& lane) {
    for (int i = 0; i < 100; ++i) lane.inside([] {});
    Watchdog watchdog("P4: the last ticks of the sentry", kWatchdogSeconds + 10);
    std::uint64_t before = switches_of_others();
    for (int quiet = 0; quiet < 3;) {  // the sentry goes to sleep a few ticks after the last worker
      pause_ms(50);
      std::uint64_t now = switches_of_others();
      quiet = now == before ? quiet + 1 : 0;
      before = now;
    }
    pause_ms(rounds(1000, 5000));
    std::uint64_t after = switches_of_others();
    NORIA_CHECK(after == before, "P4, %s: %llu wake-ups while all were parked", lane.name,
                static_cast<unsigned long long>(after - before));
    lane.inside([] {});
  });
}
#endif
