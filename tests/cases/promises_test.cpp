// The promises P1 to P11, one test at least for each, by name; P4 has its own file.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <vector>

#include "support/runtime_fixture.hpp"

using namespace noria::test;

namespace {

// A task that another thread may wake at any time: how often it was polled, and whether two polls overlapped.
struct Target {
  std::atomic<int> polling{0};
  std::atomic<int> polls{0};
  std::atomic<int> drops{0};
  std::atomic<std::uint64_t> wanted{0};  // written before a wake
  std::atomic<std::uint64_t> seen{0};    // read in a poll
  std::atomic<bool> end{false};
  noria_waker waker{};
  std::atomic<bool> ready{false};
};

int32_t target_poll(void* state, const noria_cx* cx) {
  auto* self = static_cast<Target*>(state);
  NORIA_CHECK(++self->polling == 1, "P2: two polls of a task at once");
  if (!self->ready) {
    NORIA_OK_CALL(noria_waker_clone(cx->waker, &self->waker));
    self->ready = true;
  }
  self->seen = self->wanted.load();
  ++self->polls;
  --self->polling;
  return self->end ? NORIA_READY : NORIA_PENDING;
}
void target_drop(void* state) {
  auto* self = static_cast<Target*>(state);
  NORIA_CHECK(self->polling == 0, "P2: drop during a poll");
  ++self->drops;
}
const noria_task_vtable kTarget = {sizeof(noria_task_vtable), 0, target_poll, target_drop, nullptr, "target"};

}  // namespace

Test(Promises, P1_a_wake_after_a_poll_began_leads_to_another_poll) {
  on_each_runtime([](Lane& lane) {
    Target target;
    noria_task* task = nullptr;
    NORIA_OK_CALL(noria_spawn(lane.rt, &kTarget, &target, &task));
    lane.until([&] { return target.ready.load(); }, "the first poll");
    std::thread waker([&] {
      for (std::uint64_t i = 1; i <= static_cast<std::uint64_t>(rounds(20000, 1000000)); ++i) {
        target.wanted = i;
        NORIA_OK_CALL(noria_waker_wake_by_ref(&target.waker));
        if (i % 7 != 0) continue;  // else the next wake comes during the poll or before it
        Watchdog watchdog("P1: the poll after a wake");
        while (target.seen != i) std::this_thread::yield();
      }
      target.end = true;
      NORIA_OK_CALL(noria_waker_wake(&target.waker));
    });
    lane.join(task);
    waker.join();
  });
}

Test(Promises, P2_one_poll_at_a_time_and_one_drop_under_a_storm_of_wakes) {
  on_each_runtime([](Lane& lane) {
    for (int round = 0; round < rounds(60, 3000); ++round) {
      Target target;
      noria_task* task = nullptr;
      NORIA_OK_CALL(noria_spawn(lane.rt, &kTarget, &target, &task));
      lane.until([&] { return target.ready.load(); }, "the first poll");
      std::vector<std::thread> threads;
      for (int t = 0; t < 3; ++t) {
        threads.emplace_back([&, t] {
          for (int i = 0; i < 50; ++i) NORIA_OK_CALL(noria_waker_wake_by_ref(&target.waker));
          if (t == 0 && round % 2 == 0) NORIA_OK_CALL(noria_task_abort(task));
          if (t == 1) target.end = true;
          NORIA_OK_CALL(noria_waker_wake_by_ref(&target.waker));
        });
      }
      for (std::thread& thread : threads) thread.join();
      NORIA_OK_CALL(noria_waker_wake_by_ref(&target.waker));
      lane.wait_for(task);
      NORIA_CHECK(target.drops == 1, "P2: %d drops", target.drops.load());
      NORIA_OK_CALL(noria_waker_wake(&target.waker));
      NORIA_OK_CALL(noria_task_detach(task));
      NORIA_CHECK(target.drops == 1, "P2: %d drops", target.drops.load());
    }
  });
}

