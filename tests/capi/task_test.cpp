// The C ABI of tasks (A5): what each call does, in every state that a task can be in, and what it answers a bad caller.
#include <criterion/criterion.h>

#include <cstring>
#include <vector>

#include "support/runtime_fixture.hpp"

using namespace noria::test;

namespace {

// A task with an output that is kept: what it counts tells who ran what, and where.
struct Output {
  std::atomic<int> polls{0};
  std::atomic<int> drops{0};
  std::atomic<int> takes{0};
  std::atomic<pthread_t> dropped_on{};
  int32_t answer = NORIA_READY;
  KeptWaker kept;
};

int32_t output_poll(void* state, const noria_cx* cx) {
  auto* self = static_cast<Output*>(state);
  if (self->answer == NORIA_PENDING && self->polls == 0) self->kept.keep(cx);
  ++self->polls;
  return self->answer;
}
void output_drop(void* state) {
  auto* self = static_cast<Output*>(state);
  self->dropped_on = pthread_self();
  ++self->drops;
}
void output_take(void* state, void* out) {
  ++static_cast<Output*>(state)->takes;
  *static_cast<int*>(out) = 42;
}
const noria_task_vtable kWithTake = {sizeof(noria_task_vtable), 0, output_poll, output_drop, output_take, "output"};
const noria_task_vtable kNoTake = {sizeof(noria_task_vtable), 0, output_poll, output_drop, nullptr, "no output"};

noria_task* spawn_raw(noria_runtime* rt, const noria_task_vtable* vtable, void* state) {
  noria_task* task = nullptr;
  NORIA_OK_CALL(noria_spawn(rt, vtable, state, &task));
  return task;
}

}  // namespace

Test(TaskAbi, Null_and_bad_arguments_are_told) {
  on_runtime(kCurrentThread, [](Lane& lane) {
    Output state;
    noria_task* task = nullptr;
    void* room = nullptr;
    NORIA_STATUS(noria_spawn(lane.rt, nullptr, &state, &task), -EINVAL);
    NORIA_STATUS(noria_spawn(nullptr, &kNoTake, &state, &task), -NORIA_ENOCONTEXT);
    NORIA_STATUS(noria_spawn_local(lane.rt, nullptr, &state, &task), -EINVAL);
    NORIA_STATUS(noria_task_new(lane.rt, nullptr, 8, 8, &room, &task), -EINVAL);
    NORIA_STATUS(noria_task_new(lane.rt, &kNoTake, 8, 8, nullptr, &task), -EINVAL);
    NORIA_STATUS(noria_task_new(lane.rt, &kNoTake, 8, 8, &room, nullptr), -EINVAL);
    NORIA_STATUS(noria_task_new(nullptr, &kNoTake, 8, 8, &room, &task), -NORIA_ENOCONTEXT);
    for (std::size_t align : {std::size_t{0}, std::size_t{3}, std::size_t{24}, std::size_t{2 * NORIA_MAX_ALIGN}})
      NORIA_STATUS(noria_task_new(lane.rt, &kNoTake, 8, align, &room, &task), -EINVAL);
    NORIA_STATUS(noria_task_new(lane.rt, &kNoTake, SIZE_MAX - 8, 8, &room, &task), -ENOMEM);
    NORIA_STATUS(noria_task_start(nullptr), -EINVAL);
    NORIA_STATUS(noria_task_discard(nullptr), -EINVAL);
    noria_future* future = nullptr;
    NORIA_STATUS(noria_task_join(nullptr, &future), -EINVAL);
    ForeignWaker waker;
    NORIA_STATUS(noria_task_poll_join(nullptr, waker.cx(), nullptr), -EINVAL);
    NORIA_STATUS(noria_task_take(nullptr, &state), -EINVAL);
    NORIA_STATUS(noria_task_abort(nullptr), -EINVAL);
    NORIA_STATUS(noria_task_detach(nullptr), -EINVAL);
    NORIA_STATUS(noria_task_is_complete(nullptr), -EINVAL);
    std::uint64_t id = 0;
    const char* name = nullptr;
    NORIA_STATUS(noria_task_id(nullptr, &id), -EINVAL);
    NORIA_STATUS(noria_task_name(nullptr, &name), -EINVAL);
    NORIA_STATUS(noria_task_set_name(nullptr, "x"), -EINVAL);
    NORIA_STATUS(noria_block_in_place(nullptr, nullptr, nullptr), -EINVAL);
    NORIA_STATUS(noria_spawn_blocking(lane.rt, nullptr, nullptr, nullptr, nullptr), -EINVAL);
    NORIA_OK_CALL(noria_task_new(lane.rt, &kNoTake, 8, 8, &room, &task));
    NORIA_STATUS(noria_task_join(task, nullptr), -EINVAL);
    NORIA_STATUS(noria_task_poll_join(task, nullptr, nullptr), -EINVAL);
    NORIA_STATUS(noria_task_id(task, nullptr), -EINVAL);
    NORIA_STATUS(noria_task_name(task, nullptr), -EINVAL);
    NORIA_STATUS(noria_task_set_name(task, nullptr), -EINVAL);
    NORIA_OK_CALL(noria_task_discard(task));
  });
}

