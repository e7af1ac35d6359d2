// The end of a current-thread runtime (P2, P7) by others than its owner: a job of its pool, a thread beside the owner's turns, somebody
// who comes in the middle of a turn that fails.
#include <criterion/criterion.h>

#include <vector>

#include "support/runtime_fixture.hpp"

using namespace noria::test;

namespace {

int32_t pending(void*, const noria_cx*) { return NORIA_PENDING; }

// A task that notes on which thread it is dropped.
struct Dropped {
  std::atomic<int> drops{0};
  std::thread::id by;
  static void drop(void* state) {
    auto* self = static_cast<Dropped*>(state);
    self->by = std::this_thread::get_id();
    ++self->drops;
  }
};
const noria_task_vtable kNoted = {sizeof(noria_task_vtable), 0, pending, Dropped::drop, nullptr, "noted"};

// Runs a callable as a blocking job, from beginning to end.
template <typename F>
void in_a_job(noria_runtime* rt, F body) {
  noria_future* job = nullptr;
  auto run = [](void* state) -> int32_t { return (*static_cast<F*>(state))(), NORIA_OK; };
  NORIA_OK_CALL(noria_spawn_blocking(rt, run, nullptr, &body, &job));
  while (noria_future_wait(job, kSecond) == -ETIMEDOUT) {
  }
  NORIA_OK_CALL(noria_future_drop(job));
}

noria_runtime* make_current() {
  noria_runtime_options options = lane_options(kCurrentThread);
  noria_runtime* rt = nullptr;
  NORIA_OK_CALL(noria_runtime_new(&options, &rt));
  return rt;
}

}  // namespace

Test(CurrentEnd, P2_a_job_that_shuts_down_between_turns_leaves_local_tasks_to_their_thread) {
  Watchdog watchdog("a shutdown in a job");
  noria_runtime* rt = make_current();
  NORIA_OK_CALL(noria_runtime_turn(rt, 0, nullptr));
  Dropped local;
  NORIA_OK_CALL(noria_spawn_local(rt, &kNoted, &local, nullptr));
  in_a_job(rt, [rt] { NORIA_STATUS(noria_runtime_shutdown(rt, 0, nullptr), NORIA_PENDING); });
  cr_assert_eq(local.drops, 0, "P2: a local task was dropped on another thread");
  NORIA_STATUS(noria_runtime_turn(rt, 0, nullptr), -NORIA_ESHUTDOWN);  // which ends it
  cr_assert_eq(local.drops, 1);
  cr_assert_eq(local.by, std::this_thread::get_id());
  NORIA_OK_CALL(noria_runtime_release(rt));
  assert_nothing_alive("ended by the owner's turn");
}

// The last reference stays with the job: with it the task's thread could no longer end the runtime.
Test(CurrentEnd, P2_a_job_cannot_release_the_last_reference_over_local_tasks) {
  Watchdog watchdog("a release in a job");
  noria_runtime* rt = make_current();
  NORIA_OK_CALL(noria_runtime_turn(rt, 0, nullptr));
  Dropped local;
  NORIA_OK_CALL(noria_spawn_local(rt, &kNoted, &local, nullptr));
  in_a_job(rt, [rt] { NORIA_STATUS(noria_runtime_release(rt), -NORIA_EWRONGTHREAD); });
  cr_assert_eq(local.drops, 0, "P2: a local task was dropped on another thread");
  NORIA_OK_CALL(noria_runtime_release(rt));
  cr_assert_eq(local.drops, 1);
  cr_assert_eq(local.by, std::this_thread::get_id());
  assert_nothing_alive("released by the owner");
}

// Where nothing is local, a job ends it.
Test(CurrentEnd, P7_a_job_that_shuts_down_between_turns_ends_it) {
  Watchdog watchdog("a shutdown in a job");
  noria_runtime* rt = make_current();
  NORIA_OK_CALL(noria_runtime_turn(rt, 0, nullptr));
  Dropped task;
  NORIA_OK_CALL(noria_spawn(rt, &kNoted, &task, nullptr));
  in_a_job(rt, [rt] { NORIA_STATUS(noria_runtime_shutdown(rt, 0, nullptr), NORIA_PENDING); });
  cr_assert_eq(task.drops, 1, "P7");
  NORIA_OK_CALL(noria_runtime_release(rt));
  await_nothing_alive("ended by a job");
}

namespace {

struct Gate {
  Latch open, done;
  std::atomic<bool> armed{false};
} g_gate;
thread_local bool t_denied = false;

void* give(std::size_t size, std::size_t align, void*) {
  if (t_denied && g_gate.armed.exchange(false)) {
    g_gate.open.count_down();
    g_gate.done.wait("the shutdown during a turn");
    return nullptr;
  }
  return std::aligned_alloc(align < 16 ? 16 : align, (size + 4095) / 4096 * 4096);
}
void take_back(void* block, std::size_t, std::size_t, void*) { std::free(block); }
const noria_allocator kGated = {sizeof(noria_allocator), 0, give, take_back, nullptr};

}  // namespace

