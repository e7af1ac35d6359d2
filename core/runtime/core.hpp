// core.hpp: one runtime: owns the four engines and hands them to each other; what stands on it uses this class.
// Threads:    any, unless a line says otherwise.
// Invariants: C1 users_ counts handles and entered threads; when it falls to zero a shutdown begins. C2 holders_ counts the users (as
//             one), and each thread of the runtime; when it falls to zero the slabs are orphaned. C3 parts_ counts the slabs; each ends with
//             its last live slot, and with the last slab ends the core.
// Lifetime:   so tasks, futures, timers, sources and buffers (slots, all of them) may use the core as long as they live, and count
//             nothing for it.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "base/allocated.hpp"
#include "base/clock.hpp"
#include "base/live.hpp"
#include "base/slab.hpp"
#include "noria/noria.h"
#include "runtime/clock_holds.hpp"
#include "runtime/fork.hpp"
#include "runtime/options.hpp"
#include "sync/mutex.hpp"
#include "task/context.hpp"
#include "task/future.hpp"
#include "task/task.hpp"

namespace noria {
namespace reactor {
class Reactor;
}
namespace timer {
struct Timer;
class Wheel;
}  // namespace timer
namespace blocking {
class Pool;
}
namespace sched {
class Scheduler;
class Worker;
}  // namespace sched

namespace runtime {

class EngineDriver;
class ThreadWaker;

class Core {
 public:
  [[nodiscard]] static std::int32_t create(const noria_runtime_options* options, Core** out);

  // --- memory: a slot of this thread's slab, or of a guest slab. nullptr: out of memory. Freed by Slab::free.
  [[nodiscard]] void* alloc(SlotKind kind, std::size_t size, std::size_t align) noexcept {
    task::Context& context = task::t_context;
    return NORIA_LIKELY(context.worker_core == this) ? context.slab->alloc(kind, size, align)
                                                     : alloc_guest(kind, size, align);
  }

  // Makes an object in a slot; T's first member is its life word.
  template <typename T, typename... Args>
  [[nodiscard]] T* make(SlotKind kind, Args&&... args) noexcept {
    void* slot = alloc(kind, sizeof(T), alignof(T));
    return slot == nullptr ? nullptr : new (slot) T(std::forward<Args>(args)...);
  }

  // Makes an operation: T(core, args...) derives from task::Future. nullptr: out of memory. A shutdown walk may cancel it
  // as soon as this returns: an operation that begins later (enters a list) must check for that, e.g. with claimed().
  template <typename T, typename... Args>
  [[nodiscard]] T* make_future(Args&&... args) noexcept {
    T* future = make<T>(SlotKind::kFuture, this, std::forward<Args>(args)...);
    if (future == nullptr) return nullptr;
    publish(*future);
    return future;
  }
  // For a future that is larger than its type: what make_future does with the constructed object.
  void publish(task::Future& future) {
    live_add(Live::kFutures, 1);
    future.publish_life();
    if (task::t_context.worker_core != this) cancel_if_late(future);
  }

  // --- tasks. The state passes on success. `out` (may be nullptr) gets a handle.
  [[nodiscard]] std::int32_t spawn(const noria_task_vtable* vtable, void* state, task::Task** out);
  // On this thread's worker; -NORIA_EWRONGTHREAD elsewhere.
  [[nodiscard]] std::int32_t spawn_local(const noria_task_vtable* vtable, void* state, task::Task** out);
  // In a home of its own (a strand), which counts the task if `counted`.
  [[nodiscard]] std::int32_t spawn_at(task::Home* home, bool counted, const noria_task_vtable* vtable, void* state,
                                      task::Task** out);
  // Made and not started: size bytes of room for the state.
  [[nodiscard]] std::int32_t create_task(task::Home* home, bool counted, const noria_task_vtable* vtable,
                                         std::size_t size, std::size_t align, void** state, task::Task** out);
  [[nodiscard]] std::int32_t start(task::Task* task);
  task::Home* home();  // of tasks that may run on any worker

  // --- time
  Clock& clock() { return clock_; }
  std::uint64_t now_ns() const { return clock_.now_ns(); }
  // Arms an idle timer in this worker's wheel, or in the guests'; sleepers are told. False: the runtime is closing, and
  // the wheel's reference stays with the caller.
  [[nodiscard]] bool timer_arm(timer::Timer& timer, std::uint64_t deadline_ns);
  // Moves the deadline of an armed timer. False: it has fired or was cancelled.
  [[nodiscard]] bool timer_reset(timer::Timer& timer, std::uint64_t deadline_ns);
  // True: it will not fire.
  bool timer_cancel(timer::Timer& timer);
  // The clock was moved or resumed: whoever sleeps looks again.
  void clock_changed();
  // Something runs outside of the workers, so that paused time must not jump: every hold is given back by release_clock.
  void hold_clock();
  void release_clock();
  bool clock_held();
  // Moves paused time forward, unless it is held. The poller.
  bool jump_clock(std::uint64_t deadline_ns);

