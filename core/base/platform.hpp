// platform.hpp: what the processor and the compiler give: line size, pause, branch hints, functions kept apart.
#pragma once

#include <cstddef>

namespace noria {

// Two threads that write to one line pay a round trip each time; what they own is kept this far apart.
inline constexpr std::size_t kCacheLine = 64;

// Tells the processor that a thread spins, which frees the sibling and shortens the way out.
inline void cpu_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace noria

#define NORIA_LIKELY(x) __builtin_expect(!!(x), 1)
#define NORIA_UNLIKELY(x) __builtin_expect(!!(x), 0)
// Kept out of the callers, which need no stack frame then while they do not call it.
#define NORIA_APART __attribute__((noinline))
