// core.hpp: one runtime: owns the four engines and hands them to each other; what stands on it uses this class.
// Threads:    any, unless a line says otherwise.
// Lifetime:   references of users and of its threads, and one for each slab that still holds a live slot: tasks,
//             futures, timers, sources and buffers are slots, so whatever holds one may use the core.
#pragma once

#include <cstdint>
#include <new>
#include <utility>

#include "base/clock.hpp"
#include "base/slab.hpp"
#include "noria/noria.h"
#include "runtime/options.hpp"
#include "task/context.hpp"
#include "task/future.hpp"
#include "task/task.hpp"

namespace noria {
namespace reactor {
class Reactor;
}
namespace timer {
struct Timer;
}
namespace blocking {
class Pool;
struct Job;
}  // namespace blocking
namespace sched {
class Scheduler;
}

namespace runtime {

class Core {
 public:
  // --- memory: a slot of this thread's slab, or of a guest slab. nullptr: out of memory. Freed by Slab::free.
  [[nodiscard]] void* alloc(SlotKind kind, std::size_t size, std::size_t align) noexcept;

  // Makes an object in a slot; T's first member is its life word, which the constructor must set non-zero.
  template <typename T, typename... Args>
  [[nodiscard]] T* make(SlotKind kind, Args&&... args) noexcept {
    void* slot = alloc(kind, sizeof(T), alignof(T));
    return slot == nullptr ? nullptr : new (slot) T(std::forward<Args>(args)...);
  }

  // Makes an operation: T(core, args...) derives from task::Future. nullptr: out of memory.
  template <typename T, typename... Args>
  [[nodiscard]] T* make_future(Args&&... args) noexcept {
    T* future = make<T>(SlotKind::kFuture, this, std::forward<Args>(args)...);
    if (future != nullptr) live_add(Live::kFutures, 1);
    return future;
  }

  // --- tasks. The state passes on success. `out` (may be nullptr) gets a handle.
  [[nodiscard]] std::int32_t spawn(const noria_task_vtable* vtable, void* state, task::Task** out);
  [[nodiscard]] std::int32_t spawn_local(const noria_task_vtable* vtable, void* state, task::Task** out);
  // In a home of its own (a strand).
  [[nodiscard]] std::int32_t spawn_at(task::Home* home, const noria_task_vtable* vtable, void* state, task::Task** out);
  [[nodiscard]] std::int32_t create_at(task::Home* home, const noria_task_vtable* vtable, std::size_t size, std::size_t align,
                                       void** state, task::Task** out);
  [[nodiscard]] std::int32_t start(task::Task* task);
  task::Home* home();  // of tasks that may run on any worker

  // --- time
  Clock& clock() { return clock_; }
  std::uint64_t now_ns() const { return clock_.now_ns(); }
  // Arms a timer that is not armed. It is put into this worker's wheel, or the guests' wheel; sleepers are told.
  void timer_arm(timer::Timer& timer, std::uint64_t deadline_ns);
  // Moves the deadline of a timer in whatever state. False: it had fired and must be armed anew by the caller.
  bool timer_reset(timer::Timer& timer, std::uint64_t deadline_ns);
  // True: it will not fire. False: it has fired or is firing.
  bool timer_cancel(timer::Timer& timer);
  // The clock was moved or resumed: whoever sleeps looks again.
  void clock_changed();

  // --- the other engines
  reactor::Reactor* reactor();  // nullptr when I/O is off
  blocking::Pool& pool();

  bool io_enabled() const { return options_.io; }
  bool time_enabled() const { return options_.time; }
  const Options& options() const { return options_; }
  // No new work is taken (a shutdown has begun).
  bool closed() const;
  // This process is a child that inherited the runtime through fork.
  bool forked() const;

  // --- references
  void retain();
  void release();

  // The current runtime of this thread, or nullptr.
  static Core* current() { return task::t_context.core; }

 private:
  friend class Lifecycle;

  Options options_;
  Clock clock_;
};

inline noria_runtime* to_c(Core* core) { return reinterpret_cast<noria_runtime*>(core); }
inline Core* from_c(noria_runtime* rt) { return reinterpret_cast<Core*>(rt); }

}  // namespace runtime
}  // namespace noria
