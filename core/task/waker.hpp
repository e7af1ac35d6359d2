// waker.hpp: an owned waker, and the cell in which one waits to be told once.
//
// WakerCell has one registrant at a time (the owner of a future or a handle) and one completer.
//   from       to          by          order
//   0          SET         registrant  acq_rel   publishes the waker
//   0 / DONE   SET         registrant  release   set_ahead: publishes the waker (W3)
//   SET        0           registrant  acq_rel   takes the waker back, to replace or to drop it
//   0 / SET    DONE[|SET]  completer   acq_rel   with SET: the waker is the completer's
// Invariants: W1 the slot is written only while SET is clear, by the registrant. W2 the waker belongs to whoever
// made the last of SET and DONE: the completer if it saw SET, else the registrant, who sees DONE (or, W3, that it is over) and drops it.
// W3 set_ahead may overwrite DONE. Then the completer has not seen SET, and its change of the other word came before the
// registrant's, who learns there that it is over. If the registrant's came first, SET is visible to complete().
// (tests/model/join_model.cpp)
#pragma once

#include <cstdint>
#include <utility>

#include "base/atomic.hpp"
#include "noria/waker.h"

namespace noria::task {

inline bool will_wake(const noria_waker& a, const noria_waker& b) {
  return a.vtable == b.vtable && a.data == b.data && a.extra == b.extra;
}

// Owns one noria_waker or none. Waking and dropping run foreign code: never under a lock.
class Waker {
 public:
  Waker() = default;
  explicit Waker(const noria_waker& from) { from.vtable->clone(&from, &raw_); }
  Waker(Waker&& other) noexcept : raw_(std::exchange(other.raw_, noria_waker{})) {}
  Waker& operator=(Waker&& other) noexcept {
    if (this != &other) {
      reset();
      raw_ = std::exchange(other.raw_, noria_waker{});
    }
    return *this;
  }
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;
  ~Waker() { reset(); }

  explicit operator bool() const { return raw_.vtable != nullptr; }
  bool wakes_same(const noria_waker& other) const { return raw_.vtable != nullptr && will_wake(raw_, other); }
  void wake() {
    if (raw_.vtable == nullptr) return;
    noria_waker raw = std::exchange(raw_, noria_waker{});
    raw.vtable->wake(&raw);
  }
  void reset() {
    if (raw_.vtable == nullptr) return;
    noria_waker raw = std::exchange(raw_, noria_waker{});
    raw.vtable->drop(&raw);
  }
  // Takes over a raw waker; gives one up.
  static Waker adopt(const noria_waker& raw) {
    Waker waker;
    waker.raw_ = raw;
    return waker;
  }
  noria_waker release() { return std::exchange(raw_, noria_waker{}); }

 private:
  noria_waker raw_{};
};

class WakerCell {
 public:
  WakerCell() = default;
  WakerCell(const WakerCell&) = delete;
  WakerCell& operator=(const WakerCell&) = delete;
  ~WakerCell() {
    // ORDER: acquire, pairs with the last step of either side; both are over by now.
    if ((state_.load(NORIA_ACQUIRE) & (kSet | kDone)) == kSet) drop_slot();
  }

  // False: it is done, nothing is left behind. True: `waker` (a clone of it) will be woken.
  [[nodiscard]] bool set(const noria_waker& waker) {
    // ORDER: acquire, pairs with complete: who sees DONE sees what it tells.
    std::uint32_t state = state_.load(NORIA_ACQUIRE);
    if ((state & kDone) != 0) return false;
    if ((state & kSet) != 0 && will_wake(NORIA_PLAIN_GET(slot_), waker)) return true;
    Waker old;
    Waker next(waker);
    if ((state & kSet) != 0) {
      // ORDER: acq_rel, takes the slot back; DONE beside it means that the completer has it (W2).
      if ((state_.fetch_and(~kSet, NORIA_ACQ_REL) & kDone) != 0) return false;
      old = Waker::adopt(NORIA_PLAIN_GET(slot_));
    }
    NORIA_PLAIN_GET(slot_) = next.release();
    // ORDER: acq_rel, publishes the slot to complete; acquires its writes if it came first.
    if ((state_.fetch_or(kSet, NORIA_ACQ_REL) & kDone) == 0) return true;
    drop_slot();
    return false;
  }

  // As set, for who asks next, by a read-modify-write of a word that the completer changes by one before it comes here, whether it is
  // over, and calls clear() then. An empty cell costs no read-modify-write here (W3).
  [[nodiscard]] bool set_ahead(const noria_waker& waker) {
    // ORDER: relaxed, a zero that is old is as W3 says; set() looks again.
    if (state_.load(NORIA_RELAXED) != 0) return set(waker);
    Waker next(waker);
    NORIA_PLAIN_GET(slot_) = next.release();
#if defined(NORIA_PLANT_JOIN) && NORIA_PLANT_JOIN == 1
    state_.store(kSet, NORIA_RELAXED);  // the planted bug: complete() may find the cell set before its waker is in it
#else
    // ORDER: release, publishes the slot to complete.
    state_.store(kSet, NORIA_RELEASE);
#endif
    return true;
  }

  // The registrant waits no more: its waker is dropped, unless the completer has it.
  void clear() {
    // ORDER: acquire, as in set.
    if ((state_.load(NORIA_ACQUIRE) & (kSet | kDone)) != kSet) return;
    // ORDER: acq_rel, takes the slot back (W2).
    if ((state_.fetch_and(~kSet, NORIA_ACQ_REL) & kDone) == 0) drop_slot();
  }

  // Marks it done and wakes whoever waits. Once.
  void complete() {
    // ORDER: acq_rel, publishes what was done; acquires the slot.
    if ((state_.fetch_or(kDone, NORIA_ACQ_REL) & kSet) != 0) {
      noria_waker waker = NORIA_PLAIN_GET(slot_);  // not written here: the registrant may be comparing it (W1)
      waker.vtable->wake(&waker);
    }
  }

  // ORDER: acquire, as in set.
  bool done() const { return (state_.load(NORIA_ACQUIRE) & kDone) != 0; }

 private:
  static constexpr std::uint32_t kSet = 1;
  static constexpr std::uint32_t kDone = 2;

  void drop_slot() {
    noria_waker waker = NORIA_PLAIN_GET(slot_);
    waker.vtable->drop(&waker);
  }

  Atomic<std::uint32_t> state_{0};
  NORIA_PLAIN(noria_waker) slot_{};
};

}  // namespace noria::task