Test(Promises, P3_wake_at_any_time_and_clone_without_allocation) {
  on_each_runtime([](Lane& lane) {
    Target target;
    noria_task* task = nullptr;
    NORIA_OK_CALL(noria_spawn(lane.rt, &kTarget, &target, &task));
    lane.until([&] { return target.ready.load(); }, "the first poll");
    auto allocations = [] {
      noria_counts counts{};
      counts.size = sizeof counts;
      NORIA_OK_CALL(noria_live_counts(&counts));
      return counts.allocations;
    };
    std::int64_t before = allocations();
    std::vector<noria_waker> clones(10000);
    for (noria_waker& clone : clones) NORIA_OK_CALL(noria_waker_clone(&target.waker, &clone));
    NORIA_CHECK(allocations() == before, "P3: clones allocate");
    NORIA_STATUS(noria_waker_will_wake(&clones[0], &clones[1]), 1);
    target.end = true;
    NORIA_OK_CALL(noria_waker_wake(&clones[0]));
    lane.wait_for(task);
    NORIA_OK_CALL(noria_waker_wake(&clones[1]));  // after completion
    NORIA_OK_CALL(noria_task_detach(task));
    NORIA_OK_CALL(noria_waker_wake_by_ref(&clones[2]));  // after the handle is gone
    NORIA_OK_CALL(noria_runtime_shutdown(lane.rt, kSecond, nullptr));
    NORIA_OK_CALL(noria_waker_wake_by_ref(&clones[2]));  // after shutdown
    for (std::size_t i = 2; i < clones.size(); ++i)
      NORIA_OK_CALL(i % 2 == 0 ? noria_waker_wake(&clones[i]) : noria_waker_drop(&clones[i]));
    NORIA_OK_CALL(noria_waker_drop(&target.waker));
    NORIA_CHECK(target.drops == 1, "P2: %d drops", target.drops.load());
  });
}

Test(Promises, P5_every_ready_task_is_polled_within_a_bounded_number_of_polls) {
  on_runtimes(kCurrent | kOne, [](Lane& lane) {
    std::atomic<bool> end{false};
    std::atomic<std::uint64_t> polls{0};
    std::vector<noria_task*> busy;
    // A pair that wakes each other through the LIFO slot, and tasks that yield: none may starve who comes from outside.
    for (int i = 0; i < 20; ++i) {
      busy.push_back(spawn(lane.rt, [&](const noria_cx* cx) -> int32_t {
        ++polls;
        return end ? NORIA_READY : noria_yield(cx);
      }));
    }
    if (lane.current_thread()) NORIA_OK_CALL(noria_runtime_turn(lane.rt, 0, nullptr));
    for (int i = 0; i < 50; ++i) {
      std::atomic<std::uint64_t> ran_at{0};
      std::uint64_t before = polls;
      noria_task* guest =
          spawn(lane.rt, [&](const noria_cx*) -> int32_t { return ran_at = polls.load(), NORIA_READY; });
      std::uint64_t queued = polls;
      lane.join(guest);
      NORIA_CHECK(ran_at <= queued + 1000, "P5: polled after %llu polls of others",
                  static_cast<unsigned long long>(ran_at - before));
    }
    end = true;
    for (noria_task* task : busy) lane.join(task);
  });
}

// No task is overtaken much, also where the queue is longer than the ring (256) and than what it overflows into (4,096): of
// others' polls only those that the look at the inject queue brings forward come between two polls of a task.
Test(Promises, P5_a_backlog_of_any_length_keeps_its_order) {
  on_runtimes(kCurrent | kOne, [](Lane& lane) {
    for (std::size_t count : {1000u, 10000u}) {
      std::vector<std::uint32_t> log;  // by one worker: who was polled
      std::vector<noria_task*> tasks;
      std::size_t begun = 0;
      for (std::uint32_t i = 0; i < count; ++i) {
        tasks.push_back(spawn(lane.rt, [&, i, first = true](const noria_cx* cx) mutable -> int32_t {
          if (std::exchange(first, false)) ++begun;
          if (begun == count) log.push_back(i);
          return log.size() > 5 * count ? NORIA_READY : noria_yield(cx);
        }));
      }
      for (noria_task* task : tasks) lane.join(task);
      std::vector<std::size_t> last(count, 0);
      for (std::size_t at = 0; at < 4 * count; ++at) {
        std::size_t gap = at - std::exchange(last[log[at]], at);
        NORIA_CHECK(gap <= count + count / 32, "P5: %zu polls between two of a task, of %zu", gap, count);
      }
    }
  });
}

Test(Promises, P5_a_poll_has_a_budget_of_128) {
  on_each_runtime([](Lane& lane) {
    std::vector<int> taken;
    lane.join(spawn(lane.rt, [&](const noria_cx* cx) -> int32_t {
      int ready = 0;
      NORIA_STATUS(noria_budget_spent(), 0);
      while (noria_budget_poll(cx) == NORIA_READY) ++ready;
      NORIA_STATUS(noria_budget_spent(), 1);
      taken.push_back(ready);
      return taken.size() < 3 ? NORIA_PENDING : NORIA_READY;  // the wake is arranged
    }));
    for (int ready : taken) cr_assert_eq(ready, 128);
    lane.join(spawn(lane.rt, [&](const noria_cx* cx) -> int32_t {
      for (int i = 0; i < 1000; ++i) {
        NORIA_STATUS(noria_budget_poll(cx), NORIA_READY);
        NORIA_OK_CALL(noria_budget_restore());  // a PENDING gives it back
      }
      return NORIA_READY;
    }));
    ForeignWaker outside;
    for (int i = 0; i < 1000; ++i) NORIA_STATUS(noria_budget_poll(outside.cx()), NORIA_READY);
    NORIA_STATUS(noria_budget_spent(), 0);
  });
}

