// runtimes.hpp: runs the body of a test on each kind of runtime, and asserts that nothing is left alive.
//
//     Test(Spawn, Task_that_yields_is_polled_again) {
//       noria::test::on_each_runtime([](noria::test::Lane& lane) {
//         int polls = 0;
//         lane.run([&](const noria_cx* cx) -> int32_t {
//           if (++polls < 3) return noria_yield(cx);
//           return NORIA_READY;
//         });
//         cr_assert_eq(polls, 3);
//       });
//     }
//
// Each lane is a fresh runtime: current-thread, and 1, 2 and 4 workers; under sanitizers current-thread and
// 2 workers only. A body works on all of them when it waits by run(), which drives a current-thread
// runtime. After the body the runtime is shut down, and P11 is asserted: every count of noria_live_counts is
// zero. Criterion's output names the lane that failed.
#pragma once

#include <criterion/criterion.h>
#include <noria.h>

#include <cstdint>
#include <new>
#include <utility>

namespace noria::test {

inline constexpr std::uint64_t kSecond = 1'000'000'000;

inline void assert_ok(int32_t status, const char* what) {
  cr_assert_eq(status, NORIA_OK, "%s: %s", what, noria_error_name(status));
}

// The vtable of a task whose state is the callable F: int32_t(const noria_cx*).
template <typename F>
inline constexpr noria_task_vtable kCallable = {
    sizeof(noria_task_vtable),
    0,
    [](void* state, const noria_cx* cx) -> int32_t { return (*static_cast<F*>(state))(cx); },
    [](void* state) { static_cast<F*>(state)->~F(); },
    nullptr,
    "test",
};

// Spawns a callable; it is constructed in the task's own room. Give the handle back by noria_task_detach.
template <typename F>
noria_task* spawn(noria_runtime* rt, F poll) {
  void* state = nullptr;
  noria_task* task = nullptr;
  assert_ok(noria_task_new(rt, &kCallable<F>, sizeof(F), alignof(F), &state, &task), "task_new");
  new (state) F(std::move(poll));
  assert_ok(noria_task_start(task), "task_start");
  return task;
}

// One kind of runtime, and the runtime of that kind while the body runs.
struct Lane {
  const char* name;
  std::uint32_t workers;  // 0: current-thread
  noria_runtime* rt = nullptr;

  bool current_thread() const { return workers == 0; }

  // Polls a callable on this thread until it answers READY or an error, while the runtime runs; gives the answer.
  template <typename F>
  int32_t run(F poll) {
    noria_task_vtable vtable{};
    vtable.size = sizeof vtable;
    vtable.poll = [](void* state, const noria_cx* cx) -> int32_t { return (*static_cast<F*>(state))(cx); };
    vtable.name = "run";
    noria_join_result how{};
    assert_ok(noria_runtime_block_on(rt, &vtable, &poll, &how), "block_on");
    return how.kind == NORIA_JOIN_DONE ? NORIA_OK : how.error;
  }

  // Waits for a future, takes its result and drops it; gives the operation's status.
  int32_t await(noria_future* future, void* out = nullptr, std::size_t size = 0) {
    assert_ok(run([&](const noria_cx* cx) { return noria_future_poll(future, cx); }), "future_poll");
    int32_t status = noria_future_result(future, out, size);
    assert_ok(noria_future_drop(future), "future_drop");
    return status;
  }

  // Waits for a task and gives its handle back.
  noria_join_result join(noria_task* task) {
    noria_join_result how{};
    assert_ok(run([&](const noria_cx* cx) { return noria_task_poll_join(task, cx, &how); }), "poll_join");
    assert_ok(noria_task_detach(task), "detach");
    return how;
  }
};

inline void assert_nothing_alive(const char* where) {
  noria_counts counts{};
  counts.size = sizeof counts;
  assert_ok(noria_live_counts(&counts), "live_counts");
  const std::pair<const char*, std::int64_t> all[] = {
      {"tasks", counts.tasks},
      {"wakers", counts.wakers},
      {"futures", counts.futures},
      {"timers", counts.timers},
      {"sources", counts.sources},
      {"buffers", counts.buffers},
      {"descriptors", counts.descriptors},
      {"allocations", counts.allocations},
  };
  for (auto [name, count] : all) {
    cr_assert_eq(count, 0, "P11, %s: %lld %s are left", where, static_cast<long long>(count), name);
  }
}

// Runs `body` on one fresh runtime of the lane's kind. `options` may set more than kind and workers.
template <typename Body>
void on_runtime(Lane lane, Body&& body, noria_runtime_options options = {}) {
  options.size = sizeof options;
  options.kind = lane.current_thread() ? NORIA_RUNTIME_CURRENT_THREAD : NORIA_RUNTIME_MULTI_THREAD;
  options.workers = lane.workers;
  assert_ok(noria_runtime_new(&options, &lane.rt), lane.name);
  body(lane);
  noria_shutdown_report report{};
  report.size = sizeof report;
  int32_t status = noria_runtime_shutdown(lane.rt, 10 * kSecond, &report);
  cr_assert_eq(status, NORIA_OK, "P7, %s: shutdown: %s; still running: %s", lane.name, noria_error_name(status),
               report.names);
  assert_ok(noria_runtime_release(lane.rt), "release");
  assert_nothing_alive(lane.name);
}

template <typename Body>
void on_each_runtime(Body&& body, noria_runtime_options options = {}) {
  on_runtime(Lane{"current-thread", 0}, body, options);
#ifndef NORIA_SANITIZED
  on_runtime(Lane{"1 worker", 1}, body, options);
  on_runtime(Lane{"4 workers", 4}, body, options);
#endif
  on_runtime(Lane{"2 workers", 2}, body, options);
}

}  // namespace noria::test