Test(TaskAbi, Vtable_of_another_size_is_read_by_the_size_rule) {
  on_runtime(kCurrentThread, [](Lane& lane) {
    struct {
      noria_task_vtable known;
      std::uint64_t tail;
    } longer = {kNoTake, 0};
    longer.known.size = sizeof longer;
    Output state;
    NORIA_CHECK(lane.join(spawn_raw(lane.rt, &longer.known, &state)).kind == NORIA_JOIN_DONE, "a zero tail is taken");
    longer.tail = 1;
    NORIA_STATUS(noria_spawn(lane.rt, &longer.known, &state, nullptr), -E2BIG);
    NORIA_STATUS(noria_runtime_block_on(lane.rt, &longer.known, &state, nullptr), -E2BIG);
    noria_task_vtable shorter = kNoTake;
    shorter.size = offsetof(noria_task_vtable, name);
    noria_task* task = spawn_raw(lane.rt, &shorter, &state);
    const char* name = nullptr;
    NORIA_OK_CALL(noria_task_name(task, &name));
    cr_assert_str_eq(name, "");
    lane.join(task);
    for (std::uint32_t size : {0u, 4u, static_cast<std::uint32_t>(offsetof(noria_task_vtable, take))}) {
      shorter.size = size;
      NORIA_STATUS(noria_spawn(lane.rt, &shorter, &state, nullptr), -EINVAL);
    }
    noria_task_vtable odd = kNoTake;
    odd.flags = 1;
    NORIA_STATUS(noria_spawn(lane.rt, &odd, &state, nullptr), -EINVAL);
    odd.flags = 0;
    odd.poll = nullptr;
    NORIA_STATUS(noria_spawn(lane.rt, &odd, &state, nullptr), -EINVAL);
    cr_assert_eq(state.drops, 2, "on an error the state stays the caller's");
  });
}

Test(TaskAbi, A5_state_in_place_has_its_size_and_alignment) {
  on_each_runtime([](Lane& lane) {
    for (std::size_t align = 1; align <= NORIA_MAX_ALIGN; align *= 2) {
      for (std::size_t size :
           {std::size_t{0}, std::size_t{1}, std::size_t{40}, std::size_t{3000}, std::size_t{100000}}) {
        void* room = nullptr;
        noria_task* task = nullptr;
        NORIA_OK_CALL(noria_task_new(lane.rt, &kNoTake, size, align, &room, &task));
        NORIA_CHECK(reinterpret_cast<std::uintptr_t>(room) % align == 0, "alignment %zu, size %zu", align, size);
        std::memset(room, 0xA5, size);
        NORIA_OK_CALL(noria_task_discard(task));
      }
    }
  });
}