Test(Promises, P6_a_timer_never_fires_early) {
  on_each_runtime([](Lane& lane) {
    for (int i = 0; i < 30; ++i) {
      std::uint64_t asked = static_cast<std::uint64_t>(i * 317'113 + 1), before = 0, after = 0;
      noria_future* sleep = nullptr;
      NORIA_OK_CALL(noria_now(lane.rt, &before));
      NORIA_OK_CALL(noria_sleep(lane.rt, asked, &sleep));
      cr_assert_eq(lane.await(sleep), NORIA_OK);
      NORIA_OK_CALL(noria_now(lane.rt, &after));
      NORIA_CHECK(after - before >= asked, "P6: %llu ns early",
                  static_cast<unsigned long long>(asked - (after - before)));
    }
    noria_future* never = nullptr;
    NORIA_OK_CALL(noria_sleep_until(lane.rt, UINT64_MAX, &never));
    lane.inside([] {});
    NORIA_STATUS(noria_future_result(never, nullptr, 0), -EAGAIN);
    NORIA_OK_CALL(noria_future_drop(never));
  });
}

Test(Promises, P7_shutdown_drops_every_task_and_cancels_every_future) {
  on_each_runtime([](Lane& lane) {
    std::vector<Target> targets(300);
    std::vector<noria_future*> sleeps(50);
    for (Target& target : targets) NORIA_OK_CALL(noria_spawn(lane.rt, &kTarget, &target, nullptr));
    for (noria_future*& sleep : sleeps) NORIA_OK_CALL(noria_sleep(lane.rt, 1000 * kSecond, &sleep));
    lane.until([&] { return targets.back().ready.load(); }, "the first polls");
    noria_shutdown_report report{};
    report.size = sizeof report;
    NORIA_OK_CALL(noria_runtime_shutdown(lane.rt, 5 * kSecond, &report));
    cr_assert_eq(report.timed_out, 0);
    cr_assert_eq(report.tasks_dropped, targets.size());
    cr_assert_eq(report.futures_cancelled, sleeps.size());
    for (Target& target : targets) {
      NORIA_CHECK(target.drops == 1, "P7: %d drops", target.drops.load());
      if (target.ready) NORIA_OK_CALL(noria_waker_wake(&target.waker));
    }
    for (noria_future* sleep : sleeps) {
      NORIA_STATUS(noria_future_result(sleep, nullptr, 0), -ECANCELED);
      NORIA_OK_CALL(noria_future_drop(sleep));
    }
  });
}

Test(Promises, P8_dropping_a_future_never_blocks_and_loses_nothing) {
  on_each_runtime([](Lane& lane) {
    // A dropped join leaves the task's outcome and output to the next one.
    Target target;
    noria_task* task = nullptr;
    NORIA_OK_CALL(noria_spawn(lane.rt, &kTarget, &target, &task));
    lane.until([&] { return target.ready.load(); }, "the first poll");
    for (int i = 0; i < 100; ++i) {
      noria_future* join = nullptr;
      ForeignWaker waker;
      NORIA_OK_CALL(noria_task_join(task, &join));
      NORIA_STATUS(noria_future_poll(join, waker.cx()), NORIA_PENDING);
      NORIA_OK_CALL(noria_future_drop(join));
      NORIA_CHECK(waker.alive() == 0, "P8: a dropped future keeps a waker");
    }
    target.end = true;
    NORIA_OK_CALL(noria_waker_wake(&target.waker));
    cr_assert_eq(lane.join(task).kind, NORIA_JOIN_DONE);
  });
}

Test(Promises, P9_a_bad_caller_gets_an_error_code) {
  on_each_runtime([](Lane& lane) {
    noria_task* task = nullptr;
    void* room = nullptr;
    NORIA_STATUS(noria_task_new(lane.rt, &kTarget, 8, 5, &room, &task), -EINVAL);
    NORIA_STATUS(noria_task_new(nullptr, &kTarget, 8, 8, &room, &task), -NORIA_ENOCONTEXT);
    NORIA_STATUS(noria_runtime_turn(lane.rt, 0, nullptr), lane.current_thread() ? NORIA_OK : -NORIA_EWRONGKIND);
    noria_waker empty{};
    noria_cx cx{&empty, {0, 0, 0}};
    noria_cx none{nullptr, {0, 0, 0}};
    for (const noria_cx* bad : {static_cast<const noria_cx*>(nullptr), static_cast<const noria_cx*>(&cx),
                                static_cast<const noria_cx*>(&none)}) {
      NORIA_STATUS(noria_yield(bad), -EINVAL);
      NORIA_STATUS(noria_cx_wake(bad), -EINVAL);
      NORIA_STATUS(noria_budget_poll(bad), -EINVAL);
    }
    NORIA_OK_CALL(noria_runtime_shutdown(lane.rt, kSecond, nullptr));
    NORIA_STATUS(noria_spawn(lane.rt, &kTarget, nullptr, nullptr), -NORIA_ESHUTDOWN);
    noria_future* future = nullptr;
    NORIA_STATUS(noria_sleep(lane.rt, 1, &future), -NORIA_ESHUTDOWN);
  });
}

Test(Promises, P10_no_descriptors_is_told_and_nothing_leaks) {
  rlimit before{}, none{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  for (int spare = 0; spare < 4; ++spare) {
    int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(next);
    none = before;
    none.rlim_cur = static_cast<rlim_t>(next + spare);
    ::setrlimit(RLIMIT_NOFILE, &none);
    noria_runtime* rt = nullptr;
    int32_t status = noria_runtime_new(nullptr, &rt);
    ::setrlimit(RLIMIT_NOFILE, &before);
    NORIA_CHECK(status == NORIA_OK || status == -EMFILE, "%s", noria_error_name(status));
    if (spare == 0) NORIA_STATUS(status, -EMFILE);
    if (status == NORIA_OK) NORIA_OK_CALL(noria_runtime_free(rt));
    assert_nothing_alive("P10: descriptors at their limit");
  }
}

Test(Promises, P10_signals_that_interrupt_system_calls_change_nothing) {
  struct sigaction action {};
  action.sa_handler = [](int) {};  // without SA_RESTART
  ::sigaction(SIGUSR1, &action, nullptr);
  on_each_runtime([](Lane& lane) {
    std::atomic<bool> end{false};
    std::thread storm([&] {
      while (!end) {
        ::kill(::getpid(), SIGUSR1);
        timespec time{0, 100'000};
        ::nanosleep(&time, nullptr);
      }
    });
    for (int i = 0; i < 20; ++i) {
      noria_future* sleep = nullptr;
      std::uint64_t before = 0, after = 0;
      NORIA_OK_CALL(noria_now(lane.rt, &before));
      NORIA_OK_CALL(noria_sleep(lane.rt, 3 * kMilli, &sleep));
      cr_assert_eq(lane.await(sleep), NORIA_OK);
      NORIA_OK_CALL(noria_now(lane.rt, &after));
      cr_assert_geq(after - before, 3 * kMilli);
    }
    end = true;
    storm.join();
  });
}

Test(Promises, P11_handles_that_outlive_their_runtime_are_accounted_for) {
  for (std::uint32_t kind : {1u, 2u}) {
    noria_runtime_options options{};
    options.size = sizeof options;
    options.kind = kind;
    noria_runtime* rt = nullptr;
    NORIA_OK_CALL(noria_runtime_new(&options, &rt));
    Target target;
    noria_task* task = nullptr;
    noria_task* unstarted = make_task(rt, [](const noria_cx*) -> int32_t { return NORIA_READY; });
    noria_future* join = nullptr;
    noria_future* sleep = nullptr;
    NORIA_OK_CALL(noria_spawn(rt, &kTarget, &target, &task));
    NORIA_OK_CALL(noria_task_join(task, &join));
    NORIA_OK_CALL(noria_sleep(rt, kSecond, &sleep));
    NORIA_OK_CALL(noria_runtime_free(rt));
    noria_counts counts{};
    counts.size = sizeof counts;
    NORIA_OK_CALL(noria_live_counts(&counts));
    NORIA_CHECK(counts.tasks == 2 && counts.futures == 2, "P11: %lld tasks, %lld futures",
                static_cast<long long>(counts.tasks), static_cast<long long>(counts.futures));
    NORIA_STATUS(noria_task_start(unstarted), -NORIA_ESHUTDOWN);
    NORIA_OK_CALL(noria_task_discard(unstarted));
    NORIA_OK_CALL(noria_future_drop(join));
    NORIA_OK_CALL(noria_future_drop(sleep));
    NORIA_OK_CALL(noria_task_detach(task));
    if (target.ready) NORIA_OK_CALL(noria_waker_drop(&target.waker));
    assert_nothing_alive("handles that outlive their runtime");
  }
}