  // A job of the user's was discarded by the pool.
  void count_dropped_job() {
    // ORDER: relaxed, read for the report, when the pool is empty and its threads have left.
    jobs_dropped_.fetch_add(1, NORIA_RELAXED);
  }

  // --- the other engines
  reactor::Reactor* reactor() { return options_.io ? reactor_.get() : nullptr; }  // nullptr when I/O is off
  blocking::Pool& pool() { return *pool_; }
  sched::Scheduler& scheduler() { return *scheduler_; }
  // Whether this thread owns this current-thread runtime, between two turns too.
  bool owned_here() const;
  // This thread's worker if it is one of this runtime's.
  sched::Worker* worker_here() const { return task::t_context.worker_core == this ? task::t_context.worker : nullptr; }
  // Whether this thread is a worker or pool thread of this runtime, or drives it.
  bool inside() const {
    const task::Context& context = task::t_context;
    return context.worker_core == this || context.pool_core == this || context.ending == this;
  }

  bool io_enabled() const { return options_.io; }
  bool time_enabled() const { return options_.time; }
  const Options& options() const { return options_; }
  // No new work is taken (a shutdown has begun).
  bool closed() const {
    // ORDER: acquire, pairs with the exchange that closes.
    return phase_.load(NORIA_ACQUIRE) >= kClosing;
  }
  // This process is a child that inherited the runtime through fork.
  bool forked() const { return fork_generation_ != fork_generation(); }

  std::uint64_t live_tasks();
  std::uint64_t armed_timers() const;

  // --- references
  void retain();
  // -NORIA_EWRONGTHREAD: the last one of a current-thread runtime whose local tasks belong to another thread; it is kept.
  [[nodiscard]] std::int32_t release();
  // Makes it the thread's current runtime, and undoes that; nests.
  [[nodiscard]] std::int32_t enter();
  [[nodiscard]] std::int32_t leave();

  // --- the end. See noria_runtime_shutdown.
  [[nodiscard]] std::int32_t shutdown(std::uint64_t timeout_ns, noria_shutdown_report* report);

  // --- driving, on this thread
  [[nodiscard]] std::int32_t block_on(const noria_task_vtable* vtable, void* state, noria_join_result* out);
  [[nodiscard]] std::int32_t turn(std::uint64_t timeout_ns, std::uint32_t* polls);
  [[nodiscard]] std::int32_t next_timeout(std::uint64_t* timeout_ns);
  // Of whatever runtime this thread is a worker of, or of none.
  [[nodiscard]] static std::int32_t block_in_place(std::int32_t (*run)(void*), void* arg, std::int32_t* result);
  std::int32_t fd() const;

  // The current runtime of this thread, or nullptr.
  static Core* current() { return task::t_context.core; }

 private:
  friend class EngineDriver;

  bool wake_waits();

  static constexpr std::uint32_t kOpen = 0;
  static constexpr std::uint32_t kClaimed =
      1;  // the first shutdown refuses jobs, and takes back those that have not begun
  static constexpr std::uint32_t kClosing = 2;  // no new work; nobody has begun to take the rest down
  static constexpr std::uint32_t kEnding = 3;   // one thread does
  static constexpr std::uint32_t kEnded = 4;    // report_ is written
  static constexpr std::uint32_t kGuests = 4;
  // driving_: kFree -> kDriven -> kFree by who turns it or blocks on it; kFree -> kLookedAt by who asks whether he may end it, then kFree, or
  // kTakenDown -> kFree, by him. While it is kLookedAt nothing foreign runs: whoever finds that waits for it. All seq_cst, see end_if_closing.
  static constexpr std::uint32_t kFree = 0;
  static constexpr std::uint32_t kDriven = 1;
  static constexpr std::uint32_t kLookedAt = 2;
  static constexpr std::uint32_t kTakenDown = 3;

  // Memory for threads that are no workers; one lock each, threads are spread over them.
  struct alignas(kCacheLine) Guest {
    sync::Mutex lock;
    Slab* slab = nullptr;  // guarded by lock; nullptr once orphaned
  };

  Core();
  ~Core();

