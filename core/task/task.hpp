// task.hpp: a task: header, join part, and the state in place behind them.
// Threads:    see state.hpp for who may touch what.
// Lifetime:   a slot of a slab; freed when the last reference goes, which may be after its runtime closed (the slab
//             outlives it).
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <new>

#include "base/live.hpp"
#include "base/platform.hpp"
#include "noria/task.h"
#include "task/home.hpp"
#include "task/state.hpp"
#include "task/waker.hpp"

namespace noria::task {

class JoinFuture;

// How a task is joined.
struct Joining {
  WakerCell cell;                        // poll_join's waker
  Atomic<JoinFuture*> joiners{nullptr};  // written under the join lock
};

// The first line is all that spawning, waking and polling touch.
struct alignas(kCacheLine) Task {
  StateWord word;
  Task* next = nullptr;             // link of the queue that holds it (S1)
  const noria_task_vtable* vtable;  // immutable
  void* state;                      // immutable pointer; what it points at: the running thread
  Home* home;                       // immutable: where wakes put it
  std::uint64_t id = 0;             // immutable
  const char* name;                 // immutable once started; never null
  std::int32_t error = 0;           // running thread, then whoever sees COMPLETE
  std::uint8_t outcome = NORIA_JOIN_DONE;
  bool joinable = false;  // immutable: the second line is there
  bool local = false;     // immutable: poll and drop on the home's thread only
  bool counted = false;   // immutable: the home counts it and is told when it is freed (a strand)

  // The second line is made for a task that has a handle; nobody can join any other.
  Joining& joining() { return *std::launder(reinterpret_cast<Joining*>(second_line_)); }
  void make_joining() {
    joinable = true;
    new (static_cast<void*>(second_line_)) Joining;
  }

  static constexpr std::size_t kHeader = 104;

  bool has_take() const { return vtable->take != nullptr; }

 private:
  alignas(kCacheLine) std::byte second_line_[sizeof(Joining)];
};
static_assert(sizeof(Task) == 2 * kCacheLine && kCacheLine + sizeof(Joining) == Task::kHeader,
              "the header is one cache line, and the state begins right behind the second part");

extern const noria_waker_vtable kTaskWaker;

// The waker of a task without a reference of its own: for the duration of a poll.
inline noria_waker borrowed_waker(Task* task) { return {&kTaskWaker, task, nullptr}; }

// Fills a raw slot (at least kHeader bytes) with a task. `bits` and `refs` as in StateWord::init.
inline Task* construct(void* slot, const noria_task_vtable* vtable, void* state, Home* home, std::uint64_t id) {
  auto* task = new (slot) Task;
  task->vtable = vtable;
  task->state = state;
  task->name = vtable->size >= sizeof(noria_task_vtable) && vtable->name != nullptr ? vtable->name : "";
  task->home = home;
  task->id = id;
  live_add(Live::kTasks, 1);
  return task;
}

// The error of a poll that answered neither READY nor PENDING: its own, or that there is no such answer.
inline std::int32_t poll_error(std::int32_t result) { return result < 0 ? result : -EINVAL; }

// Polls or drops a task that was just taken from a queue (it is NOTIFIED), and frees it or tells its joiners as the outcome
// demands. True: it was woken meanwhile, and the caller queues it at its home. Runs foreign code; no lock may be held.
[[nodiscard]] bool run(Task* task);

// Drops a task that the caller has claimed (RUNNING): as aborted. Consumes the self reference.
void drop_claimed(Task* task);

// Drops a task that was just taken from a queue, as aborted; for shutdown.
void drop_queued(Task* task);

// One step of shutdown for a task met in a walk; whether it is complete, dropped now, or still queued or running somewhere.
StateWord::Claim drop_for_shutdown(Task* task);
// The same for a local task, on its own thread: its output goes too.
StateWord::Claim drop_local_for_shutdown(Task* task);

void wake_by_ref(Task* task);
void abort(Task* task);
void ref(Task* task);
void unref(Task* task);

// The handle's functions; each runs foreign code (take, drop) on the calling thread.
[[nodiscard]] std::int32_t poll_join(Task* task, const noria_cx* cx, noria_join_result* out);
[[nodiscard]] std::int32_t take(Task* task, void* out);
void detach(Task* task);
[[nodiscard]] noria_join_result outcome_of(const Task* task);  // once it is COMPLETE

// The last step of Home::send_back, on the task's own thread: drops the output and the reference.
void finish_send_back(Task* task);

// The end of the memory; the last reference is gone.
void free_task(Task* task);

}  // namespace noria::task
