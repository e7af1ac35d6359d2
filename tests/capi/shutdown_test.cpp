// The end of a runtime (P7), from everywhere and in every state.
#include <criterion/criterion.h>

#include <cstring>
#include <vector>

#include "support/runtime_fixture.hpp"

using namespace noria::test;

namespace {

noria_runtime* make(std::uint32_t workers) {
  noria_runtime_options options = lane_options(Lane{"", workers});
  noria_runtime* rt = nullptr;
  NORIA_OK_CALL(noria_runtime_new(&options, &rt));
  return rt;
}

noria_shutdown_report blank() {
  noria_shutdown_report report{};
  report.size = sizeof report;
  return report;
}

int32_t pending(void*, const noria_cx*) { return NORIA_PENDING; }

}  // namespace

Test(Shutdown, Report_counts_what_was_dropped) {
  on_each_runtime([](Lane& lane) {
    for (int i = 0; i < 10; ++i) spawn_detached(lane.rt, [](const noria_cx*) -> int32_t { return NORIA_PENDING; });
    lane.inside([] {});
    noria_shutdown_report report = blank();
    NORIA_OK_CALL(noria_runtime_shutdown(lane.rt, kSecond, &report));
    cr_assert(report.timed_out == 0 && report.polls_running == 0 && report.jobs_running == 0);
    cr_assert_eq(report.tasks_dropped, 10);
    cr_assert_str_eq(report.names, "");
    noria_shutdown_report again = blank();
    NORIA_OK_CALL(noria_runtime_shutdown(lane.rt, 0, &again));
    cr_assert_eq(std::memcmp(&report, &again, sizeof report), 0, "a second call reports alike");
    again.size = 8;
    NORIA_OK_CALL(noria_runtime_shutdown(lane.rt, 0, &again));
    again.size = 2;
    NORIA_STATUS(noria_runtime_shutdown(lane.rt, 0, &again), -EINVAL);
  });
}

Test(Shutdown, New_work_is_refused_after_it) {
  on_each_runtime([](Lane& lane) {
    noria_strand* strand = nullptr;
    noria_task* unstarted = make_task(lane.rt, [](const noria_cx*) -> int32_t { return NORIA_READY; });
    NORIA_OK_CALL(noria_runtime_shutdown(lane.rt, kSecond, nullptr));
    const noria_task_vtable vtable = {sizeof vtable, 0, pending, nullptr, nullptr, ""};
    noria_task* task = nullptr;
    noria_future* future = nullptr;
    void* room = nullptr;
    NORIA_STATUS(noria_spawn(lane.rt, &vtable, nullptr, nullptr), -NORIA_ESHUTDOWN);
    NORIA_STATUS(noria_spawn_local(lane.rt, &vtable, nullptr, nullptr), -NORIA_ESHUTDOWN);
    NORIA_STATUS(noria_task_new(lane.rt, &vtable, 8, 8, &room, &task), -NORIA_ESHUTDOWN);
    NORIA_STATUS(noria_task_start(unstarted), -NORIA_ESHUTDOWN);
    NORIA_STATUS(noria_spawn_blocking(
                     lane.rt, [](void*) { return 0; }, nullptr, nullptr, &future),
                 -NORIA_ESHUTDOWN);
    NORIA_STATUS(noria_strand_new(lane.rt, &strand), -NORIA_ESHUTDOWN);
    NORIA_STATUS(noria_runtime_block_on(lane.rt, &vtable, nullptr, nullptr), -NORIA_ESHUTDOWN);
    if (lane.current_thread()) NORIA_STATUS(noria_runtime_turn(lane.rt, 0, nullptr), -NORIA_ESHUTDOWN);
    NORIA_OK_CALL(noria_task_discard(unstarted));
  });
}