Test(TaskAbi, A5_unstarted_task_refuses_what_needs_a_started_one_and_the_other_way_round) {
  on_each_runtime([](Lane& lane) {
    void* room = nullptr;
    noria_task* task = nullptr;
    noria_future* future = nullptr;
    ForeignWaker waker;
    NORIA_OK_CALL(noria_task_new(lane.rt, &kNoTake, sizeof(Output), alignof(Output), &room, &task));
    NORIA_STATUS(noria_task_join(task, &future), -NORIA_EBADSTATE);
    NORIA_STATUS(noria_task_poll_join(task, waker.cx(), nullptr), -NORIA_EBADSTATE);
    NORIA_STATUS(noria_task_take(task, room), -NORIA_EBADSTATE);
    NORIA_STATUS(noria_task_abort(task), -NORIA_EBADSTATE);
    NORIA_STATUS(noria_task_detach(task), -NORIA_EBADSTATE);
    NORIA_STATUS(noria_task_is_complete(task), 0);
    NORIA_OK_CALL(noria_task_set_name(task, "mine"));
    auto* state = new (room) Output;
    NORIA_OK_CALL(noria_task_start(task));
    NORIA_STATUS(noria_task_start(task), -NORIA_EBADSTATE);
    NORIA_STATUS(noria_task_discard(task), -NORIA_EBADSTATE);
    NORIA_STATUS(noria_task_set_name(task, "late"), -NORIA_EBADSTATE);
    const char* name = nullptr;
    NORIA_OK_CALL(noria_task_name(task, &name));
    cr_assert_str_eq(name, "mine");
    lane.wait_for(task);
    cr_assert_eq(state->drops, 1);
    NORIA_STATUS(noria_task_is_complete(task), 1);
    NORIA_OK_CALL(noria_task_detach(task));
  });
}

Test(TaskAbi, A5_discard_does_not_call_drop) {
  on_each_runtime([](Lane& lane) {
    static std::atomic<int> drops{0};
    noria_task_vtable counted = kNoTake;
    counted.drop = [](void*) { ++drops; };
    void* room = nullptr;
    noria_task* task = nullptr;
    NORIA_OK_CALL(noria_task_new(lane.rt, &counted, 16, 8, &room, &task));
    NORIA_OK_CALL(noria_task_discard(task));
    cr_assert_eq(drops, 0);
  });
}

Test(TaskAbi, Ids_differ_and_are_never_zero) {
  on_each_runtime([](Lane& lane) {
    std::vector<std::uint64_t> ids;
    std::vector<noria_task*> tasks;
    auto add = [&] {
      noria_task* task = spawn(lane.rt, [](const noria_cx*) -> int32_t { return NORIA_READY; });
      std::uint64_t id = 0;
      NORIA_OK_CALL(noria_task_id(task, &id));
      ids.push_back(id);
      tasks.push_back(task);
    };
    for (int i = 0; i < 50; ++i) add();
    lane.inside([&] {
      for (int i = 0; i < 50; ++i) add();
    });
    std::thread other([&] {
      for (int i = 0; i < 50; ++i) add();
    });
    other.join();
    for (std::size_t i = 0; i < ids.size(); ++i) {
      cr_assert_neq(ids[i], 0);
      for (std::size_t j = 0; j < i; ++j) cr_assert_neq(ids[i], ids[j]);
      lane.join(tasks[i]);
    }
  });
}

Test(TaskAbi, A5_join_tells_how_a_task_ended) {
  on_each_runtime([](Lane& lane) {
    Output done, failed, aborted;
    failed.answer = -EIO;
    aborted.answer = NORIA_PENDING;
    noria_join_result how = lane.join(spawn_raw(lane.rt, &kNoTake, &done));
    cr_assert(how.kind == NORIA_JOIN_DONE && how.error == 0);
    how = lane.join(spawn_raw(lane.rt, &kNoTake, &failed));
    cr_assert(how.kind == NORIA_JOIN_FAILED && how.error == -EIO, "A5: a task's -EIO is not join's own");
    noria_task* task = spawn_raw(lane.rt, &kNoTake, &aborted);
    lane.until([&] { return aborted.polls == 1; }, "the first poll");
    NORIA_OK_CALL(noria_task_abort(task));
    how = lane.join(task);
    cr_assert(how.kind == NORIA_JOIN_ABORTED && how.error == 0);
    cr_assert_eq(aborted.drops, 1);
    cr_assert_eq(aborted.polls, 1, "an aborted task is not polled again");
    aborted.kept.wake();  // P3: after completion
  });
}

