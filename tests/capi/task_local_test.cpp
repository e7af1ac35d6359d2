// Local tasks: polled and dropped on their own thread only, whoever wakes, aborts, takes or detaches them (P2).
#include <criterion/criterion.h>

#include "support/runtime_fixture.hpp"

using namespace noria::test;

namespace {

struct Local {
  pthread_t home{};
  std::atomic<int> polls{0};
  std::atomic<int> drops{0};
  std::atomic<int> strays{0};  // polls and drops on a thread that is not its own
  std::atomic<bool> finish{false};
  KeptWaker kept;

  void note() {
    if (!pthread_equal(home, pthread_self())) ++strays;
  }
};

int32_t local_poll(void* state, const noria_cx* cx) {
  auto* self = static_cast<Local*>(state);
  self->note();
  bool ends = self->finish;
  if (!ends && !self->kept.kept()) self->kept.keep(cx);
  ++self->polls;
  return ends ? NORIA_READY : NORIA_PENDING;
}
void local_drop(void* state) {
  auto* self = static_cast<Local*>(state);
  self->note();
  ++self->drops;
}
void local_take(void*, void* out) { *static_cast<int*>(out) = 7; }
const noria_task_vtable kLocal = {sizeof(noria_task_vtable), 0, local_poll, local_drop, nullptr, "local"};
const noria_task_vtable kLocalTake = {sizeof(noria_task_vtable), 0, local_poll, local_drop, local_take, "local"};

// Spawns `state` as a local task on a thread of the runtime and lets it have its first poll.
noria_task* settle(Lane& lane, const noria_task_vtable* vtable, Local& state) {
  noria_task* task = nullptr;
  lane.inside([&] {
    state.home = pthread_self();
    NORIA_OK_CALL(noria_spawn_local(lane.rt, vtable, &state, &task));
  });
  lane.until([&] { return state.polls == 1; }, "the first poll");
  return task;
}

}  // namespace

Test(TaskLocal, Spawn_from_a_thread_outside_is_refused) {
  on_each_runtime([](Lane& lane) {
    Local state;
    NORIA_STATUS(noria_spawn_local(lane.rt, &kLocal, &state, nullptr), -NORIA_EWRONGTHREAD);
    std::thread([&] {
      NORIA_STATUS(noria_spawn_local(lane.rt, &kLocal, &state, nullptr), -NORIA_EWRONGTHREAD);
    }).join();
    cr_assert_eq(state.drops, 0);
  });
}

Test(TaskLocal, Wakes_from_other_threads_poll_it_on_its_own) {
  on_each_runtime([](Lane& lane) {
    Local state;
    noria_task* task = settle(lane, &kLocal, state);
    for (int i = 2; i < 50; ++i) {
      std::thread([&] { state.kept.wake_by_ref(); }).join();
      lane.until([&] { return state.polls >= i; }, "the next poll");
    }
    state.finish = true;
    std::thread([&] { state.kept.wake_by_ref(); }).join();
    cr_assert_eq(lane.join(task).kind, NORIA_JOIN_DONE);
    cr_assert_eq(state.strays, 0);
    cr_assert_eq(state.drops, 1);
  });
}

Test(TaskLocal, Abort_from_another_thread_drops_it_on_its_own) {
  on_each_runtime([](Lane& lane) {
    Local state;
    noria_task* task = settle(lane, &kLocal, state);
    std::thread([&] { NORIA_OK_CALL(noria_task_abort(task)); }).join();
    cr_assert_eq(lane.join(task).kind, NORIA_JOIN_ABORTED);
    cr_assert_eq(state.strays, 0);
    cr_assert_eq(state.drops, 1);
  });
}

Test(TaskLocal, Output_detached_elsewhere_is_sent_back_and_dropped_at_home) {
  on_each_runtime([](Lane& lane) {
    Local state;
    noria_task* task = settle(lane, &kLocalTake, state);
    state.finish = true;
    state.kept.wake();
    lane.wait_for(task);
    cr_assert_eq(state.drops, 0);
    std::thread([&] {
      int out = 0;
      NORIA_STATUS(noria_task_take(task, &out), -NORIA_EWRONGTHREAD);
      NORIA_OK_CALL(noria_task_detach(task));
    }).join();
    lane.until([&] { return state.drops == 1; }, "the drop");
    cr_assert_eq(state.strays, 0);
  });
}

Test(TaskLocal, Output_is_taken_on_its_own_thread) {
  on_runtime(kCurrentThread, [](Lane& lane) {
    Local state;
    noria_task* task = settle(lane, &kLocalTake, state);
    state.finish = true;
    state.kept.wake();
    lane.wait_for(task);
    int out = 0;
    lane.inside([&] { NORIA_OK_CALL(noria_task_take(task, &out)); });
    cr_assert_eq(out, 7);
    cr_assert_eq(state.drops, 1);
    NORIA_OK_CALL(noria_task_detach(task));
  });
}

Test(TaskLocal, Shutdown_drops_local_tasks_and_outputs_on_their_own_thread) {
  on_each_runtime([](Lane& lane) {
    Local pending, output, queued;
    noria_task* one = settle(lane, &kLocal, pending);
    noria_task* two = settle(lane, &kLocalTake, output);
    noria_task* three = settle(lane, &kLocal, queued);
    output.finish = true;
    output.kept.wake();
    lane.wait_for(two);
    queued.kept.wake();
    NORIA_OK_CALL(noria_runtime_shutdown(lane.rt, 5 * kSecond, nullptr));
    for (Local* state : {&pending, &output, &queued}) {
      cr_assert_eq(state->strays, 0, "dropped on its own thread");
      cr_assert_eq(state->drops, 1);
    }
    pending.kept.wake();  // P3: after shutdown
    for (noria_task* task : {one, two, three}) {
      NORIA_STATUS(noria_task_is_complete(task), 1);
      NORIA_OK_CALL(noria_task_detach(task));
    }
  });
}
