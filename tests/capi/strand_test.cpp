// Strands: first come, first served, never two at once, while the workers run everything else.
#include <criterion/criterion.h>

#include <vector>

#include "support/runtime_fixture.hpp"

using namespace noria::test;

namespace {

struct Strand {
  explicit Strand(noria_runtime* rt) { NORIA_OK_CALL(noria_strand_new(rt, &raw)); }
  Strand(const Strand&) = delete;
  Strand& operator=(const Strand&) = delete;
  ~Strand() { drop(); }
  void drop() {
    if (raw != nullptr) NORIA_OK_CALL(noria_strand_drop(raw));
    raw = nullptr;
  }
  noria_strand* raw = nullptr;
};

}  // namespace

Test(Strand, Bad_arguments_are_told) {
  on_runtime(kCurrentThread, [](Lane& lane) {
    void* room = nullptr;
    noria_task* task = nullptr;
    auto body = [](const noria_cx*) -> int32_t { return NORIA_READY; };
    const noria_task_vtable& vtable = kBorrowed<decltype(body)>;
    Strand strand(lane.rt);
    NORIA_STATUS(noria_strand_new(lane.rt, nullptr), -EINVAL);
    NORIA_STATUS(noria_strand_new(nullptr, &strand.raw), -NORIA_ENOCONTEXT);
    NORIA_STATUS(noria_strand_drop(nullptr), -EINVAL);
    NORIA_STATUS(noria_strand_spawn(nullptr, &vtable, &body, &task), -EINVAL);
    NORIA_STATUS(noria_strand_spawn(strand.raw, nullptr, &body, &task), -EINVAL);
    NORIA_STATUS(noria_strand_task_new(nullptr, &vtable, 8, 8, &room, &task), -EINVAL);
    NORIA_STATUS(noria_strand_task_new(strand.raw, &vtable, 8, 8, nullptr, &task), -EINVAL);
    NORIA_STATUS(noria_strand_task_new(strand.raw, &vtable, 8, 8, &room, nullptr), -EINVAL);
    NORIA_STATUS(noria_strand_task_new(strand.raw, &vtable, 8, 3, &room, &task), -EINVAL);
    NORIA_OK_CALL(noria_strand_task_new(strand.raw, &vtable, 8, 8, &room, &task));
    NORIA_OK_CALL(noria_task_discard(task));
    NORIA_OK_CALL(noria_strand_spawn(strand.raw, &vtable, &body, nullptr));
  });
}

Test(Strand, Tasks_never_overlap_and_come_in_their_order) {
  on_each_runtime([](Lane& lane) {
    Strand strand(lane.rt);
    constexpr int kTasks = 2000;
    std::atomic<int> inside{0};
    std::vector<int> order;  // guarded by the strand: a race here is what the strand excludes
    Latch all(kTasks);
    for (int i = 0; i < kTasks; ++i) {
      NORIA_OK_CALL(noria_task_detach(spawn_on(strand.raw, [&, i](const noria_cx*) -> int32_t {
        NORIA_CHECK(++inside == 1, "two tasks of a strand at once");
        order.push_back(i);
        --inside;
        all.count_down();
        return NORIA_READY;
      })));
    }
    lane.wait(all, "the tasks of the strand");
    for (int i = 0; i < kTasks; ++i) cr_assert_eq(order[static_cast<std::size_t>(i)], i);
  });
}

Test(Strand, Tasks_spawned_and_woken_from_everywhere_never_overlap) {
  on_each_runtime([](Lane& lane) {
    Strand strand(lane.rt);
    constexpr int kThreads = 4, kTasks = 200;
    std::atomic<int> inside{0};
    Latch all(kThreads * kTasks);
    int plain = 0;  // guarded by the strand
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < kTasks; ++i) {
          NORIA_OK_CALL(noria_task_detach(spawn_on(strand.raw, [&, polls = 0](const noria_cx* cx) mutable -> int32_t {
            NORIA_CHECK(++inside == 1, "two tasks of a strand at once");
            ++plain;
            --inside;
            if (++polls < 5) return noria_yield(cx);
            all.count_down();
            return NORIA_READY;
          })));
        }
      });
    }
    lane.wait(all, "the tasks of the strand");
    for (std::thread& thread : threads) thread.join();
    cr_assert_eq(plain, kThreads * kTasks * 5);
  });
}

