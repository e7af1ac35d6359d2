// A runtime that ends while something of it is being made, sent or started (P7): the test holds that thread at the place in question,
// ends the runtime on another, and lets it go. Places are the allocator, where the engine makes a thread (--wrap), and where a wake
// rings its worker (--wrap). Memory that is given back is poisoned and not used again, so that whoever still uses it fails.
// (An allocator may not wait for a thread that calls Noria, as these do: the lock that may be held there is one of several, and the
// thread that is waited for has another.)
#include <criterion/criterion.h>
#include <pthread.h>

#include <functional>
#include <vector>

#include "runtime/core.hpp"
#include "sched/scheduler.hpp"
#include "support/runtime_fixture.hpp"

using namespace noria::test;

namespace {

using Act = std::function<void()>;

thread_local Act* t_at_alloc = nullptr;  // once, in this thread's next allocation
thread_local Act* t_at_ring = nullptr;   // once, before this thread's next ring of a worker

void act(Act*& once) {
  if (Act* what = std::exchange(once, nullptr)) (*what)();
}

void* give(std::size_t size, std::size_t align, void*) {
  act(t_at_alloc);
  align = align < 16 ? 16 : align;
  return std::aligned_alloc(align, (size + align - 1) / align * align);
}

void poison(void* block, std::size_t size, std::size_t, void*) {
  std::memset(block, 0xDD, size);
#ifdef NORIA_SANITIZED
  std::free(block);  // a sanitizer tells of its use
#endif
}

const noria_allocator kPoison = {sizeof(noria_allocator), 0, give, poison, nullptr};

// Threads that the engine makes wait here while it is shut.
struct Gate {
  std::atomic<bool> shut{false};
  std::atomic<int> waiting{0};
  void pass() {
    if (!shut) return;
    ++waiting;
    shut.wait(true);
  }
  void open() {
    shut = false;
    shut.notify_all();
  }
} g_gate;

struct Thread {
  void* (*run)(void*);
  void* argument;
};

void* begin(void* data) {
  Thread thread = *static_cast<Thread*>(data);
  delete static_cast<Thread*>(data);
  g_gate.pass();
  return thread.run(thread.argument);
}

void use_poison() { NORIA_OK_CALL(noria_set_allocator(&kPoison)); }

void on_another_thread(const Act& body) { std::thread(body).join(); }

int32_t pending(void*, const noria_cx*) { return NORIA_PENDING; }
void count_drop(void* state) { ++*static_cast<std::atomic<int>*>(state); }
const noria_task_vtable kCounted = {sizeof(noria_task_vtable), 0, pending, count_drop, nullptr, "counted"};

}  // namespace

extern "C" {
int __real_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument);
int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) {
  return __real_pthread_create(thread, attributes, begin, new Thread{run, argument});
}

// Scheduler::wake_worker(std::uint32_t)
void __real__ZN5noria5sched9Scheduler11wake_workerEj(noria::sched::Scheduler* self, std::uint32_t index);
void __wrap__ZN5noria5sched9Scheduler11wake_workerEj(noria::sched::Scheduler* self, std::uint32_t index) {
  act(t_at_ring);
  __real__ZN5noria5sched9Scheduler11wake_workerEj(self, index);
}
}

Test(ShutdownBeside, P7_future_that_is_made_meanwhile_is_cancelled) {
  use_poison();
  on_each_runtime([](Lane& lane) {
    noria_notify* notify = nullptr;
    NORIA_OK_CALL(noria_notify_new(lane.rt, &notify));
    on_another_thread([&] {
      bool ended = false;
      Act end = [&] {
        on_another_thread([&] { NORIA_OK_CALL(noria_runtime_shutdown(lane.rt, kSecond, nullptr)); });
        ended = true;
      };
      noria_future* wait = nullptr;
      t_at_alloc = &end;
      NORIA_OK_CALL(noria_notify_wait(notify, &wait));
      cr_assert(ended, "the future's memory comes from the allocator");
      NORIA_OK_CALL(noria_future_wait(wait, 0));
      NORIA_STATUS(noria_future_result(wait, nullptr, 0), -ECANCELED);
      NORIA_OK_CALL(noria_future_drop(wait));
    });
    NORIA_OK_CALL(noria_notify_drop(notify));
  });
}

// What it joins belongs to another runtime, whose futures stay as they are.
Test(ShutdownBeside, P7_join_all_that_is_made_meanwhile_is_cancelled) {
  use_poison();
  on_each_runtime([](Lane& lane) {
    noria_runtime* other = nullptr;
    noria_notify* notify = nullptr;
    NORIA_OK_CALL(noria_runtime_new(nullptr, &other));
    NORIA_OK_CALL(noria_notify_new(other, &notify));
    std::vector<noria_future*> waits(200);  // more than any slot of a chunk holds: a chunk of its own
    for (noria_future*& wait : waits) NORIA_OK_CALL(noria_notify_wait(notify, &wait));
    on_another_thread([&] {
      bool ended = false;
      Act end = [&] {
        on_another_thread([&] { NORIA_OK_CALL(noria_runtime_shutdown(lane.rt, kSecond, nullptr)); });
        ended = true;
      };
      noria_future* all = nullptr;
      t_at_alloc = &end;
      NORIA_OK_CALL(noria_join_all(lane.rt, waits.data(), waits.size(), &all));
      cr_assert(ended, "the future's memory comes from the allocator");
      NORIA_OK_CALL(noria_future_wait(all, 0));
      NORIA_STATUS(noria_future_result(all, nullptr, 0), -ECANCELED);
      NORIA_OK_CALL(noria_future_drop(all));
    });
    NORIA_OK_CALL(noria_notify_drop(notify));
    NORIA_OK_CALL(noria_runtime_free(other));
  });
}