Test(Shutdown, Stuck_poll_is_waited_for_named_and_left_its_reference) {
  for (std::uint32_t workers : {1u, 2u}) {
    Watchdog watchdog("shutdown beside a stuck poll");
    noria_runtime* rt = make(workers);
    Latch began, end;
    noria_task* stuck = make_task(rt, [&](const noria_cx*) -> int32_t {
      began.count_down();
      end.wait("the end of the stuck poll");
      return NORIA_PENDING;
    });
    NORIA_OK_CALL(noria_task_set_name(stuck, "the stuck one"));
    NORIA_OK_CALL(noria_task_start(stuck));
    NORIA_OK_CALL(noria_task_detach(stuck));
    began.wait("the stuck poll");
    std::atomic<int> drops{0};
    for (int i = 0; i < 10; ++i) {
      spawn_detached(rt, [guard = std::shared_ptr<void>(nullptr, [&](void*) { ++drops; })](const noria_cx*) -> int32_t {
        return NORIA_PENDING;
      });
    }
    noria_shutdown_report report = blank();
    NORIA_STATUS(noria_runtime_shutdown(rt, 20 * kMilli, &report), -ETIMEDOUT);
    cr_assert_eq(report.timed_out, 1);
    cr_assert_eq(report.polls_running, 1);
    cr_assert_str_eq(report.names, "the stuck one\n");
    NORIA_OK_CALL(noria_runtime_release(rt));
    end.count_down();
    await_nothing_alive("a poll that outlived its runtime");
    cr_assert_eq(drops, 10);
  }
}

// The output of a local task whose handle went elsewhere is dropped between two polls of its own worker.
Test(Shutdown, P7_drop_of_an_output_that_was_sent_back_is_named_when_it_outlasts_the_time_out) {
  struct Drop {
    Latch began, end;
  };
  static const noria_task_vtable kStuckDrop = {sizeof(noria_task_vtable),
                                               0,
                                               [](void*, const noria_cx*) -> int32_t { return NORIA_READY; },
                                               [](void* state) {
                                                 static_cast<Drop*>(state)->began.count_down();
                                                 static_cast<Drop*>(state)->end.wait("the end of the test");
                                               },
                                               [](void*, void*) {},
                                               "stuck drop"};
  for (std::uint32_t workers : {1u, 2u}) {
    Watchdog watchdog("a shutdown beside a drop that is stuck");
    Drop drop;
    noria_runtime* rt = make(workers);
    Lane lane{"", workers, rt};
    std::atomic<noria_task*> local{nullptr};
    lane.inside([&] {
      noria_task* task = nullptr;
      NORIA_OK_CALL(noria_spawn_local(rt, &kStuckDrop, &drop, &task));
      local = task;
    });
    while (noria_task_is_complete(local) != 1) std::this_thread::yield();
    NORIA_OK_CALL(noria_task_detach(local));
    drop.began.wait("the output at home");
    noria_shutdown_report report = blank();
    NORIA_STATUS(noria_runtime_shutdown(rt, 60 * kMilli, &report), -ETIMEDOUT);
    cr_assert_eq(report.polls_running, 1);
    cr_assert_str_eq(report.names, "stuck drop\n");
    drop.end.count_down();
    NORIA_OK_CALL(noria_runtime_shutdown(rt, kSecond, nullptr));
    NORIA_OK_CALL(noria_runtime_release(rt));
    await_nothing_alive("ended beside a drop");
  }
}

Test(Shutdown, Poll_that_ends_in_time_is_no_fault) {
  for (int i = 0; i < 50; ++i) {
    noria_runtime* rt = make(2);
    Latch began;
    std::atomic<bool> end{false};
    spawn_detached(rt, [&](const noria_cx*) -> int32_t {
      began.count_down();
      while (!end) std::this_thread::yield();
      return NORIA_PENDING;
    });
    began.wait("the poll");
    std::thread ender([&] { end = true; });
    NORIA_OK_CALL(noria_runtime_shutdown(rt, 10 * kSecond, nullptr));
    ender.join();
    NORIA_OK_CALL(noria_runtime_release(rt));
    assert_nothing_alive("a poll that ended in time");
  }
}

Test(Shutdown, From_inside_it_starts_and_a_reaper_finishes) {
  for (std::uint32_t workers : {1u, 2u, 4u}) {
    noria_runtime* rt = make(workers);
    Latch done;
    spawn_detached(rt, [&](const noria_cx*) -> int32_t {
      noria_shutdown_report report = blank();
      NORIA_STATUS(noria_runtime_shutdown(rt, kSecond, &report), NORIA_PENDING);
      NORIA_STATUS(noria_runtime_shutdown(rt, kSecond, nullptr), NORIA_PENDING);
      done.count_down();
      return NORIA_READY;
    });
    done.wait("a shutdown from inside");
    NORIA_OK_CALL(noria_runtime_shutdown(rt, 5 * kSecond, nullptr));
    NORIA_OK_CALL(noria_runtime_release(rt));
    await_nothing_alive("a shutdown from inside");
  }
}

