// parker.hpp: the door at which one worker sleeps, in a futex or in the reactor.
//
//   from             to        by          order
//   RUNNING          PARKED    the worker  seq_cst  against wakers that look for somebody parked
//   PARKED, BELL     NOTIFIED  a waker     seq_cst  who has counted the worker as awake and searching, in the idle word
//   PARKED           BELL      anyone      seq_cst  "look again": it stays parked and counted so
//   BELL             PARKED    the worker  seq_cst  before it looks again: who found BELL relies on that look
//   any              RUNNING   the worker  acq_rel  the old state says whether a waker has counted it
// Invariants: P1 a worker that leaves with NOTIFIED is counted already, with any other state it has counted itself before: the
//             count of searchers cannot leak.
#pragma once

#include <cstdint>

#include "base/atomic.hpp"

namespace noria::sync {

class ParkState {
 public:
  static constexpr std::uint32_t kRunning = 0;
  static constexpr std::uint32_t kParked = 1;
  static constexpr std::uint32_t kBell = 2;
  static constexpr std::uint32_t kNotified = 3;

  // ORDER: seq_cst, before the worker's last look at the queues; pairs with notify after a push.
  void prepare() { state_.store(kParked, NORIA_SEQ_CST); }

  // PARKED or BELL -> NOTIFIED. False: it is awake or somebody else was faster.
  [[nodiscard]] bool notify() {
    // ORDER: seq_cst, after the waker's push; pairs with prepare.
    std::uint32_t state = state_.load(NORIA_SEQ_CST);
    while (state == kParked || state == kBell) {
      // ORDER: seq_cst, as above. Failure is retried.
      if (state_.compare_exchange_weak(state, kNotified, NORIA_SEQ_CST)) return true;
    }
    return false;
  }

  // PARKED -> BELL. False: it is awake, or will look again anyhow.
  [[nodiscard]] bool ring() {
    std::uint32_t expected = kParked;
    // ORDER: seq_cst, after whatever the sleeper shall see; pairs with prepare.
    return state_.compare_exchange_strong(expected, kBell, NORIA_SEQ_CST);
  }

  // The worker has heard the bell and goes on sleeping.
  void hush() {
    std::uint32_t expected = kBell;
    // ORDER: seq_cst, before the look that was rung for: a ring that found BELL, and so did nothing, comes before it with whatever it rang
    // for. A notify that came meanwhile stays.
    state_.compare_exchange_strong(expected, kParked, NORIA_SEQ_CST);
  }

  // Back to RUNNING; the answer is the state that was left.
  std::uint32_t finish() {
    // ORDER: acq_rel, acquires what the waker published.
    return state_.exchange(kRunning, NORIA_ACQ_REL);
  }

  // ORDER: seq_cst, after a push for this worker alone; pairs with prepare.
  bool parked() const { return state_.load(NORIA_SEQ_CST) != kRunning; }

  // ORDER: acquire, pairs with notify and ring.
  std::uint32_t load() const { return state_.load(NORIA_ACQUIRE); }

  Atomic<std::uint32_t>& word() { return state_; }

 private:
  Atomic<std::uint32_t> state_{kRunning};
};

}  // namespace noria::sync
