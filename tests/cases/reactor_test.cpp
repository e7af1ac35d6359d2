// Rows of the group Reactor that need no TCP: stale-clear, rearm-miss, dup-fd, closed-fd, cross-storm, stuck-driver.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <noria.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "support/runtimes.hpp"
#include "support/sources.hpp"

using namespace noria;
using namespace noria::reactor;
using namespace noria::test;

namespace {

void add_one(int fd) {
  std::uint64_t one = 1;
  cr_assert_eq(write(fd, &one, sizeof one), 8);
}

struct EventFd {
  int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  ~EventFd() { ::close(fd); }
};

// Reads an eventfd through its source until `total` has come.
int32_t collect(noria_source* source, int fd, const noria_cx* cx, std::uint64_t& seen, std::uint64_t total) {
  for (;;) {
    noria_readiness ready{};
    int32_t status = noria_source_poll_ready(source, NORIA_READABLE, cx, &ready);
    if (status != NORIA_READY) return status;
    std::uint64_t part = 0;
    if (read(fd, &part, sizeof part) == 8) seen += part;
    if (seen == total) return NORIA_READY;
    assert_ok(noria_source_clear(source, &ready, NORIA_READABLE), "clear");
  }
}

}  // namespace

Test(Cases, StaleClear_any_number_of_changes_between_read_and_clear_loses_no_event) {
  Bench bench;
  EventFd event;
  PlainSource* source = bench.make(event.fd);
  cr_assert_eq(bench.reactor->add(*source), 0);
  for (int changes : {1, 2, 255, 256, 257, 512, 65536}) {
    add_one(event.fd);
    cr_assert_geq(bench.reactor->poll(0), 0);
    Readiness seen = source->look();
    for (int i = 0; i < changes; ++i) {
      add_one(event.fd);
      cr_assert_eq(bench.reactor->poll(0), 1);
    }
    source->clear(seen, NORIA_READABLE);
    cr_assert(source->look().events & NORIA_READABLE, "%d changes", changes);
    source->clear(source->look(), NORIA_READABLE);
    cr_assert_not(source->look().events & NORIA_READABLE);
  }
  bench.end(source);
}

// The event comes between the clear and the sleep, at its very entry, and during it.
Test(Cases, RearmMiss_edge_at_the_entry_of_the_wait_is_not_missed, .timeout = 60) {
  Bench bench;
  EventFd event;
  PlainSource* source = bench.make(event.fd);
  cr_assert_eq(bench.reactor->add(*source), 0);
  constexpr int kRounds = 20000;
  Atomic<int> asked{0}, done{0};
  std::thread writer([&] {
    for (int i = 1; i <= kRounds; ++i) {
      while (asked.load() < i) {
      }
      for (int spin = i % 200; spin > 0; --spin) cpu_pause();
      add_one(event.fd);
    }
  });
  CountingWaker waker;
  for (int i = 1; i <= kRounds; ++i) {
    std::uint64_t value = 0;
    Readiness seen = source->look();
    cr_assert_lt(read(event.fd, &value, sizeof value), 0);
    source->clear(seen, NORIA_READABLE);
    asked.store(i);
    while (source->poll_ready(NORIA_READABLE, &waker.cx, seen) == NORIA_PENDING) {
      cr_assert_geq(bench.reactor->poll(kForEver), 0);
    }
    cr_assert_eq(read(event.fd, &value, sizeof value), 8);
    done.store(i);
  }
  writer.join();
  bench.end(source);
}

Test(Cases, RearmMiss_unpark_at_the_entry_of_the_wait_is_not_missed, .timeout = 60) {
  Bench bench;
  constexpr int kRounds = 50000;
  Atomic<int> asked{0}, told{0};
  std::thread waker([&] {
    for (int i = 1; i <= kRounds; ++i) {
      while (asked.load() < i) {
      }
      for (int spin = i % 300; spin > 0; --spin) cpu_pause();
      told.store(i);
      bench.reactor->unpark();
    }
  });
  for (int i = 1; i <= kRounds; ++i) {
    asked.store(i);
    if (i % 3 == 0) cr_assert_geq(bench.reactor->poll(0), 0);  // one that looks does not take it away
    while (told.load() < i) cr_assert_geq(bench.reactor->poll(kForEver), 0);
  }
  waker.join();
}

