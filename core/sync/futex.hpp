// futex.hpp: sleeping on a 32-bit word until somebody changes it.
#pragma once

#include <cstdint>

#include "base/atomic.hpp"

namespace noria::sync {

// Sleeps while `word` is `expected`, for at most `timeout_ns` (kNever: without end). May return early for no reason.
void futex_wait(Atomic<std::uint32_t>& word, std::uint32_t expected, std::uint64_t timeout_ns) noexcept;

// Wakes one sleeper. The word's memory may be gone by now: only its address is used.
void futex_wake(Atomic<std::uint32_t>& word) noexcept;
void futex_wake_all(Atomic<std::uint32_t>& word) noexcept;

}  // namespace noria::sync
