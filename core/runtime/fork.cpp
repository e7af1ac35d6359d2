#include "runtime/fork.hpp"

#include <pthread.h>

#include "base/atomic.hpp"
#include "runtime/core.hpp"
#include "task/context.hpp"

namespace noria::runtime {
namespace {

constinit Atomic<std::uint64_t> g_generation{1};

// In the child only the forking thread lives; whatever it was doing for an inherited runtime is over.
void child_after_fork() {
  // ORDER: relaxed, the child has one thread.
  g_generation.store(g_generation.load(NORIA_RELAXED) + 1, NORIA_RELAXED);
  task::t_context = task::Context{};
  Slab::set_current(nullptr);
}

const bool kRegistered = ::pthread_atfork(nullptr, nullptr, child_after_fork) == 0;

}  // namespace

std::uint64_t fork_generation() {
  // ORDER: relaxed, changes only in a child, before it has a second thread.
  return g_generation.load(NORIA_RELAXED);
}

std::uint64_t Core::fork_generation() { return runtime::fork_generation(); }

}  // namespace noria::runtime