Test(TaskAbi, A5_poll_that_answers_another_positive_number_fails_the_task) {
  on_each_runtime([](Lane& lane) {
    Output spawned, driven;
    spawned.answer = driven.answer = 42;
    noria_join_result how = lane.join(spawn_raw(lane.rt, &kWithTake, &spawned));
    cr_assert(how.kind == NORIA_JOIN_FAILED && how.error == -EINVAL);
    cr_assert_eq(spawned.drops, 1, "there is no output to keep");
    NORIA_OK_CALL(noria_runtime_block_on(lane.rt, &kNoTake, &driven, &how));
    cr_assert(how.kind == NORIA_JOIN_FAILED && how.error == -EINVAL);
    cr_assert_eq(driven.polls, 1);
  });
}

Test(TaskAbi, Join_futures_any_number_beside_the_poll_form) {
  on_each_runtime([](Lane& lane) {
    Output state;
    state.answer = NORIA_PENDING;
    noria_task* task = spawn_raw(lane.rt, &kNoTake, &state);
    noria_future* futures[5];
    for (noria_future*& future : futures) NORIA_OK_CALL(noria_task_join(task, &future));
    ForeignWaker waker;
    NORIA_STATUS(noria_task_poll_join(task, waker.cx(), nullptr), NORIA_PENDING);
    NORIA_OK_CALL(noria_future_drop(futures[4]));
    NORIA_OK_CALL(noria_future_cancel(futures[3]));
    cr_assert_eq(lane.await(futures[3]), -ECANCELED);
    lane.until([&] { return state.polls == 1; }, "the first poll");
    state.answer = NORIA_READY;
    state.kept.wake();
    noria_join_result how{};
    cr_assert_eq(lane.await(futures[0], &how, sizeof how), NORIA_OK);
    cr_assert_eq(how.kind, NORIA_JOIN_DONE);
    NORIA_OK_CALL(noria_task_detach(task));
    how.kind = 99;
    cr_assert_eq(lane.await(futures[1], &how, sizeof how), NORIA_OK, "it outlives the handle");
    cr_assert_eq(how.kind, NORIA_JOIN_DONE);
    NORIA_OK_CALL(noria_future_drop(futures[2]));
    lane.until([&] { return waker.wakes() == 1; }, "the poll form's wake");
  });
}

Test(TaskAbi, A8_poll_join_keeps_the_last_waker) {
  on_each_runtime([](Lane& lane) {
    Output state;
    state.answer = NORIA_PENDING;
    noria_task* task = spawn_raw(lane.rt, &kNoTake, &state);
    ForeignWaker first, second;
    NORIA_STATUS(noria_task_poll_join(task, first.cx(), nullptr), NORIA_PENDING);
    NORIA_STATUS(noria_task_poll_join(task, first.cx(), nullptr), NORIA_PENDING);
    NORIA_STATUS(noria_task_poll_join(task, second.cx(), nullptr), NORIA_PENDING);
    cr_assert_eq(first.alive(), 0, "A8: the last wins, the other is dropped");
    NORIA_OK_CALL(noria_task_abort(task));
    lane.until([&] { return second.wakes() == 1; }, "the second's wake");
    cr_assert_eq(first.wakes(), 0);
    NORIA_OK_CALL(noria_task_detach(task));
  });
}

Test(TaskAbi, A5_take_moves_the_output_once) {
  on_each_runtime([](Lane& lane) {
    Output state;
    state.answer = NORIA_PENDING;
    int out = 0;
    noria_task* task = spawn_raw(lane.rt, &kWithTake, &state);
    NORIA_STATUS(noria_task_take(task, &out), -EAGAIN);
    NORIA_STATUS(noria_task_take(task, nullptr), -EINVAL);
    lane.until([&] { return state.polls == 1; }, "the first poll");
    state.answer = NORIA_READY;
    state.kept.wake();
    lane.wait_for(task);
    cr_assert_eq(state.drops, 0, "the state lives until its output was taken");
    NORIA_OK_CALL(noria_task_take(task, &out));
    cr_assert_eq(out, 42);
    cr_assert_eq(state.takes, 1);
    cr_assert_eq(state.drops, 1, "drop still runs");
    NORIA_STATUS(noria_task_take(task, &out), -NORIA_ECONSUMED);
    NORIA_OK_CALL(noria_task_abort(task));  // too late
    NORIA_OK_CALL(noria_task_detach(task));
    cr_assert_eq(state.drops, 1);
  });
}