Test(Cases, DupFd_description_that_outlives_its_descriptor_makes_no_busy_loop, .timeout = 60) {
  Bench bench;
  int ends[2];
  cr_assert_eq(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
  PlainSource* source = bench.make(ends[0]);
  cr_assert_eq(bench.reactor->add(*source), 0);
  int copy = dup(ends[0]);
  ::close(ends[0]);
  cr_assert_eq(write(ends[1], "x", 1), 1);
  cr_assert_eq(bench.reactor->poll(0), 1, "the kernel still reports it");
  char byte;
  cr_assert_lt(read(source->fd(), &byte, 1), 0);
  cr_assert_eq(errno, EBADF, "a clear error");
  bench.end(source);
  cr_assert_eq(bench.reactor->sources(), 0);
  cr_assert_eq(write(ends[1], "y", 1), 1);
  std::uint64_t begin = monotonic_ns();
  int polls = 0;
  while (monotonic_ns() - begin < 50 * kNsPerMs) {
    cr_assert_eq(bench.reactor->poll(10 * kNsPerMs), 0, "nobody is told of it");
    ++polls;
  }
  cr_assert_leq(polls, 10, "%d polls in 50 ms", polls);

  // The number comes back for something else, and then for the old description.
  int other[2];
  cr_assert_eq(pipe2(other, O_NONBLOCK | O_CLOEXEC), 0);
  cr_assert_eq(other[0], ends[0]);
  PlainSource* next = bench.make(other[0]);
  cr_assert_eq(bench.reactor->add(*next), 0);
  cr_assert_eq(write(ends[1], "z", 1), 1);
  cr_assert_eq(bench.reactor->poll(0), 0, "the old one's event is not the new one's");
  cr_assert_eq(next->look().events, 0);
  cr_assert_eq(write(other[1], "z", 1), 1);
  cr_assert_eq(bench.reactor->poll(0), 1);
  cr_assert(next->look().events & NORIA_READABLE);
  bench.end(next);
  cr_assert_eq(dup2(copy, ends[0]), ends[0]);
  PlainSource* again = bench.make(ends[0]);
  cr_assert_eq(bench.reactor->add(*again), 0, "a registration that was left over is taken over");
  cr_assert_eq(bench.reactor->poll(0), 1);
  cr_assert(again->look().events & NORIA_READABLE);
  bench.end(again);
  for (int fd : {ends[0], ends[1], other[1], copy}) ::close(fd);
}

Test(Cases, DupFd_runtime_sleeps_while_a_duplicate_lives_on, .timeout = 60) {
  on_each_runtime([](Lane& lane) {
    int ends[2];
    cr_assert_eq(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    noria_source* source = nullptr;
    assert_ok(noria_source_new(lane.rt, ends[0], &source), "source_new");
    int copy = dup(ends[0]);
    ::close(ends[0]);
    cr_assert_eq(write(ends[1], "x", 1), 1);
    assert_ok(noria_source_drop(source), "drop");
    noria_metrics before{}, after{};
    before.size = after.size = sizeof before;
    noria_future* sleep = nullptr;
    assert_ok(noria_runtime_metrics(lane.rt, &before), "metrics");
    assert_ok(noria_sleep(lane.rt, 50 * kNsPerMs, &sleep), "sleep");
    assert_ok(lane.await(sleep), "slept");
    assert_ok(noria_runtime_metrics(lane.rt, &after), "metrics");
    cr_assert_leq(after.parks - before.parks, 50, "%llu parks",
                  static_cast<unsigned long long>(after.parks - before.parks));
    ::close(ends[1]);
    ::close(copy);
  });
}

Test(Cases, ClosedFd_descriptor_closed_behind_its_source_is_told_and_harms_no_other, .timeout = 60) {
  on_each_runtime([](Lane& lane) {
    int old_ends[2], ends[2];
    cr_assert_eq(pipe2(old_ends, O_NONBLOCK | O_CLOEXEC), 0);
    noria_source *old_source = nullptr, *source = nullptr;
    noria_future* waiting = nullptr;
    assert_ok(noria_source_new(lane.rt, old_ends[0], &old_source), "source_new");
    assert_ok(noria_source_ready(old_source, NORIA_READABLE, &waiting), "ready");
    ::close(old_ends[0]);
    cr_assert_eq(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    cr_assert_eq(ends[0], old_ends[0], "the number is used again");
    assert_ok(noria_source_new(lane.rt, ends[0], &source), "source_new");
    cr_assert_eq(lane.await(waiting), -EBADF, "the old one is told");
    assert_ok(noria_source_drop(old_source), "drop");
    noria_future* next = nullptr;
    assert_ok(noria_source_ready(source, NORIA_READABLE, &next), "ready");
    cr_assert_eq(write(ends[1], "x", 1), 1);
    assert_ok(lane.await(next), "and the drop of the old one has not deregistered the new one");
    ::close(ends[0]);
    assert_ok(noria_source_close(source), "close of what is closed");
    assert_ok(noria_source_drop(source), "drop");
    for (int fd : {old_ends[1], ends[1]}) ::close(fd);
  });
}

// Threads write to many descriptors as fast as they can, and stop. Whoever sleeps then must have seen all.
Test(Cases, CrossStorm_wakes_that_stop_suddenly_leave_nobody_asleep, .timeout = 120) {
  on_each_runtime([](Lane& lane) {
    constexpr int kSources = 8, kThreads = 4, kRounds = 20;
    constexpr std::uint64_t kWrites = 500;
    EventFd events[kSources];
    noria_source* sources[kSources];
    for (int i = 0; i < kSources; ++i) {
      assert_ok(noria_source_new(lane.rt, events[i].fd, &sources[i]), "source_new");
    }
    for (int round = 0; round < kRounds; ++round) {
      std::vector<noria_task*> tasks;
      for (int i = 0; i < kSources; ++i) {
        tasks.push_back(spawn(lane.rt, [&events, &sources, i, seen = std::uint64_t{0}](const noria_cx* cx) mutable {
          return collect(sources[i], events[i].fd, cx, seen, kThreads * kWrites);
        }));
      }
      std::vector<std::thread> threads;
      for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
          for (std::uint64_t n = 0; n < kWrites * kSources; ++n)
            add_one(events[(n + static_cast<unsigned>(t)) % kSources].fd);
        });
      }
      for (noria_task* task : tasks) cr_assert_eq(lane.join(task).kind, NORIA_JOIN_DONE);
      for (auto& thread : threads) thread.join();
    }
    for (noria_source* source : sources) assert_ok(noria_source_drop(source), "drop");
  });
}

