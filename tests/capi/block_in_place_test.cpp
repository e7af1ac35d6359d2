// noria_block_in_place: the worker's queue goes on elsewhere while its thread blocks.
#include <criterion/criterion.h>

#include <memory>

#include "support/runtime_fixture.hpp"

using namespace noria::test;

namespace {

// Runs a callable through noria_block_in_place.
template <typename F>
int32_t in_place(F&& body, int32_t* result = nullptr) {
  return noria_block_in_place(
      [](void* arg) -> int32_t {
        (*static_cast<std::remove_reference_t<F>*>(arg))();
        return 17;
      },
      &body, result);
}

}  // namespace

Test(BlockInPlace, Outside_of_a_worker_it_is_a_plain_call) {
  int32_t result = 0;
  bool ran = false;
  NORIA_OK_CALL(in_place([&] { ran = true; }, &result));
  cr_assert(ran && result == 17);
}

Test(BlockInPlace, What_is_queued_behind_the_blocking_poll_runs_meanwhile) {
  on_runtimes(kMulti, [](Lane& lane) {
    for (int round = 0; round < 20; ++round) {
      noria_join_result how = lane.join(spawn(lane.rt, [&](const noria_cx*) -> int32_t {
        Latch latch(3);
        for (int i = 0; i < 3; ++i)
          spawn_detached(lane.rt, [&](const noria_cx*) -> int32_t { return latch.count_down(), NORIA_READY; });
        int32_t result = 0;
        NORIA_OK_CALL(in_place([&] { latch.wait("tasks of a worker that blocks in place"); }, &result));
        return result == 17 ? NORIA_READY : -EIO;
      }));
      cr_assert_eq(how.kind, NORIA_JOIN_DONE);
    }
  });
}

Test(BlockInPlace, The_task_goes_on_and_may_block_again) {
  on_runtimes(kMulti, [](Lane& lane) {
    auto body = [polls = 0](const noria_cx* cx) mutable -> int32_t {
      NORIA_OK_CALL(in_place([] {}));
      NORIA_OK_CALL(in_place([] {}));
      return ++polls < 10 ? noria_yield(cx) : NORIA_READY;
    };
    noria_task* tasks[8];
    for (noria_task*& task : tasks) task = spawn(lane.rt, body);
    for (noria_task* task : tasks) cr_assert_eq(lane.join(task).kind, NORIA_JOIN_DONE);
  });
}

Test(BlockInPlace, It_is_refused_where_the_thread_cannot_be_spared) {
  on_each_runtime([](Lane& lane) {
    auto refused = [] { NORIA_STATUS(in_place([] {}), -NORIA_EWRONGKIND); };
    if (lane.current_thread()) return lane.inside(refused);
    noria_task* local = nullptr;
    lane.inside(
        [&] { local = spawn_local(lane.rt, [&](const noria_cx*) -> int32_t { return refused(), NORIA_READY; }); });
    lane.join(local);
    noria_strand* strand = nullptr;
    NORIA_OK_CALL(noria_strand_new(lane.rt, &strand));
    lane.join(spawn_on(strand, [&](const noria_cx*) -> int32_t { return refused(), NORIA_READY; }));
    NORIA_OK_CALL(noria_strand_drop(strand));
  });
}

Test(BlockInPlace, Throwing_function_is_told) {
  on_runtimes(kMulti, [](Lane& lane) {
    lane.inside([] {
      int32_t result = 0;
      NORIA_OK_CALL(in_place([] { throw 1; }, &result));
      NORIA_CHECK(result == -NORIA_ETHROWN, "result %d", result);
    });
  });
}

// Frozen time stands still while a poll runs, also while it blocks and after that.
Test(BlockInPlace, P6_frozen_time_does_not_jump_before_the_poll_ends) {
  noria_runtime_options options{};
  options.clock_paused = 1;
  on_runtimes(
      kOne | kTwo,
      [](Lane& lane) {
        noria_future* hour = nullptr;
        std::atomic<bool> end{false};
        noria_task* sleeper = spawn(lane.rt, [&](const noria_cx* cx) -> int32_t {  // something to jump to
          for (;;) {
            if (hour != nullptr && noria_future_poll(hour, cx) == NORIA_PENDING) return NORIA_PENDING;
            if (hour != nullptr) NORIA_OK_CALL(noria_future_drop(std::exchange(hour, nullptr)));
            if (end) return NORIA_READY;
            NORIA_OK_CALL(noria_sleep(lane.rt, 3600 * kSecond, &hour));
          }
        });
        auto now = [&] {
          std::uint64_t now_ns = 0;
          NORIA_OK_CALL(noria_now(lane.rt, &now_ns));
          return now_ns;
        };
        for (int i = 0; i < rounds(100, 2000); ++i) {
          lane.join(spawn(lane.rt, [&](const noria_cx*) -> int32_t {
            std::uint64_t began_ns = now();
            auto same = [&](const char* when) {
              for (int look = 0; look < 1000; ++look) NORIA_CHECK(now() == began_ns, "P6: frozen time jumped %s", when);
            };
            int32_t result = 0;
            NORIA_OK_CALL(in_place([&] { same("in block_in_place"); }, &result));
            same("behind block_in_place");
            return NORIA_READY;
          }));
        }
        end = true;
        lane.join(sleeper);
      },
      options);
}