Test(ShutdownBeside, P7_local_task_that_is_made_between_turns_meanwhile_is_dropped) {
  use_poison();
  on_runtimes(kCurrent, [](Lane& lane) {
    NORIA_OK_CALL(noria_runtime_turn(lane.rt, 0, nullptr));  // this thread owns it now
    std::atomic<int> drops{0};
    int32_t ended = 1;
    Act end = [&] { on_another_thread([&] { ended = noria_runtime_shutdown(lane.rt, kSecond, nullptr); }); };
    t_at_alloc = &end;
    int32_t spawned = noria_spawn_local(lane.rt, &kCounted, &drops, nullptr);
    cr_assert_eq(t_at_alloc, nullptr, "the task's memory comes from the allocator");
    // Either the end comes first and there is no task, or the task is made and the end is this thread's.
    if (spawned == NORIA_OK) {
      NORIA_STATUS(ended, -NORIA_EWRONGTHREAD);
      cr_assert_eq(drops, 0);
      NORIA_OK_CALL(noria_runtime_shutdown(lane.rt, kSecond, nullptr));
      cr_assert_eq(drops, 1, "P2");
    } else {
      NORIA_STATUS(spawned, -NORIA_ESHUTDOWN);
      cr_assert_eq(drops, 0);
    }
  });
}

// The pool's thread begins when the runtime is gone but for the hold that its maker took for it.
Test(ShutdownBeside, P7_pool_thread_that_begins_after_the_end_finds_its_runtime) {
  use_poison();
  for (const Lane& kind : {kCurrentThread, kTwoWorkers}) {
    if (!wanted(kind)) continue;
    Lane lane = kind;
    noria_runtime_options options = lane_options(lane);
    std::atomic<int> starts{0};
    options.on_thread_start = [](void* count) { ++*static_cast<std::atomic<int>*>(count); };
    options.hook_data = &starts;
    NORIA_OK_CALL(noria_runtime_new(&options, &lane.rt));
    lane.until([&] { return starts == static_cast<int>(lane.workers); }, "the workers' threads");
    noria_future* job = nullptr;
    g_gate.shut = true;
    NORIA_OK_CALL(noria_spawn_blocking(
        lane.rt, [](void*) { return 0; }, nullptr, nullptr, &job));
    lane.until([] { return g_gate.waiting == 1; }, "the pool's thread");
    NORIA_OK_CALL(noria_future_drop(job));
    (void)noria_runtime_shutdown(lane.rt, 0, nullptr);
    NORIA_OK_CALL(noria_runtime_release(lane.rt));
    int before = starts;
    g_gate.open();
    await_nothing_alive(lane.name);
    cr_assert_eq(starts, before + 1);
    g_gate.waiting = 0;
  }
}

// Whoever lets go of a local task's output elsewhere sends the task home, and goes on to ring its worker: the runtime is gone by then.
Test(ShutdownBeside, P2_output_that_is_sent_home_keeps_the_runtime_until_its_worker_was_rung) {
  use_poison();
  static std::atomic<int> drops;
  static const noria_task_vtable kOutput = {sizeof(noria_task_vtable),
                                            0,
                                            [](void*, const noria_cx*) -> int32_t { return NORIA_READY; },
                                            [](void*) { ++drops; },
                                            [](void*, void*) {},
                                            "output"};
  int rung = 0;
  for (int i = 0; i < 100 && rung == 0; ++i) {  // it may find something to do once more
    Lane lane = kOneWorker;
    noria_runtime_options options = lane_options(lane);
    NORIA_OK_CALL(noria_runtime_new(&options, &lane.rt));
    drops = 0;
    noria_task* local = nullptr;
    lane.inside([&] { NORIA_OK_CALL(noria_spawn_local(lane.rt, &kOutput, nullptr, &local)); });
    lane.wait_for(local);
    auto& worker = noria::runtime::from_c(lane.rt)->scheduler().worker(0);
    lane.until([&] { return worker.park_state().parked(); }, "the worker's sleep");
    auto end_it = [&] {
      NORIA_OK_CALL(noria_runtime_shutdown(lane.rt, kSecond, nullptr));
      NORIA_OK_CALL(noria_runtime_release(lane.rt));
    };
    Act end = [&] {
      ++rung;
      on_another_thread(end_it);
    };
    t_at_ring = &end;
    NORIA_OK_CALL(noria_task_detach(local));
    if (std::exchange(t_at_ring, nullptr) != nullptr) end_it();
    await_nothing_alive(lane.name);
    cr_assert_eq(drops, 1);
  }
  cr_assert_neq(rung, 0);
}
