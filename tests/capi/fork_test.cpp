// A15: the child of a fork gets -NORIA_EFORKED from every call on what it inherited, and the parent goes on. What is not here
// stands in fork_handles_test.cpp and fork_net_test.cpp; tests/lint/forked.py asserts that no call is left out.
#include <criterion/criterion.h>
#include <poll.h>
#include <sys/wait.h>

#include "support/runtime_fixture.hpp"
#include "task/join.hpp"

using namespace noria::test;

namespace {

struct Inherited {
  noria_runtime* rt;
  noria_task* task;
  noria_task* unstarted;
  noria_future* join;
  noria_strand* strand;
  noria_waker waker;
};

int32_t ready(void*, const noria_cx*) { return NORIA_READY; }
const noria_task_vtable kReady = {sizeof(noria_task_vtable), 0, ready, nullptr, nullptr, "ready"};

void in_child(const Inherited& it) {
  Watchdog watchdog("the child");
  noria_task* task = nullptr;
  noria_future* future = nullptr;
  noria_strand* strand = nullptr;
  noria_runtime_info_data info{};
  info.size = sizeof info;
  noria_metrics metrics{};
  metrics.size = sizeof metrics;
  noria_worker_metrics one{};
  one.size = sizeof one;
  void* room = nullptr;
  std::uint64_t word = 0;
  std::int32_t fd = 0;
  const char* name = nullptr;
  noria_waker clone{};
  noria_cx cx{&it.waker, {0, 0, 0}};
  auto forked = [](int32_t status, const char* call) {
    NORIA_CHECK(status == -NORIA_EFORKED, "A15: %s answers %s", call, noria_error_name(status));
  };
#define FORKED(call) forked(call, #call)
  FORKED(noria_runtime_retain(it.rt));
  FORKED(noria_runtime_release(it.rt));
  FORKED(noria_runtime_free(it.rt));
  FORKED(noria_runtime_shutdown(it.rt, 0, nullptr));
  FORKED(noria_runtime_enter(it.rt));
  FORKED(noria_runtime_leave(it.rt));
  FORKED(noria_runtime_block_on(it.rt, &kReady, nullptr, nullptr));
  FORKED(noria_runtime_turn(it.rt, 0, nullptr));
  FORKED(noria_runtime_fd(it.rt, &fd));
  FORKED(noria_runtime_next_timeout(it.rt, &word));
  FORKED(noria_runtime_info(it.rt, &info));
  FORKED(noria_runtime_metrics(it.rt, &metrics));
  FORKED(noria_runtime_worker_metrics(it.rt, 0, &one));
  FORKED(noria_spawn(it.rt, &kReady, nullptr, nullptr));
  FORKED(noria_spawn_local(it.rt, &kReady, nullptr, nullptr));
  FORKED(noria_spawn_blocking(
      it.rt, [](void*) { return 0; }, nullptr, nullptr, nullptr));
  FORKED(noria_task_new(it.rt, &kReady, 8, 8, &room, &task));
  FORKED(noria_task_start(it.unstarted));
  FORKED(noria_task_discard(it.unstarted));
  FORKED(noria_task_set_name(it.unstarted, "x"));
  FORKED(noria_task_join(it.task, &future));
  FORKED(noria_task_poll_join(it.task, &cx, nullptr));
  FORKED(noria_task_take(it.task, &room));
  FORKED(noria_task_abort(it.task));
  FORKED(noria_task_detach(it.task));
  FORKED(noria_task_is_complete(it.task));
  FORKED(noria_task_id(it.task, &word));
  FORKED(noria_task_name(it.task, &name));
  FORKED(noria_strand_new(it.rt, &strand));
  FORKED(noria_strand_spawn(it.strand, &kReady, nullptr, nullptr));
  FORKED(noria_strand_task_new(it.strand, &kReady, 8, 8, &room, &task));
  FORKED(noria_strand_drop(it.strand));
  FORKED(noria_future_poll(it.join, &cx));
  FORKED(noria_future_on_ready(it.join, &it.waker));
  FORKED(noria_future_wait(it.join, 0));
  FORKED(noria_future_result(it.join, nullptr, 0));
  FORKED(noria_future_cancel(it.join));
  FORKED(noria_future_drop(it.join));
  FORKED(noria_now(it.rt, &word));
  FORKED(noria_sleep(it.rt, 1, &future));
  FORKED(noria_waker_clone(&it.waker, &clone));
  FORKED(noria_waker_wake_by_ref(&it.waker));
  FORKED(noria_cx_wake(&cx));
  FORKED(noria_yield(&cx));
  FORKED(noria_budget_poll(&cx));
  clone = it.waker;
  FORKED(noria_waker_wake(&clone));
  FORKED(noria_waker_drop(&clone));
#undef FORKED
  // A runtime of its own works.
  noria_runtime_options options{};
  options.size = sizeof options;
  options.workers = 2;
  Lane lane = kTwoWorkers;
  NORIA_OK_CALL(noria_runtime_new(&options, &lane.rt));
  int polls = 0;
  lane.join(
      spawn(lane.rt, [&](const noria_cx* own) -> int32_t { return ++polls < 3 ? noria_yield(own) : NORIA_READY; }));
  NORIA_OK_CALL(noria_runtime_free(lane.rt));
  ::_exit(0);
}

}  // namespace