Test(Shutdown, Inside_a_current_thread_runtime_it_ends_when_the_turn_ends) {
  on_runtime(kCurrentThread, [](Lane& lane) {
    spawn_detached(lane.rt, [&](const noria_cx*) -> int32_t {
      NORIA_STATUS(noria_runtime_shutdown(lane.rt, 0, nullptr), NORIA_PENDING);
      return NORIA_PENDING;
    });
    noria_join_result how{};
    const noria_task_vtable vtable = {sizeof vtable, 0, pending, nullptr, nullptr, ""};
    Watchdog watchdog("block_on that a shutdown ends");
    NORIA_OK_CALL(noria_runtime_block_on(lane.rt, &vtable, nullptr, &how));
    cr_assert_eq(how.kind, NORIA_JOIN_ABORTED);
    NORIA_STATUS(noria_runtime_turn(lane.rt, 0, nullptr), -NORIA_ESHUTDOWN);
  });
}

Test(Shutdown, Block_on_in_another_thread_is_ended_as_aborted) {
  on_runtimes(kMulti, [](Lane& lane) {
    Latch polled;
    noria_join_result how{};
    std::thread blocked([&] {
      auto body = [&](const noria_cx*) -> int32_t { return polled.count_down(), NORIA_PENDING; };
      NORIA_OK_CALL(noria_runtime_block_on(lane.rt, &kBorrowed<decltype(body)>, &body, &how));
    });
    polled.wait("the poll of block_on");
    NORIA_OK_CALL(noria_runtime_shutdown(lane.rt, kSecond, nullptr));
    blocked.join();
    cr_assert_eq(how.kind, NORIA_JOIN_ABORTED);
  });
}

// One that takes the runtime down and then waits anew for what it has left running would take twice as long.
Test(Shutdown, P7_current_thread_runtime_is_ended_within_the_time_out) {
  for (const Lane& kind : {kCurrentThread, kOneWorker}) {
    noria_runtime* rt = make(kind.workers);
    Latch began, end;
    std::pair<Latch*, Latch*> both{&began, &end};
    noria_future* job = nullptr;
    NORIA_OK_CALL(noria_spawn_blocking(
        rt,
        [](void* arg) {
          auto* latches = static_cast<std::pair<Latch*, Latch*>*>(arg);
          latches->first->count_down();
          latches->second->wait("the end of the job");
          return 0;
        },
        nullptr, &both, &job));
    began.wait("the job");
    timespec before{}, after{};
    ::clock_gettime(CLOCK_MONOTONIC, &before);
    NORIA_STATUS(noria_runtime_shutdown(rt, kSecond, nullptr), -ETIMEDOUT);
    ::clock_gettime(CLOCK_MONOTONIC, &after);
    long elapsed_ms = (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1'000'000;
    cr_assert(elapsed_ms >= 1000 && elapsed_ms < 1900, "%s: %ld ms for a time-out of 1 s", kind.name, elapsed_ms);
    end.count_down();
    NORIA_OK_CALL(noria_future_drop(job));
    NORIA_OK_CALL(noria_runtime_release(rt));
    await_nothing_alive("a job that outlasted the end");
  }
}

Test(Shutdown, P7_drop_of_a_local_task_that_does_not_end_is_named) {
  noria_runtime* rt = make(1);
  Latch began, end, dropped;
  struct Slow {
    Latch *began, *end, *dropped;
  } slow{&began, &end, &dropped};
  static const noria_task_vtable kSlow = {sizeof(noria_task_vtable),
                                          0,
                                          pending,
                                          [](void* state) {
                                            auto* self = static_cast<Slow*>(state);
                                            self->began->count_down();
                                            self->end->wait("the end of the drop");
                                            self->dropped->count_down();
                                          },
                                          nullptr,
                                          "slow"};
  Latch made;
  spawn_detached(rt, [&](const noria_cx*) -> int32_t {
    NORIA_OK_CALL(noria_spawn_local(rt, &kSlow, &slow, nullptr));
    made.count_down();
    return NORIA_READY;
  });
  made.wait("the local task");
  Watchdog watchdog("a shutdown beside a drop that does not end");
  noria_shutdown_report report = blank();
  NORIA_STATUS(noria_runtime_shutdown(rt, 0, &report), -ETIMEDOUT);
  cr_assert_eq(report.polls_running, 1);
  cr_assert_str_eq(report.names, "drop of local tasks\n");
  began.wait("the drop");
  NORIA_OK_CALL(noria_runtime_release(rt));
  end.count_down();
  dropped.wait("the end of the drop");
  await_nothing_alive("a drop that outlasted the end");
}

Test(Shutdown, From_several_threads_at_once) {
  for (int i = 0; i < rounds(50, 2000); ++i) {
    noria_runtime* rt = make(2);
    for (int t = 0; t < 20; ++t) spawn_detached(rt, [](const noria_cx* cx) -> int32_t { return noria_yield(cx); });
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&] { NORIA_OK_CALL(noria_runtime_shutdown(rt, 10 * kSecond, nullptr)); });
    for (std::thread& thread : threads) thread.join();
    NORIA_OK_CALL(noria_runtime_release(rt));
    assert_nothing_alive("several shutdowns");
  }
}

