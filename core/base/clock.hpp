// clock.hpp: the time that one runtime lives in.
// Threads:    now_ns from any thread; pause, advance, resume serialised by the clock itself.
// Invariants: C1 now_ns never goes back, but for a call that a pause or a resume overtakes: what a pause froze may lie before what others have
//             read while it began, and a reading that a whole pause overtakes may be short by as long as that lasted. C2 while paused, time moves only by advance().
// Source:     CLOCK_MONOTONIC (suspend does not count); tests inject their own function.
#pragma once

#include <time.h>

#include <cstdint>

#include "base/atomic.hpp"
#include "base/platform.hpp"

namespace noria {

inline constexpr std::uint64_t kNever = UINT64_MAX;  // a deadline that no clock reaches
inline constexpr std::uint64_t kNsPerMs = 1'000'000;
inline constexpr std::uint64_t kNsPerSec = 1'000'000'000;

// The system's monotonic clock, in ns. About 24 ns a call through the vDSO.
inline std::uint64_t monotonic_ns() {
  timespec t;
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * kNsPerSec + static_cast<std::uint64_t>(t.tv_nsec);
}

// a + b, or kNever where that would wrap: any deadline up to the end of u64 works (P6).
inline std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) { return a > kNever - b ? kNever : a + b; }

class Clock {
 public:
  using NowFn = std::uint64_t (*)(void* data);

  // A clock on `now(data)`, or on CLOCK_MONOTONIC where `now` is null.
  explicit Clock(NowFn now = nullptr, void* data = nullptr) : now_(now), data_(data) {}

  // Before anybody reads it.
  void use(NowFn now, void* data) {
    now_ = now;
    data_ = data;
  }

  std::uint64_t now_ns() const {
    // ORDER: acquire, pairs with the release in pause/advance, so that a reader that sees the
    // clock paused also sees the instant it stands at.
    std::uint64_t frozen = frozen_ns_.load(NORIA_ACQUIRE);
    if (NORIA_UNLIKELY(frozen != kRunning)) return frozen;
    // ORDER: relaxed, the offset changes only while paused; a stale one is an earlier resume's, one too new the case that C1 names.
    return source_ns() + offset_ns_.load(NORIA_RELAXED);
  }

  // ORDER: acquire, as in now_ns.
  bool paused() const { return frozen_ns_.load(NORIA_ACQUIRE) != kRunning; }

  void pause();                          // freezes time at this instant; twice is once
  void resume();                         // goes on from the frozen instant at real speed
  void advance(std::uint64_t delta_ns);  // paused only; saturates below kNever
  // Paused only: moves forward to `instant_ns` unless time is already past it.
  void advance_to(std::uint64_t instant_ns);

 private:
  static constexpr std::uint64_t kRunning = UINT64_MAX;

  std::uint64_t source_ns() const { return now_ != nullptr ? now_(data_) : monotonic_ns(); }

  NowFn now_;   // immutable once read
  void* data_;  // immutable once read
  Atomic<std::uint64_t> frozen_ns_{kRunning};
  Atomic<std::uint64_t> offset_ns_{0};  // modulo 2^64, added to the source's time
};

}  // namespace noria