Test(TaskAbi, Take_of_a_task_without_output_tells_why) {
  on_each_runtime([](Lane& lane) {
    Output plain, failed, aborted, untaken;
    int out = 0;
    noria_task* task = spawn_raw(lane.rt, &kNoTake, &plain);
    NORIA_STATUS(noria_task_take(task, &out), -EINVAL);
    lane.join(task);
    failed.answer = -EPIPE;
    task = spawn_raw(lane.rt, &kWithTake, &failed);
    lane.wait_for(task);
    NORIA_STATUS(noria_task_take(task, &out), -EPIPE);
    cr_assert_eq(failed.drops, 1, "no output, so drop follows completion");
    NORIA_OK_CALL(noria_task_detach(task));
    aborted.answer = NORIA_PENDING;
    task = spawn_raw(lane.rt, &kWithTake, &aborted);
    NORIA_OK_CALL(noria_task_abort(task));
    lane.wait_for(task);
    NORIA_STATUS(noria_task_take(task, &out), -ECANCELED);
    cr_assert_eq(aborted.drops, 1);
    NORIA_OK_CALL(noria_task_detach(task));
    task = spawn_raw(lane.rt, &kWithTake, &untaken);
    lane.wait_for(task);
    NORIA_OK_CALL(noria_task_detach(task));
    cr_assert(untaken.drops == 1 && untaken.takes == 0, "a released handle drops the output");
    cr_assert_eq(out, 0);
  });
}

Test(TaskAbi, Detached_before_the_end_the_output_is_dropped_by_the_worker) {
  on_each_runtime([](Lane& lane) {
    Output state;
    state.answer = NORIA_PENDING;
    noria_task* task = spawn_raw(lane.rt, &kWithTake, &state);
    lane.until([&] { return state.polls == 1; }, "the first poll");
    NORIA_OK_CALL(noria_task_detach(task));
    state.answer = NORIA_READY;
    state.kept.wake();
    lane.until([&] { return state.drops == 1; }, "the drop");
    cr_assert_eq(state.takes, 0);
  });
}

// A task without a handle has no room for joiners: what an earlier task of its slot left there must not be taken for its own.
Test(TaskAbi, Detached_from_the_start_its_output_is_dropped_while_a_waker_is_held) {
  on_each_runtime([](Lane& lane) {
    constexpr int kTasks = 600;  // more than a chunk of slots, so that slots are used again
    ForeignWaker joiner;
    for (int i = 0; i < kTasks; ++i) {
      Output joined;
      joined.answer = NORIA_PENDING;
      noria_task* task = spawn_raw(lane.rt, &kNoTake, &joined);
      NORIA_STATUS(noria_task_poll_join(task, joiner.cx(), nullptr), NORIA_PENDING);
      NORIA_OK_CALL(noria_task_abort(task));
      lane.until([&] { return joiner.wakes() == i + 1; }, "the joiner's wake");
      NORIA_OK_CALL(noria_task_detach(task));
    }
    for (int i = 0; i < kTasks; ++i) {
      Output state;
      state.answer = NORIA_PENDING;
      NORIA_OK_CALL(noria_spawn(lane.rt, &kWithTake, &state, nullptr));
      lane.until([&] { return state.polls == 1; }, "the first poll");
      state.answer = NORIA_READY;
      state.kept.wake_by_ref();
      lane.until([&] { return state.drops == 1; }, "the drop");
      cr_assert_eq(state.takes, 0);
    }
    cr_assert_eq(joiner.wakes(), kTasks, "a joiner of an earlier task was woken again");
  });
}

Test(TaskAbi, Abort_from_within_the_own_poll) {
  on_each_runtime([](Lane& lane) {
    std::atomic<noria_task*> self{nullptr};
    std::atomic<int> polls{0};
    auto body = [&](const noria_cx* cx) -> int32_t {
      if (self == nullptr) return noria_yield(cx);
      ++polls;
      NORIA_OK_CALL(noria_task_abort(self));
      return noria_yield(cx);
    };
    noria_task* task = spawn(lane.rt, body);
    self = task;
    noria_join_result how = lane.join(task);
    cr_assert_eq(how.kind, NORIA_JOIN_ABORTED);
    cr_assert_eq(polls, 1);
    // A poll that ends the task wins over the abort that came during it.
    noria_task* unstarted = nullptr;
    unstarted = make_task(lane.rt, [&](const noria_cx*) -> int32_t {
      NORIA_OK_CALL(noria_task_abort(unstarted));
      return NORIA_READY;
    });
    NORIA_OK_CALL(noria_task_start(unstarted));
    cr_assert_eq(lane.join(unstarted).kind, NORIA_JOIN_DONE);
  });
}

