// tick.hpp: nanoseconds and the wheel's ticks of 1 ms, up to the end of u64.
// Invariants: T1 deadline_tick(d) <= now_tick(n) implies d <= n: never early (P6).
//             T2 d <= n implies deadline_tick(d) <= now_tick(n) + 1: late by at most a tick.
// The last whole tick of u64 is followed by two that exist in name only: the one that the last
// instants round up to, reached at kNever - 1, and that of kNever, which no clock reaches.
#pragma once

#include <cstdint>

#include "base/clock.hpp"

namespace noria::timer {

inline constexpr std::uint64_t kTickNs = kNsPerMs;
inline constexpr std::uint64_t kLastWholeTick = kNever / kTickNs;
inline constexpr std::uint64_t kLastTick = kLastWholeTick + 1;
inline constexpr std::uint64_t kNeverTick = kLastWholeTick + 2;
inline constexpr std::uint64_t kNoTick = UINT64_MAX;  // later than every deadline's

// The first tick at which `deadline_ns` has passed.
constexpr std::uint64_t deadline_tick(std::uint64_t deadline_ns) {
  if (deadline_ns == kNever) return kNeverTick;
  return deadline_ns / kTickNs + (deadline_ns % kTickNs != 0 ? 1 : 0);
}

// The last tick that has begun at `now_ns`.
constexpr std::uint64_t now_tick(std::uint64_t now_ns) {
  if (now_ns >= kNever - 1) return now_ns == kNever ? kNeverTick : kLastTick;
  return now_ns / kTickNs;
}

// The instant at which `tick` begins.
constexpr std::uint64_t tick_ns(std::uint64_t tick) {
  if (tick > kLastWholeTick) return tick == kLastTick ? kNever - 1 : kNever;
  return tick * kTickNs;
}

}  // namespace noria::timer