Test(Strand, It_is_not_held_across_pending) {
  on_each_runtime([](Lane& lane) {
    Strand strand(lane.rt);
    KeptWaker kept;
    std::atomic<bool> go{false};
    noria_task* waits = spawn_on(strand.raw, [&](const noria_cx* cx) -> int32_t {
      if (go) return NORIA_READY;
      kept.keep(cx);
      return NORIA_PENDING;
    });
    lane.join(spawn_on(strand.raw, [&](const noria_cx*) -> int32_t { return NORIA_READY; }));
    go = true;
    kept.wake();
    cr_assert_eq(lane.join(waits).kind, NORIA_JOIN_DONE);
  });
}

Test(Strand, Everything_else_runs_while_a_task_of_it_is_stuck) {
  on_runtimes(kTwo | kFour, [](Lane& lane) {
    Strand strand(lane.rt);
    Latch began, other;
    noria_task* stuck = spawn_on(strand.raw, [&](const noria_cx*) -> int32_t {
      began.count_down();
      other.wait("a task beside a strand that is stuck");
      return NORIA_READY;
    });
    began.wait("the stuck task");
    spawn_detached(lane.rt, [&](const noria_cx*) -> int32_t { return other.count_down(), NORIA_READY; });
    lane.join(stuck);
  });
}

Test(Strand, Abort_drops_a_queued_and_a_pending_task) {
  on_each_runtime([](Lane& lane) {
    Strand strand(lane.rt);
    noria_task* pending = spawn_on(strand.raw, [](const noria_cx*) -> int32_t { return NORIA_PENDING; });
    noria_task* queued = spawn_on(strand.raw, [](const noria_cx* cx) -> int32_t { return noria_yield(cx); });
    NORIA_OK_CALL(noria_task_abort(queued));
    NORIA_OK_CALL(noria_task_abort(pending));
    cr_assert_eq(lane.join(queued).kind, NORIA_JOIN_ABORTED);
    cr_assert_eq(lane.join(pending).kind, NORIA_JOIN_ABORTED);
  });
}

Test(Strand, Its_tasks_go_on_without_the_handle) {
  on_each_runtime([](Lane& lane) {
    Strand strand(lane.rt);
    std::atomic<int> ends{0};
    std::vector<noria_task*> tasks;
    for (int i = 0; i < 100; ++i) {
      tasks.push_back(spawn_on(strand.raw, [&, polls = 0](const noria_cx* cx) mutable -> int32_t {
        return ++polls < 4 ? noria_yield(cx) : (++ends, NORIA_READY);
      }));
    }
    strand.drop();
    for (noria_task* task : tasks) lane.join(task);
    cr_assert_eq(ends, 100);
  });
}

Test(Strand, Shutdown_drops_what_is_queued) {
  on_each_runtime([](Lane& lane) {
    Strand strand(lane.rt);
    noria_task* pending = spawn_on(strand.raw, [](const noria_cx*) -> int32_t { return NORIA_PENDING; });
    for (int i = 0; i < 100; ++i)
      NORIA_OK_CALL(
          noria_task_detach(spawn_on(strand.raw, [](const noria_cx* cx) -> int32_t { return noria_yield(cx); })));
    NORIA_OK_CALL(noria_runtime_shutdown(lane.rt, 5 * kSecond, nullptr));
    NORIA_STATUS(noria_task_is_complete(pending), 1);
    NORIA_OK_CALL(noria_task_detach(pending));
    auto body = [](const noria_cx*) -> int32_t { return NORIA_READY; };
    NORIA_STATUS(noria_strand_spawn(strand.raw, &kBorrowed<decltype(body)>, &body, nullptr), -NORIA_ESHUTDOWN);
    strand.drop();
  });
}

Test(Strand, Handle_dropped_after_the_runtime_is_gone) {
  noria_runtime_options options{};
  options.size = sizeof options;
  options.workers = 2;
  noria_runtime* rt = nullptr;
  NORIA_OK_CALL(noria_runtime_new(&options, &rt));
  Strand strand(rt);
  NORIA_OK_CALL(noria_runtime_free(rt));
  strand.drop();
  assert_nothing_alive("a strand that outlives its runtime");
}
