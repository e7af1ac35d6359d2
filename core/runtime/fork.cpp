#include "runtime/fork.hpp"

#include <pthread.h>

#include "base/slab.hpp"
#include "task/context.hpp"
#include "task/join.hpp"

namespace noria::runtime {

constinit Atomic<std::uint64_t> g_fork_generation{1};

namespace {

// In the child only the forking thread lives; whatever it was doing for an inherited runtime is over.
void child_after_fork() {
  // ORDER: relaxed, the child has one thread.
  g_fork_generation.store(g_fork_generation.load(NORIA_RELAXED) + 1, NORIA_RELAXED);
  task::t_context = task::Context{};
  Slab::set_current(nullptr);
  task::forget_join_locks();
}

const bool kRegistered = ::pthread_atfork(nullptr, nullptr, child_after_fork) == 0;

}  // namespace

}  // namespace noria::runtime