// A turn has taken the runtime and finds no memory to enter it; whoever shut it down meanwhile has left the end to the turn.
Test(CurrentEnd, P7_a_turn_without_memory_ends_what_was_shut_down_meanwhile) {
  Watchdog watchdog("a turn without memory");
  NORIA_OK_CALL(noria_set_allocator(&kGated));
  noria_runtime* rt = make_current();
  NORIA_OK_CALL(noria_runtime_turn(rt, 0, nullptr));
  Dropped task;
  NORIA_OK_CALL(noria_spawn(rt, &kNoted, &task, nullptr));
  auto shut_down = [](void* runtime) -> int32_t {
    g_gate.open.wait("a turn that allocates");
    NORIA_STATUS(noria_runtime_shutdown(static_cast<noria_runtime*>(runtime), 0, nullptr), NORIA_PENDING);
    g_gate.done.count_down();
    return NORIA_OK;
  };
  noria_future* job = nullptr;
  NORIA_OK_CALL(noria_spawn_blocking(rt, shut_down, nullptr, rt, &job));
  g_gate.armed = true;
  t_denied = true;
  NORIA_STATUS(noria_runtime_turn(rt, 0, nullptr), -ENOMEM);
  t_denied = false;
  cr_assert_eq(task.drops, 1, "P7: nobody ends the runtime");
  NORIA_OK_CALL(noria_future_drop(job));
  NORIA_OK_CALL(noria_runtime_release(rt));
  await_nothing_alive("ended by a turn that failed");
}

// It only looks: with local tasks about, nothing is done, and the owner notices nothing.
Test(CurrentEnd, Shutdown_that_is_refused_disturbs_no_turn) {
  std::vector<Dropped> tasks(200);
  on_runtimes(kCurrent, [&tasks](Lane& lane) {
    NORIA_OK_CALL(noria_runtime_turn(lane.rt, 0, nullptr));
    for (Dropped& task : tasks) NORIA_OK_CALL(noria_spawn_local(lane.rt, &kNoted, &task, nullptr));
    std::atomic<bool> end{false};
    std::atomic<int> refused{0};
    std::thread beside([&] {
      while (!end) {
        NORIA_STATUS(noria_runtime_shutdown(lane.rt, 0, nullptr), -NORIA_EWRONGTHREAD);
        ++refused;
      }
    });
    Watchdog watchdog("turns beside a shutdown");
    for (int i = 0; i < rounds(3000, 100000) || refused < rounds(3000, 100000); ++i) {
      NORIA_OK_CALL(noria_runtime_turn(lane.rt, 0, nullptr));
      noria_task* local = nullptr;
      NORIA_OK_CALL(noria_spawn_local(lane.rt, &kNoted, &tasks[0], &local));
      NORIA_OK_CALL(noria_task_abort(local));
      NORIA_OK_CALL(noria_task_detach(local));
    }
    end = true;
    beside.join();
  });
}

// And one that goes ahead holds nothing while functions of the user's run.
Test(CurrentEnd, Turn_during_a_shutdown_that_discards_jobs_is_no_other_threads) {
  Watchdog watchdog("a shutdown that discards a job");
  noria_runtime_options options = lane_options(kCurrentThread);
  options.pool_user_threads = 1;
  noria_runtime* rt = nullptr;
  NORIA_OK_CALL(noria_runtime_new(&options, &rt));
  NORIA_OK_CALL(noria_runtime_turn(rt, 0, nullptr));
  struct {
    Latch running, discarding, turned;
  } at;
  using At = decltype(at);
  auto run = [](void* data) -> int32_t {
    static_cast<At*>(data)->running.count_down();
    static_cast<At*>(data)->turned.wait("a turn");
    return NORIA_OK;
  };
  auto discard = [](void* data) {
    static_cast<At*>(data)->discarding.count_down();
    static_cast<At*>(data)->turned.wait("a turn");
  };
  NORIA_OK_CALL(noria_spawn_blocking(rt, run, nullptr, &at, nullptr));
  at.running.wait("the only thread of the pool");
  NORIA_OK_CALL(noria_spawn_blocking(rt, run, discard, &at, nullptr));
  std::thread beside([rt] { NORIA_OK_CALL(noria_runtime_shutdown(rt, kSecond, nullptr)); });
  at.discarding.wait("a discard");
  NORIA_OK_CALL(noria_runtime_turn(rt, 0, nullptr));
  Dropped local;
  NORIA_STATUS(noria_spawn_local(rt, &kNoted, &local, nullptr), -NORIA_ESHUTDOWN);
  at.turned.count_down();
  beside.join();
  NORIA_STATUS(noria_runtime_turn(rt, 0, nullptr), -NORIA_ESHUTDOWN);
  NORIA_OK_CALL(noria_runtime_release(rt));
  await_nothing_alive("ended beside turns");
}