Test(BlockInPlace, Shutdown_waits_for_it_up_to_its_time_out) {
  for (std::uint32_t workers : {1u, 2u}) {
    Watchdog watchdog("shutdown beside block_in_place");
    noria_runtime_options options{};
    options.size = sizeof options;
    options.workers = workers;
    noria_runtime* rt = nullptr;
    NORIA_OK_CALL(noria_runtime_new(&options, &rt));
    Latch began, end;
    std::atomic<int> drops{0};
    struct Counted {
      Latch* began;
      Latch* end;
      std::atomic<int>* drops;
      Counted(Latch* b, Latch* e, std::atomic<int>* d) : began(b), end(e), drops(d) {}
      Counted(Counted&& other) noexcept
          : began(other.began), end(other.end), drops(std::exchange(other.drops, nullptr)) {}
      ~Counted() {
        if (drops != nullptr) ++*drops;
      }
      int32_t operator()(const noria_cx*) {
        NORIA_OK_CALL(in_place([this] {
          began->count_down();
          end->wait("the end of the blocking part");
        }));
        return NORIA_PENDING;  // nobody will wake it: it must be dropped all the same
      }
    };
    spawn_detached(rt, Counted(&began, &end, &drops));
    began.wait("the blocking part");
    noria_shutdown_report report{};
    report.size = sizeof report;
    NORIA_STATUS(noria_runtime_shutdown(rt, 100 * kMilli, &report), -ETIMEDOUT);
    cr_assert_eq(report.polls_running, 1);
    cr_assert_eq(drops, 0, "P2: not before the poll has ended");
    NORIA_OK_CALL(noria_runtime_release(rt));
    end.count_down();
    await_nothing_alive("a poll that blocked in place past the end");
    cr_assert_eq(drops, 1);
  }
}

// A thread of the pool drives the worker, and has lost it to a second one by the time the runtime ends: of its poll nothing but this
// thread knows.
Test(BlockInPlace, P7_poll_on_a_pool_thread_that_outlasts_the_shutdown_is_dropped) {
  Watchdog watchdog("shutdown beside block_in_place on a thread of the pool");
  std::atomic<int> stops{0}, drops{0};
  noria_runtime_options options = lane_options(kOneWorker);
  options.on_thread_stop = [](void* count) { ++*static_cast<std::atomic<int>*>(count); };
  options.hook_data = &stops;
  noria_runtime* rt = nullptr;
  NORIA_OK_CALL(noria_runtime_new(&options, &rt));
  Latch begun[2], ends[2];
  for (int i = 0; i < 2; ++i) {  // on the worker's own thread, then on the one that has taken the worker over
    spawn_detached(rt, [began = &begun[i], end = &ends[i], guard = std::shared_ptr<void>(nullptr, [&](void*) {
                                                             ++drops;
                                                           })](const noria_cx*) -> int32_t {
      NORIA_OK_CALL(in_place([&] {
        began->count_down();
        end->wait("the end of the blocking part");
      }));
      return NORIA_PENDING;  // nobody will wake it
    });
    begun[i].wait("the blocking part");
  }
  ends[0].count_down();
  noria_shutdown_report report{};
  report.size = sizeof report;
  NORIA_STATUS(noria_runtime_shutdown(rt, 0, &report), -ETIMEDOUT);
  NORIA_OK_CALL(noria_runtime_release(rt));
  while (stops != 2) std::this_thread::yield();  // the worker's own thread, and its last owner
  cr_assert_eq(drops, 1);
  ends[1].count_down();
  await_nothing_alive("a poll on a thread of the pool past the end");
  cr_assert_eq(drops, 2);
}
