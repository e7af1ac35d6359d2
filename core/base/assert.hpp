// assert.hpp: a bug in Noria stops the process with the name of the broken invariant.
#pragma once

#include "base/platform.hpp"

namespace noria {

// Prints the invariant and where it broke, then aborts. Allocates nothing.
[[noreturn]] void assert_failed(const char* invariant, const char* file, int line);

}  // namespace noria

// Checked in every build: for conditions that cost a compare.
#define NORIA_ASSERT(condition, invariant)                                                     \
  do {                                                                                         \
    if (NORIA_UNLIKELY(!(condition))) ::noria::assert_failed((invariant), __FILE__, __LINE__); \
  } while (0)

// Checked without NDEBUG only: for conditions that cost a walk or an atomic load.
#ifdef NDEBUG
#define NORIA_DEBUG_ASSERT(condition, invariant) ((void)0)
#else
#define NORIA_DEBUG_ASSERT(condition, invariant) NORIA_ASSERT(condition, invariant)
#endif
