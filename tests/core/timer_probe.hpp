// timer_probe.hpp: a timer that counts its callbacks, and a wheel that is run by hand.
#pragma once

#include <cstdint>
#include <vector>

#include "timer/tick.hpp"
#include "timer/wheel.hpp"

namespace noria::timer {

struct Probe : Timer {
  Probe() : Timer(&kOps) {}

  int fired_count = 0;
  int released_count = 0;
  std::uint64_t order = 0;  // how many had fired before, of all probes

  static inline std::uint64_t total_fired = 0;

  static void on_fire(Timer* timer) noexcept {
    Probe* probe = static_cast<Probe*>(timer);
    ++probe->fired_count;
    probe->order = total_fired++;
  }
  static void on_released(Timer* timer) noexcept { ++static_cast<Probe*>(timer)->released_count; }
  static constexpr TimerOps kOps{on_fire, on_released};
};

// Advances to `now_ns` until nothing more is due; returns how many fired.
inline std::size_t run(Wheel& wheel, std::uint64_t now_ns) {
  std::size_t fired_count = 0;
  Advanced result;
  do {
    Expired expired;
    result = wheel.advance(now_ns, expired);
    fired_count += expired.run();
  } while (result == Advanced::kMore);
  return fired_count;
}

inline void clear(Wheel& wheel) {
  bool more = true;
  while (more) {
    Expired expired;
    more = wheel.clear(expired);
    expired.run();
  }
}

// A small generator whose seed a failing test can print.
struct Random {
  std::uint64_t state;
  std::uint64_t next() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  }
  std::uint64_t below(std::uint64_t limit) { return next() % limit; }
};

}  // namespace noria::timer
