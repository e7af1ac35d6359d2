// watch.hpp: the word between those who submit and those who sleep; crew.hpp states the protocol.
// Threads:    hint, certain: any. missed: under the crew's lock.
// Invariants: W1 it is true only while somebody is certain to look at the queue soon.
#pragma once

#include <cstdint>

#include "base/atomic.hpp"

namespace noria::blocking {

class Watch {
 public:
  // A look before the job is pushed, which only chooses the way.
  // ORDER: relaxed, certain() decides.
  bool hint() const noexcept { return word_.load(NORIA_RELAXED) != 0; }

  // S2, after the push: false: the submitter must see to it itself, under the lock.
  bool certain() const noexcept {
#ifdef NORIA_PLANT_WATCH
    return word_.load(NORIA_ACQUIRE) != 0;  // ORDER: acquire, the planted bug: may be older than the push.
#else
    // ORDER: seq_cst, stands after the push (seq_cst too): the store-load race with missed().
    return word_.load(NORIA_SEQ_CST) != 0;
#endif
  }

  // C1, C2: stores `watched`; true if it is false and a job is there.
  template <typename Queue>
  [[nodiscard]] bool missed(bool watched, const Queue& queue) noexcept {
    std::uint32_t now = watched ? 1 : 0;
    // ORDER: relaxed, only holders of the lock write it.
    if (word_.load(NORIA_RELAXED) != now) {
      // ORDER: seq_cst, stands before the look at the queue: pairs with the push and certain().
      word_.store(now, NORIA_SEQ_CST);
    }
    return !watched && !queue.empty();
  }

 private:
  Atomic<std::uint32_t> word_{0};
};

}  // namespace noria::blocking
