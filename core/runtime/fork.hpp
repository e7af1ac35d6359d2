// fork.hpp: counts the forks between this process and the one that loaded the library (A15).
#pragma once

#include <cstdint>

#include "base/atomic.hpp"

namespace noria::runtime {

extern constinit Atomic<std::uint64_t> g_fork_generation;

// Differs between a process and its children. Read on every call of the C ABI.
inline std::uint64_t fork_generation() {
  // ORDER: relaxed, changes only in a child, before it has a second thread.
  return g_fork_generation.load(NORIA_RELAXED);
}

}  // namespace noria::runtime
