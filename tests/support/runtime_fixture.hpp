// runtime_fixture.hpp: runs the body of a test on each kind of runtime, and asserts that nothing is left alive.
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
// Each lane is a fresh runtime with a printed seed: current-thread, and 1, 2 and 4 workers; under sanitizers current-thread and 2
// workers only. NORIA_TEST_KINDS restricts it, e.g. to "2,current". A body works on all of them when it waits by run(),
// wait() or until(), which drive a current-thread runtime. After the body the runtime is shut down, and P11 is asserted: every
// count of noria_live_counts is zero. Needs no Criterion: plain programs use it too.
#pragma once

#include <atomic>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "support/check.hpp"
#include "support/wakers.hpp"

namespace noria::test {

inline constexpr std::uint64_t kSecond = 1'000'000'000;
inline constexpr std::uint64_t kMilli = 1'000'000;

inline void assert_ok(int32_t status, const char* what) {
  NORIA_CHECK(status == NORIA_OK, "%s: %s", what, noria_error_name(status));
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

// The same for a callable that lies elsewhere and is not destroyed.
template <typename F>
inline constexpr noria_task_vtable kBorrowed = {
    sizeof(noria_task_vtable),
    0,
    [](void* state, const noria_cx* cx) -> int32_t { return (*static_cast<F*>(state))(cx); },
    nullptr,
    nullptr,
    "test",
};

// The same for a callable on the heap, deleted by drop.
template <typename F>
inline constexpr noria_task_vtable kHeap = {
    sizeof(noria_task_vtable),
    0,
    [](void* state, const noria_cx* cx) -> int32_t { return (*static_cast<F*>(state))(cx); },
    [](void* state) { delete static_cast<F*>(state); },
    nullptr,
    "test",
};

// Makes a task of a callable, which is constructed in the task's own room; not started.
template <typename F>
noria_task* make_task(noria_runtime* rt, F poll) {
  void* state = nullptr;
  noria_task* task = nullptr;
  assert_ok(noria_task_new(rt, &kCallable<F>, sizeof(F), alignof(F), &state, &task), "task_new");
  new (state) F(std::move(poll));
  return task;
}

// Spawns a callable. Give the handle back by noria_task_detach.
template <typename F>
noria_task* spawn(noria_runtime* rt, F poll) {
  noria_task* task = make_task(rt, std::move(poll));
  assert_ok(noria_task_start(task), "task_start");
  return task;
}

template <typename F>
void spawn_detached(noria_runtime* rt, F poll) {
  assert_ok(noria_task_detach(spawn(rt, std::move(poll))), "detach");
}

// Spawns a callable as a local task of the calling thread.
template <typename F>
noria_task* spawn_local(noria_runtime* rt, F poll) {
  noria_task* task = nullptr;
  assert_ok(noria_spawn_local(rt, &kHeap<F>, new F(std::move(poll)), &task), "spawn_local");
  return task;
}

template <typename F>
noria_task* spawn_on(noria_strand* strand, F poll) {
  void* state = nullptr;
  noria_task* task = nullptr;
  assert_ok(noria_strand_task_new(strand, &kCallable<F>, sizeof(F), alignof(F), &state, &task), "strand_task_new");
  new (state) F(std::move(poll));
  assert_ok(noria_task_start(task), "task_start");
  return task;
}

// Holds one waker for somebody who will wake it; serialised by the test.
class KeptWaker {
 public:
  KeptWaker() = default;
  KeptWaker(const KeptWaker&) = delete;
  KeptWaker& operator=(const KeptWaker&) = delete;
  ~KeptWaker() { drop(); }
  void keep(const noria_cx* cx) {
    drop();
    assert_ok(noria_waker_clone(cx->waker, &raw_), "waker_clone");
    kept_ = true;
  }
  void wake() {
    NORIA_CHECK(kept_, "no waker was kept");
    kept_ = false;
    assert_ok(noria_waker_wake(&raw_), "waker_wake");
  }
  void wake_by_ref() const { assert_ok(noria_waker_wake_by_ref(&raw_), "waker_wake_by_ref"); }
  void drop() {
    if (!kept_) return;
    kept_ = false;
    assert_ok(noria_waker_drop(&raw_), "waker_drop");
  }
  bool kept() const { return kept_; }
  const noria_waker* raw() const { return &raw_; }

 private:
  noria_waker raw_{};
  bool kept_ = false;
};

// One kind of runtime, and the runtime of that kind while the body runs.
struct Lane {
  const char* name;
  std::uint32_t workers;  // 0: current-thread
  noria_runtime* rt = nullptr;

  bool current_thread() const { return workers == 0; }

  // Polls a callable on this thread until it answers READY or an error, while the runtime runs; gives the answer.
  template <typename F>
  int32_t run(F poll) {
    Watchdog watchdog(name);
    noria_task_vtable vtable = kBorrowed<F>;
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

  // Waits for a task; the handle is kept.
  noria_join_result wait_for(noria_task* task) {
    noria_join_result how{};
    assert_ok(run([&](const noria_cx* cx) { return noria_task_poll_join(task, cx, &how); }), "poll_join");
    return how;
  }

  // Waits for a task and gives its handle back.
  noria_join_result join(noria_task* task) {
    noria_join_result how = wait_for(task);
    assert_ok(noria_task_detach(task), "detach");
    return how;
  }

  // Lets the runtime run until `condition` is true. For what no waker tells.
  template <typename Condition>
  void until(Condition&& condition, const char* what) {
    Watchdog watchdog(what);
    while (!condition()) {
      if (current_thread()) {
        assert_ok(noria_runtime_turn(rt, kMilli, nullptr), "turn");
      } else {
        std::this_thread::yield();
      }
    }
  }

  void wait(Latch& latch, const char* what) {
    if (!current_thread()) return latch.wait(what);
    until([&] { return latch.done(); }, what);
  }

  // Runs a callable once on a thread of the runtime, as a task.
  template <typename F>
  void inside(F body) {
    noria_join_result how = join(spawn(rt, [body](const noria_cx*) -> int32_t {
      body();
      return NORIA_READY;
    }));
    NORIA_CHECK(how.kind == NORIA_JOIN_DONE, "the body ended with %s", noria_error_name(how.error));
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
    NORIA_CHECK(count == 0, "P11, %s: %lld %s are left", where, static_cast<long long>(count), name);
  }
}

// The same where threads of the runtime may still be on their way out (it was ended from inside).
inline void await_nothing_alive(const char* where) {
  Watchdog watchdog(where);
  for (;;) {
    noria_counts counts{};
    counts.size = sizeof counts;
    assert_ok(noria_live_counts(&counts), "live_counts");
    if (counts.tasks == 0 && counts.wakers == 0 && counts.futures == 0 && counts.timers == 0 && counts.sources == 0 &&
        counts.buffers == 0 && counts.descriptors == 0 && counts.allocations == 0)
      return;
    std::this_thread::yield();
  }
}

inline noria_runtime_options lane_options(const Lane& lane, noria_runtime_options options = {}) {
  options.size = sizeof options;
  options.kind = lane.current_thread() ? NORIA_RUNTIME_CURRENT_THREAD : NORIA_RUNTIME_MULTI_THREAD;
  options.workers = lane.workers;
  if (options.seed == 0) options.seed = test_seed();
  return options;
}

// Ends the lane's runtime and asserts that it ended, and P11.
inline void end_runtime(Lane& lane) {
  Watchdog watchdog("shutdown");
  noria_shutdown_report report{};
  report.size = sizeof report;
  int32_t status = noria_runtime_shutdown(lane.rt, 8 * kSecond, &report);
  NORIA_CHECK(status == NORIA_OK, "P7, %s: shutdown: %s; still running: %s", lane.name, noria_error_name(status),
              report.names);
  assert_ok(noria_runtime_release(lane.rt), "release");
  assert_nothing_alive(lane.name);
}

// Runs `body` on one fresh runtime of the lane's kind. `options` may set more than kind and workers.
template <typename Body>
void on_runtime(Lane lane, Body&& body, noria_runtime_options options = {}) {
  options = lane_options(lane, options);
  assert_ok(noria_runtime_new(&options, &lane.rt), lane.name);
  body(lane);
  end_runtime(lane);
}

inline const Lane kCurrentThread{"current-thread", 0};
inline const Lane kOneWorker{"1 worker", 1};
inline const Lane kTwoWorkers{"2 workers", 2};
inline const Lane kFourWorkers{"4 workers", 4};

// Whether NORIA_TEST_KINDS (a list of 1, 2, 4, current) wants this lane.
inline bool wanted(const Lane& lane) {
#ifdef NORIA_SANITIZED
  const char* otherwise = "2,current";
#else
  const char* otherwise = "current,1,2,4";
#endif
  const char* kinds = std::getenv("NORIA_TEST_KINDS");
  std::string list = std::string(",") + (kinds != nullptr ? kinds : otherwise) + ",";
  std::string name = lane.current_thread() ? "current" : std::to_string(lane.workers);
  return list.find("," + name + ",") != std::string::npos;
}

enum Kinds : unsigned { kCurrent = 1, kOne = 2, kTwo = 4, kFour = 8, kMulti = kOne | kTwo | kFour, kAll = 15 };

// Runs `body` on a runtime of each of `kinds` that NORIA_TEST_KINDS does not leave out.
template <typename Body>
void on_runtimes(unsigned kinds, Body&& body, noria_runtime_options options = {}) {
  const std::pair<unsigned, Lane> lanes[] = {
      {kCurrent, kCurrentThread}, {kOne, kOneWorker}, {kTwo, kTwoWorkers}, {kFour, kFourWorkers}};
  for (const auto& [kind, lane] : lanes) {
    if ((kinds & kind) != 0 && wanted(lane)) on_runtime(lane, body, options);
  }
}

template <typename Body>
void on_each_runtime(Body&& body, noria_runtime_options options = {}) {
  on_runtimes(kAll, body, options);
}

}  // namespace noria::test