Test(Shutdown, Spawns_that_race_with_it_are_refused_or_dropped) {
  for (int i = 0; i < rounds(200, 10000); ++i) {
    noria_runtime* rt = make(1 + i % 2);
    std::atomic<int> spawned{0}, dropped{0};
    std::atomic<bool> end{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&] {
        noria_task_vtable vtable = {
            sizeof vtable, 0, pending, [](void* state) { ++*static_cast<std::atomic<int>*>(state); }, nullptr, ""};
        static thread_local noria_task_vtable kept;
        kept = vtable;
        while (!end) {
          int32_t status = noria_spawn(rt, &kept, &dropped, nullptr);
          if (status == -NORIA_ESHUTDOWN) break;
          NORIA_OK_CALL(status);
          ++spawned;
        }
        while (!end) std::this_thread::yield();
      });
    }
    while (spawned < 20) std::this_thread::yield();
    NORIA_OK_CALL(noria_runtime_shutdown(rt, 10 * kSecond, nullptr));
    end = true;
    for (std::thread& thread : threads) thread.join();
    NORIA_OK_CALL(noria_runtime_release(rt));
    NORIA_CHECK(spawned == dropped, "P7: %d spawned, %d dropped", spawned.load(), dropped.load());
    assert_nothing_alive("spawns beside a shutdown");
  }
}

Test(Shutdown, Wakes_that_race_with_it_lose_no_task) {
  for (int i = 0; i < rounds(200, 10000); ++i) {
    noria_runtime* rt = make(1 + i % 2);
    constexpr int kTasks = 8;
    KeptWaker kept[kTasks];
    std::atomic<int> ready{0}, drops{0};
    for (KeptWaker& one : kept) {
      spawn_detached(
          rt, [&, guard = std::shared_ptr<void>(nullptr, [&](void*) { ++drops; })](const noria_cx* cx) -> int32_t {
            if (!one.kept()) {
              one.keep(cx);
              ++ready;
            }
            return NORIA_PENDING;
          });
    }
    while (ready < kTasks) std::this_thread::yield();
    std::atomic<bool> end{false};
    std::thread waker([&] {
      while (!end)
        for (KeptWaker& one : kept) one.wake_by_ref();
    });
    NORIA_OK_CALL(noria_runtime_shutdown(rt, 10 * kSecond, nullptr));
    end = true;
    waker.join();
    for (KeptWaker& one : kept) one.drop();
    NORIA_OK_CALL(noria_runtime_release(rt));
    NORIA_CHECK(drops == kTasks, "P7: %d of %d tasks dropped", drops.load(), kTasks);
    assert_nothing_alive("wakes beside a shutdown");
  }
}

Test(Shutdown, Current_thread_runtime_is_ended_by_its_owner_if_it_has_local_tasks) {
  on_runtime(kCurrentThread, [](Lane& lane) {
    noria_task* local = nullptr;
    lane.inside([&] { local = spawn_local(lane.rt, [](const noria_cx*) -> int32_t { return NORIA_PENDING; }); });
    std::thread([&] {
      NORIA_STATUS(noria_runtime_shutdown(lane.rt, 0, nullptr), -NORIA_EWRONGTHREAD);
      NORIA_STATUS(noria_runtime_free(lane.rt), -NORIA_EWRONGTHREAD);
    }).join();
    lane.inside([] {});
    NORIA_OK_CALL(noria_task_detach(local));
  });
  Lane lane = kCurrentThread;
  noria_runtime_options options = lane_options(lane);
  NORIA_OK_CALL(noria_runtime_new(&options, &lane.rt));
  lane.inside([] {});
  std::thread([&] { NORIA_OK_CALL(noria_runtime_free(lane.rt)); }).join();
  assert_nothing_alive("ended by another thread");
}