// The stuck poll ends only when the others' I/O, timer and task have run.
Test(Cases, StuckDriver_P4_one_long_poll_delays_neither_io_nor_timers_nor_tasks, .timeout = 60) {
  on_runtime(Lane{"2 workers", 2}, [](Lane& lane) {
    for (int round = 0; round < 20; ++round) {
      EventFd event;
      noria_source* source = nullptr;
      assert_ok(noria_source_new(lane.rt, event.fd, &source), "source_new");
      Atomic<int> ran{0};
      Atomic<bool> stuck{false};
      noria_task* io = spawn(lane.rt, [&, seen = std::uint64_t{0}](const noria_cx* cx) mutable -> int32_t {
        int32_t status = collect(source, event.fd, cx, seen, 1);
        if (status == NORIA_READY) ran.fetch_add(1);
        return status;
      });
      noria_task* timed =
          spawn(lane.rt, [&, sleep = static_cast<noria_future*>(nullptr)](const noria_cx* cx) mutable -> int32_t {
            if (sleep == nullptr) assert_ok(noria_sleep(lane.rt, 2 * kNsPerMs, &sleep), "sleep");
            int32_t status = noria_future_poll(sleep, cx);
            if (status != NORIA_READY) return status;
            assert_ok(noria_future_drop(sleep), "drop");
            ran.fetch_add(1);
            return NORIA_READY;
          });
      noria_task* long_poll = spawn(lane.rt, [&](const noria_cx*) -> int32_t {
        stuck.store(true);
        while (ran.load() < 3) cpu_pause();
        return NORIA_READY;
      });
      while (!stuck.load()) std::this_thread::yield();
      add_one(event.fd);
      noria_task* late = spawn(lane.rt, [&](const noria_cx*) -> int32_t {
        ran.fetch_add(1);
        return NORIA_READY;
      });
      for (noria_task* task : {io, timed, long_poll, late}) lane.join(task);
      assert_ok(noria_source_drop(source), "drop");
    }
  });
}