Test(TaskAbi, Abort_before_the_first_poll_drops_without_a_poll) {
  on_runtime(kCurrentThread, [](Lane& lane) {
    Output state;
    noria_task* task = spawn_raw(lane.rt, &kWithTake, &state);
    NORIA_OK_CALL(noria_task_abort(task));
    NORIA_OK_CALL(noria_task_abort(task));
    cr_assert_eq(state.drops, 0, "a thread that may run it drops it");
    cr_assert_eq(lane.join(task).kind, NORIA_JOIN_ABORTED);
    cr_assert(state.polls == 0 && state.drops == 1);
  });
}

Test(TaskAbi, Throwing_poll_fails_the_task_and_the_engine_lives) {
  on_each_runtime([](Lane& lane) {
    noria_join_result how = lane.join(spawn(lane.rt, [](const noria_cx*) -> int32_t { throw 1; }));
    cr_assert(how.kind == NORIA_JOIN_FAILED && how.error == -NORIA_ETHROWN);
    how = {};
    noria_task_vtable vtable = kNoTake;
    vtable.poll = [](void*, const noria_cx*) -> int32_t { throw 2; };
    Output state;
    NORIA_OK_CALL(noria_runtime_block_on(lane.rt, &vtable, &state, &how));
    cr_assert(how.kind == NORIA_JOIN_FAILED && how.error == -NORIA_ETHROWN);
    cr_assert_eq(state.drops, 1);
    lane.inside([] {});
  });
}

Test(TaskAbi, Throwing_drop_and_take_end_inside) {
  on_each_runtime([](Lane& lane) {
    noria_task_vtable vtable = kWithTake;
    vtable.drop = [](void* state) {
      output_drop(state);
      throw 3;
    };
    vtable.take = [](void*, void*) { throw 4; };
    Output taken, dropped, blocked;
    int out = 0;
    noria_task* task = spawn_raw(lane.rt, &vtable, &taken);
    lane.wait_for(task);
    NORIA_STATUS(noria_task_take(task, &out), -NORIA_ETHROWN);
    cr_assert_eq(taken.drops, 1);
    NORIA_OK_CALL(noria_task_detach(task));
    vtable.take = nullptr;
    lane.join(spawn_raw(lane.rt, &vtable, &dropped));
    cr_assert_eq(dropped.drops, 1);
    NORIA_OK_CALL(noria_runtime_block_on(lane.rt, &vtable, &blocked, nullptr));
    cr_assert_eq(blocked.drops, 1);
    lane.inside([] {});
  });
}

// It was done before; that the runtime has ended since is no reason to say that it was not.
Test(Task, Join_after_the_end_tells_how_the_task_ended) {
  on_each_runtime([](Lane& lane) {
    noria_task* done = spawn(lane.rt, [](const noria_cx*) -> int32_t { return NORIA_READY; });
    noria_task* dropped = spawn(lane.rt, [](const noria_cx*) -> int32_t { return NORIA_PENDING; });
    lane.wait_for(done);
    NORIA_OK_CALL(noria_runtime_shutdown(lane.rt, kSecond, nullptr));
    const std::pair<noria_task*, std::uint32_t> ends[] = {{done, NORIA_JOIN_DONE}, {dropped, NORIA_JOIN_ABORTED}};
    for (auto [task, kind] : ends) {
      noria_future* join = nullptr;
      noria_join_result how{9, 9};
      NORIA_OK_CALL(noria_task_join(task, &join));
      NORIA_OK_CALL(noria_future_wait(join, 0));
      NORIA_OK_CALL(noria_future_result(join, &how, sizeof how));
      cr_assert_eq(how.kind, kind);
      NORIA_OK_CALL(noria_future_drop(join));
      NORIA_OK_CALL(noria_task_detach(task));
    }
  });
}
