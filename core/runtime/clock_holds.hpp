// clock_holds.hpp: who needs paused time to stand still, against the poller, who moves it to the next deadline when nothing is ready.
// Threads:    hold and release by anyone, in pairs; jump by the poller.
// Invariants: H1 from the return of hold() to its release() time does not move: a jump either sees the hold, or is seen by hold(), which
//             waits for its end (each stores, then loads what the other stores). So no deadline is armed on time that is about to be skipped.
//             H2 what is passed on is held without a gap: who passes it on releases after it has told (a wake that is not taken yet
//             holds too, `others_hold`), and who is told holds before he takes that.
#pragma once

#include <cstdint>

#include "base/atomic.hpp"
#ifndef NORIA_MODEL
#include "base/platform.hpp"
#endif

namespace noria::runtime {

class ClockHolds {
 public:
  void hold() {
    // ORDER: seq_cst, before the look at jumping_ (H1).
    holds_.fetch_add(1, NORIA_SEQ_CST);
#ifndef NORIA_PLANT_HOLDS
    // ORDER: seq_cst, see H1. The planted bug does not wait.
    while (jumping_.load(NORIA_SEQ_CST) != 0) pause();
#endif
  }

  // True: it was the last one.
  [[nodiscard]] bool release() {
    // ORDER: seq_cst, after whatever ran; who sleeps with time paused looks again.
    return holds_.fetch_sub(1, NORIA_SEQ_CST) == 1;
  }

  // ORDER: seq_cst, as in jump.
  bool held() const { return holds_.load(NORIA_SEQ_CST) != 0; }

  // Calls move() unless time is held, by a hold or as others_hold() says. True: it was called.
  template <typename OthersHold, typename Move>
  bool jump(OthersHold&& others_hold, Move&& move) {
    // ORDER: seq_cst, before the look at the holds (H1).
    jumping_.store(1, NORIA_SEQ_CST);
    bool may = !held() && !others_hold();
    if (may) move();
    // ORDER: release, who waited reads the new time; pairs with hold.
    jumping_.store(0, NORIA_RELEASE);
    return may;
  }

 private:
  static void pause() {
#ifdef NORIA_MODEL
    rl::yield(1, $);
#else
    cpu_pause();
#endif
  }

  Atomic<std::uint32_t> holds_{0};
  Atomic<std::uint32_t> jumping_{0};
};

}  // namespace noria::runtime