  // core.cpp
  std::int32_t build();
  std::int32_t build_slabs(Vector<Slab*>& workers);
  std::int32_t build_pool();
  void* alloc_guest(SlotKind kind, std::size_t size, std::size_t align) noexcept;
  static void slab_ended(void* core);
  void add_holder();
  void drop_holder();
  void orphan();

  // threads.cpp
  std::int32_t start_threads();
  void stop_started(std::uint32_t count);
  static void* thread_main(void* worker);
  static void run_worker_on_pool(void* worker);
  void run_worker(sched::Worker& worker);
  void worker_ended(sched::Worker& worker);
  void part_ended();
  static void pool_thread_made(void* core);
  static void pool_thread_failed(void* core);
  static void pool_thread_start(void* core);
  static void pool_thread_stop(void* core);

  // shutdown.cpp
  bool claim();
  bool close();
  void close_claimed();
  std::int32_t end(std::uint64_t timeout_ns, noria_shutdown_report* report);
  std::int32_t wait_for_end(std::uint64_t deadline_ns, noria_shutdown_report* report);
  void take_down(std::uint64_t deadline_ns);
  bool wait_for_workers(std::uint64_t deadline_ns);
  std::uint32_t polls_running() const;
  void join_threads(bool all_left);
  std::int32_t shutdown_current(std::uint64_t timeout_ns, noria_shutdown_report* report);
  void end_worker_here();
  bool end_if_closing(std::uint64_t timeout_ns);
  [[nodiscard]] std::int32_t spawn_on(sched::Worker& worker, const noria_task_vtable* vtable, void* state,
                                      task::Task** out);
  bool has_local_tasks();
  bool left_to_owner();
  void start_reaper();
  static void* reap(void* core);
  void name_running();

  // sweep.cpp
  struct Swept {
    std::uint64_t tasks = 0;
    std::uint64_t futures = 0;
  };
  void pushed_late();
  void cancel_if_late(task::Future& future);
  void sweep_late();
  Swept sweep(bool alone);
  std::uint32_t sweep_tasks(Swept& swept);
  void sweep_queues(Swept& swept);
  void sweep_futures(Swept& swept);
  void sweep_wheels();

  // turn.cpp
  [[nodiscard]] static std::int32_t give_worker_away();
  [[nodiscard]] std::uint32_t take_worker(std::uint32_t as);
  [[nodiscard]] std::int32_t begin_driving();
  void end_driving();
  [[nodiscard]] std::int32_t block_on_current(const noria_task_vtable* vtable, void* state, noria_join_result* out);
  [[nodiscard]] std::int32_t block_on_thread(const noria_task_vtable* vtable, void* state, noria_join_result* out);

  Options options_;
  Clock clock_;
  std::uint64_t fork_generation_ = 0;
  std::unique_ptr<reactor::Reactor> reactor_;
  std::unique_ptr<EngineDriver> driver_;
  blocking::Pool* pool_ = nullptr;
  Vector<std::unique_ptr<timer::Wheel>> wheels_;  // the workers', then the guests'
  std::unique_ptr<sched::Scheduler> scheduler_;
  Vector<Slab*> slabs_;  // the workers', then the guests'
  Guest guests_[kGuests];
  Vector<pthread_t> threads_;

  alignas(kCacheLine) Atomic<std::uint64_t> users_{1};
  Atomic<std::uint64_t> holders_{1};
  Atomic<std::uint32_t> parts_{0};
  Atomic<std::uint32_t> phase_{kOpen};
  // What has not ended yet, a futex: owners of workers, and threads of workers (which block_in_place may have parted).
  Atomic<std::uint32_t> left_{0};
  Atomic<std::uint32_t> blocked_in_place_{0};
  Atomic<std::uint64_t> jobs_dropped_{0};
  ClockHolds clock_holds_;
  Atomic<std::uintptr_t> owner_{0};       // thread that a current-thread runtime belongs to
  Atomic<std::uint32_t> driving_{kFree};  // who has its worker now

  Atomic<bool> last_worker_ends_{false};  // no reaper could be made: the last worker does its work

  sync::Mutex blocked_lock_;
  ThreadWaker* blocked_ = nullptr;  // guarded by blocked_lock_: threads in block_on
  noria_shutdown_report report_{};  // the one that is ending it, then immutable
};

inline noria_runtime* to_c(Core* core) { return reinterpret_cast<noria_runtime*>(core); }
inline Core* from_c(noria_runtime* rt) { return reinterpret_cast<Core*>(rt); }

}  // namespace runtime
}  // namespace noria
