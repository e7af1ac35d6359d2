#include "base/clock.hpp"

namespace noria {

void Clock::pause() {
  std::uint64_t expected = kRunning;
  // ORDER: acq_rel, publishes the frozen instant; a second pause loses and changes nothing.
  frozen_ns_.compare_exchange_strong(expected, now_ns(), NORIA_ACQ_REL);
}

void Clock::resume() {
  // ORDER: acquire, pairs with advance; the frozen instant decides the new offset.
  std::uint64_t frozen = frozen_ns_.load(NORIA_ACQUIRE);
  while (frozen != kRunning) {
    // ORDER: relaxed, published by the exchange below.
    offset_ns_.store(frozen - source_ns(), NORIA_RELAXED);
    // ORDER: acq_rel, pairs with the acquire in now_ns: who sees "running" sees the offset. An advance that came between is
    // not lost: the exchange fails and the offset is made anew.
    if (frozen_ns_.compare_exchange_weak(frozen, kRunning, NORIA_ACQ_REL)) return;
  }
}

void Clock::advance(std::uint64_t delta_ns) {
  // ORDER: acquire, pairs with pause.
  std::uint64_t frozen = frozen_ns_.load(NORIA_ACQUIRE);
  while (frozen != kRunning) {
    std::uint64_t next = saturating_add(frozen, delta_ns);
    if (next == kRunning) next = kRunning - 1;
    // ORDER: acq_rel, publishes the new instant to now_ns.
    if (frozen_ns_.compare_exchange_weak(frozen, next, NORIA_ACQ_REL)) return;
  }
}

void Clock::advance_to(std::uint64_t instant_ns) {
  // ORDER: acquire, pairs with pause.
  std::uint64_t frozen = frozen_ns_.load(NORIA_ACQUIRE);
  while (frozen != kRunning && frozen < instant_ns) {
    std::uint64_t next = instant_ns == kRunning ? kRunning - 1 : instant_ns;
    // ORDER: acq_rel, publishes the new instant to now_ns.
    if (frozen_ns_.compare_exchange_weak(frozen, next, NORIA_ACQ_REL)) return;
  }
}

}  // namespace noria
