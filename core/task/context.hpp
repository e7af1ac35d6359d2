// context.hpp: what a thread is doing for which runtime; one per thread, read on every hot path.
#pragma once

#include <cstdint>

#include "noria/waker.h"

namespace noria {
class Slab;
}
namespace noria::runtime {
class Core;
}
namespace noria::sched {
class Worker;
}

namespace noria::task {

struct Task;

inline constexpr std::uint32_t kBudget = 128;  // operations that are READY in one poll

// The poll that a thread is in. Saved and put back as a whole (task.cpp), in words as wide as they were stored.
struct Poll {
  Task* task = nullptr;            // being polled; nullptr outside a poll
  std::uint32_t budget = kBudget;  // left in this poll
  bool budgeted = false;           // inside a poll that has a budget
  bool self_woken = false;         // the task woke itself during this poll
  bool budget_spent = false;       // a PENDING of this poll came from the budget
  bool unused = false;
};
static_assert(sizeof(Poll) == 16);

struct Context : Poll {
  runtime::Core* core = nullptr;         // current runtime: the worker's, or the one entered
  sched::Worker* worker = nullptr;       // set on a worker (or on the thread that turns a current-thread runtime)
  Slab* slab = nullptr;                  // the worker's memory
  runtime::Core* worker_core = nullptr;  // the worker's runtime: `core` may be another that was entered
  runtime::Core* ending = nullptr;       // takes this runtime down, dropping its tasks
  bool blocking = false;                 // inside block_on: may not block again
  bool in_strand = false;                // polls a task of a strand
  runtime::Core* pool_core = nullptr;    // a thread of this runtime's blocking pool
};

// initial-exec: the library is loaded at start or has room reserved; a call into __tls_get_addr would cost more
// than the access.
extern thread_local constinit Context t_context __attribute__((tls_model("initial-exec")));

// Takes one unit. False: it is spent; the caller arranges a wake and answers PENDING (A10).
[[nodiscard]] inline bool budget_take(Context& context) {
  if (!context.budgeted) return true;
  if (context.budget == 0) {
    context.budget_spent = true;
    return false;
  }
  --context.budget;
  return true;
}

// Gives back what the answer PENDING did not use. Never more than there was at first: a call that began in another poll,
// or outside of one, may end in this.
inline void budget_restore(Context& context) {
  if (context.budgeted && context.budget < kBudget) ++context.budget;
}

// budget_take for a poll form: arranges the wake itself.
[[nodiscard]] inline bool budget_poll(const noria_cx* cx) {
  if (budget_take(t_context)) return true;
  cx->waker->vtable->wake_by_ref(cx->waker);
  return false;
}

}  // namespace noria::task