Test(Fork, A15_the_child_is_told_and_the_parent_goes_on) {
  on_each_runtime([](Lane& lane) {
    Inherited it{};
    it.rt = lane.rt;
    KeptWaker kept;
    std::atomic<bool> end{false};
    it.task = spawn(lane.rt, [&](const noria_cx* cx) -> int32_t {
      if (end) return NORIA_READY;
      if (!kept.kept()) kept.keep(cx);
      return NORIA_PENDING;
    });
    it.unstarted = make_task(lane.rt, [](const noria_cx*) -> int32_t { return NORIA_READY; });
    NORIA_OK_CALL(noria_task_join(it.task, &it.join));
    NORIA_OK_CALL(noria_strand_new(lane.rt, &it.strand));
    lane.until([&] { return kept.kept(); }, "the first poll");
    lane.inside([] {});
    it.waker = *kept.raw();
    pid_t child = ::fork();
    if (child == 0) in_child(it);
    int status = 0;
    NORIA_CHECK(::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0,
                "%s: the child ended with %d", lane.name, status);
    end = true;
    kept.wake();
    cr_assert_eq(lane.await(it.join), NORIA_OK);
    NORIA_OK_CALL(noria_task_detach(it.task));
    NORIA_OK_CALL(noria_task_discard(it.unstarted));
    NORIA_OK_CALL(noria_strand_drop(it.strand));
  });
}

// Whoever calls a waker's own functions is not asked whether it has forked: a wake in the child must not ring the parent, with which it
// shares the descriptor.
Test(Fork, A15_wake_in_the_child_does_not_ring_the_parent) {
  on_runtimes(kCurrent, [](Lane& lane) {
    KeptWaker kept;
    noria_task* task = spawn(lane.rt, [&, polls = 0](const noria_cx* cx) mutable -> int32_t {
      kept.keep(cx);
      return ++polls < 2 ? NORIA_PENDING : NORIA_READY;
    });
    std::int32_t fd = -1;
    NORIA_OK_CALL(noria_runtime_fd(lane.rt, &fd));
    auto rung = [&] {
      pollfd watched{fd, POLLIN, 0};
      return ::poll(&watched, 1, 0) == 1;
    };
    while (!kept.kept() || rung()) NORIA_OK_CALL(noria_runtime_turn(lane.rt, 0, nullptr));
    pid_t child = ::fork();
    if (child == 0) {
      Watchdog watchdog("the child");
      kept.raw()->vtable->wake_by_ref(kept.raw());
      ::_exit(0);
    }
    int status = 0;
    NORIA_CHECK(::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0,
                "the child ended with %d", status);
    cr_assert(!rung(), "A15: the child has written to an inherited descriptor");
    kept.wake_by_ref();
    cr_assert(rung(), "the parent's own wake rings");
    lane.join(task);
    kept.drop();
  });
}

// Locks that belong to no runtime may be held by another thread at that moment, which the child does not have.
Test(Fork, A15_a_join_in_the_child_waits_for_no_thread_of_the_parent) {
  auto lock_of = [](std::uintptr_t shard) -> noria::sync::Mutex& {
    return noria::task::join_lock(reinterpret_cast<const noria::task::Task*>(shard * noria::kCacheLine));
  };
  constexpr std::uintptr_t kAll = 16;
  for (std::uintptr_t shard = 0; shard < kAll; ++shard) cr_assert(lock_of(shard).try_lock(), "a lock for each");
  pid_t child = ::fork();
  if (child == 0) {
    Watchdog watchdog("a join in the child");
    on_runtimes(kCurrent, [](Lane& lane) {
      noria_future* join = nullptr;
      noria_task* task = spawn(lane.rt, [](const noria_cx*) -> int32_t { return NORIA_READY; });
      NORIA_OK_CALL(noria_task_join(task, &join));
      NORIA_OK_CALL(lane.await(join));
      NORIA_OK_CALL(noria_task_detach(task));
    });
    ::_exit(0);
  }
  for (std::uintptr_t shard = 0; shard < kAll; ++shard) lock_of(shard).unlock();
  int status = 0;
  cr_assert(::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0,
            "the child ended with %d", status);
}

Test(Fork, Waker_of_block_on_is_refused_in_the_child) {
  on_runtimes(kMulti, [](Lane& lane) {
    auto in_poll = [](void*, const noria_cx* cx) -> int32_t {
      noria_waker clone{};
      NORIA_OK_CALL(noria_waker_clone(cx->waker, &clone));
      pid_t child = ::fork();
      if (child == 0) {
        noria_waker second{};
        noria_cx own{&clone, {0, 0, 0}};
        NORIA_STATUS(noria_waker_clone(&clone, &second), -NORIA_EFORKED);
        NORIA_STATUS(noria_waker_wake_by_ref(&clone), -NORIA_EFORKED);
        NORIA_STATUS(noria_cx_wake(&own), -NORIA_EFORKED);
        NORIA_STATUS(noria_yield(&own), -NORIA_EFORKED);
        NORIA_STATUS(noria_waker_wake(&clone), -NORIA_EFORKED);
        NORIA_STATUS(noria_waker_drop(&clone), -NORIA_EFORKED);
        ::_exit(0);
      }
      int status = 0;
      NORIA_CHECK(::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0,
                  "the child ended with %d", status);
      NORIA_OK_CALL(noria_waker_wake(&clone));
      return NORIA_READY;
    };
    const noria_task_vtable vtable = {sizeof(noria_task_vtable), 0, in_poll, nullptr, nullptr, "forks"};
    NORIA_OK_CALL(noria_runtime_block_on(lane.rt, &vtable, nullptr, nullptr));
  });
}
