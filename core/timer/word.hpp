// word.hpp: the state word of a timer and its deadline: who wins, and who still points at the timer.
// Threads:    arm by the timer's owner; cancel_remote and reset_remote from any thread; what is named *_locked, expire,
//             drain and close by the holder of the wheel's lock. arm and reset of one timer are serialised by the caller;
//             cancel runs at any time.
//
// Bits of the word:
//   phase    IDLE       never armed
//            ARMED      neither fired nor cancelled yet
//            FIRED      fire won
//            CANCELLED  cancel (or shutdown) won
//   LINKED   in a slot of the wheel                    (changed under the lock only)
//   QUEUED   in the inbox, or on its way into it       (set by anyone, cleared under the lock)
//   HANDED   in an Expired list, its callback to come  (set under the lock, cleared by who runs it)
//   resets   above the flags: grows with each arm and reset, so that an exchange prepared before a reset fails after it
//
//   from                      to                          by              call           order
//   not ARMED, no flag        ARMED LINKED                lock holder     arm            release
//   ARMED *                   CANCELLED * QUEUED          anyone          cancel_remote  acq_rel
//   ARMED LINKED? QUEUED?     CANCELLED QUEUED?           lock holder     cancel_locked  acq_rel
//   ARMED *                   ARMED * (resets + 1)        anyone          reset, later   acq_rel
//   ARMED *                   ARMED * QUEUED (resets + 1) anyone          reset, sooner  acq_rel
//   ARMED LINKED, due         FIRED HANDED                lock holder     expire         acq_rel
//   ARMED LINKED QUEUED, due  ARMED QUEUED                lock holder     expire         acq_rel
//   CANCELLED LINKED QUEUED   CANCELLED QUEUED            lock holder     expire         release
//   ARMED LINKED? QUEUED      ARMED LINKED                lock holder     drain          acq_rel
//   CANCELLED LINKED? QUEUED  CANCELLED HANDED            lock holder     drain          release
//   ARMED LINKED QUEUED?      CANCELLED (HANDED | QUEUED) lock holder     close          acq_rel
//   FIRED HANDED              FIRED                       runs the list   hand_back      release
//   CANCELLED HANDED          CANCELLED                   runs the list   hand_back      release
//
// Invariants: W1 one of fire and cancel wins an arming, decided by the exchange out of ARMED.
//             W2 while a flag is set the wheel (or who runs its list) points at the timer; with none it points nowhere,
//             and only then may the timer be armed again or go.
//             W3 QUEUED goes from 0 to 1 once per stay in the inbox, and whoever sets it pushes.
//             W4 a timer does not fire while QUEUED: the inbox's pointer would outlive the arming.
//             W5 an ARMED timer is looked at by its deadline: it is in a slot that opens no later, or QUEUED, or a reset
//             that has not returned is about to queue it.
//             W6 a reset writes the deadline first and the word second; who decides by a deadline reads the word first. So
//             a decision made on an older deadline fails its exchange.
#pragma once

#include <cstdint>

#include "base/assert.hpp"
#include "base/atomic.hpp"

namespace noria::timer {

class TimerWord {
 public:
  using Bits = std::uint64_t;

  static constexpr Bits kIdle = 0;
  static constexpr Bits kArmed = 1;
  static constexpr Bits kFired = 2;
  static constexpr Bits kCancelled = 3;
  static constexpr Bits kPhase = 3;
  static constexpr Bits kLinked = 4;
  static constexpr Bits kQueued = 8;
  static constexpr Bits kHanded = 16;
  static constexpr Bits kFlags = kLinked | kQueued | kHanded;
#if defined(NORIA_PLANT_WHEEL) && NORIA_PLANT_WHEEL == 4
  static constexpr Bits kOneReset = 0;  // breaks W6
#else
  static constexpr Bits kOneReset = 32;
#endif

  static constexpr bool armed(Bits bits) { return (bits & kPhase) == kArmed; }

  enum class Remote {
    kTooLate,  // fired or cancelled before
    kDone,     // nothing is left to do
    kQueued,   // somebody else's push brings it to the wheel
    kPush,     // the caller pushes it to the inbox
  };
  enum class Expiry { kFire, kLater, kGone };
  enum class Drained { kPlace, kRelease };

  // ORDER: acquire, pairs with every release below: sees what was written before that transition.
  Bits load() const { return bits_.load(NORIA_ACQUIRE); }

  // ORDER: relaxed; a reader that acts on it has read the word first (W6).
  std::uint64_t deadline_ns() const { return deadline_ns_.load(NORIA_RELAXED); }

  // The deadline as it is after the push that the caller has just made.
  std::uint64_t deadline_after_push_ns() {
    // ORDER: acq_rel, a read that cannot be old: it sees the deadline of a reset that found QUEUED
    // set, or that reset's exchange comes after it and sees the push.
    return deadline_ns_.fetch_add(0, NORIA_ACQ_REL);
  }

  void arm(std::uint64_t deadline_ns) {
    Bits bits = load();
    NORIA_ASSERT((bits & kFlags) == 0 && !armed(bits), "a timer is armed when no wheel holds it (W2)");
    // ORDER: relaxed, published by the store below.
    deadline_ns_.store(deadline_ns, NORIA_RELAXED);
    // ORDER: release, publishes deadline and wheel to cancel and reset. A plain store does: without
    // a flag and not ARMED nobody else changes the word.
    bits_.store(((bits & ~kPhase) + kOneReset) | kArmed | kLinked, NORIA_RELEASE);
  }

  [[nodiscard]] Remote cancel_remote() {
    Bits bits = load();
    while (armed(bits)) {
      Bits next = (bits & ~kPhase) | kCancelled | kQueued;
      // ORDER: acq_rel, acquire sees arm's wheel; release gives what the canceller did before to
      // whoever releases the timer.
      if (bits_.compare_exchange_weak(bits, next, NORIA_ACQ_REL))
        return (bits & kQueued) != 0 ? Remote::kQueued : Remote::kPush;
    }
    return Remote::kTooLate;
  }

  [[nodiscard]] Remote reset_remote(std::uint64_t deadline_ns) {
    Bits bits = load();
    if (!armed(bits)) return Remote::kTooLate;
    // ORDER: acq_rel, before the word (W6); pairs with deadline_after_push_ns.
    bool sooner = deadline_ns < deadline_ns_.exchange(deadline_ns, NORIA_ACQ_REL);
    while (armed(bits)) {
      Bits next = (bits + kOneReset) | (sooner ? kQueued : 0);
      // ORDER: acq_rel, release gives the deadline to expire and drain; acquire as in
      // cancel_remote.
      if (!bits_.compare_exchange_weak(bits, next, NORIA_ACQ_REL)) continue;
      if (!sooner) return Remote::kDone;
      return (bits & kQueued) != 0 ? Remote::kQueued : Remote::kPush;
    }
    return Remote::kTooLate;
  }

  // Out of ARMED, provided that the word is still `bits` (else reads it anew). The caller unlinks
  // the timer if it was LINKED, and still owes its release if it was not QUEUED.
  [[nodiscard]] bool cancel_locked(Bits& bits) {
    Bits next = (bits & ~(kPhase | kLinked)) | kCancelled;
    // ORDER: acq_rel, as in cancel_remote.
    return bits_.compare_exchange_strong(bits, next, NORIA_ACQ_REL);
  }

  // A new deadline, provided that the word is still `bits` (else reads it anew). The caller links
  // the timer anew if it is LINKED; if it is not, the inbox brings it.
  [[nodiscard]] bool reset_locked(Bits& bits, std::uint64_t deadline_ns) {
    // ORDER: acq_rel, before the word (W6); pairs with deadline_after_push_ns.
    deadline_ns_.exchange(deadline_ns, NORIA_ACQ_REL);
    // ORDER: acq_rel, as in reset_remote.
    return bits_.compare_exchange_strong(bits, bits + kOneReset, NORIA_ACQ_REL);
  }

  // The timer's slot has opened and the caller has unlinked it. kFire: it goes into the Expired
  // list. kLater: the caller links it by `deadline_ns`. kGone: the inbox has it.
  [[nodiscard]] Expiry expire(std::uint64_t now_ns, std::uint64_t& deadline_ns) {
    Bits bits = load();
    for (;;) {
      if (!armed(bits)) {
        // ORDER: release, keeps the unlinking before it. A plain store does: CANCELLED is left by
        // the lock holder only.
        bits_.store(bits & ~kLinked, NORIA_RELEASE);
        return Expiry::kGone;
      }
      deadline_ns = this->deadline_ns();
      if (deadline_ns > now_ns) return Expiry::kLater;
      bool queued = (bits & kQueued) != 0;
#if defined(NORIA_PLANT_WHEEL) && NORIA_PLANT_WHEEL == 2
      queued = false;  // breaks W4
#endif
      Bits next = queued ? bits & ~kLinked : (bits & ~(kPhase | kLinked)) | kFired | kHanded;
      // ORDER: acq_rel, acquire sees what the last reset or arm published; release keeps the
      // unlinking before it. Fails if a reset or cancel came in between (W1, W6).
      if (bits_.compare_exchange_weak(bits, next, NORIA_ACQ_REL)) return queued ? Expiry::kGone : Expiry::kFire;
    }
  }

  // The timer has been taken out of the inbox. The caller unlinks it if `was_linked`, then links it
  // by `deadline_ns` or puts it into the Expired list to be released.
  [[nodiscard]] Drained drain(bool& was_linked, std::uint64_t& deadline_ns) {
    Bits bits = load();
#if defined(NORIA_PLANT_WHEEL) && NORIA_PLANT_WHEEL == 1
    deadline_ns = this->deadline_ns();  // breaks W5: a reset before the exchange is not seen
#endif
    while (armed(bits)) {
      Bits next = (bits & ~kQueued) | kLinked;
      // ORDER: acq_rel, acquire sees the deadline of every reset that found QUEUED set; a later one
      // queues the timer again. Release as in expire.
      if (!bits_.compare_exchange_weak(bits, next, NORIA_ACQ_REL)) continue;
      was_linked = (bits & kLinked) != 0;
#if !defined(NORIA_PLANT_WHEEL) || NORIA_PLANT_WHEEL != 1
      deadline_ns = this->deadline_ns();
#endif
      return Drained::kPlace;
    }
    was_linked = (bits & kLinked) != 0;
    // ORDER: release, as in expire; CANCELLED is left by the lock holder only.
    bits_.store((bits & ~(kLinked | kQueued)) | kHanded, NORIA_RELEASE);
    return Drained::kRelease;
  }

  // Shutdown, of a timer that the caller has unlinked. True: it goes into the Expired list to be
  // released. False: the inbox has it.
  [[nodiscard]] bool close() {
    Bits bits = load();
    while (armed(bits)) {
      Bits next = (bits & ~(kPhase | kLinked)) | kCancelled;
      if ((bits & kQueued) == 0) next |= kHanded;
      // ORDER: acq_rel, as in expire.
      if (bits_.compare_exchange_weak(bits, next, NORIA_ACQ_REL)) return (bits & kQueued) == 0;
    }
    // ORDER: release, as in expire.
    bits_.store(bits & ~kLinked, NORIA_RELEASE);
    return false;
  }

  // The list no longer holds the timer.
  void hand_back() {
    // ORDER: release, the last touch of who ran the list, pairs with the acquire in arm(). A plain
    // store does: FIRED and CANCELLED with HANDED are changed by nobody else.
    bits_.store(load() & ~kHanded, NORIA_RELEASE);
  }

 private:
  Atomic<Bits> bits_{kIdle};
  Atomic<std::uint64_t> deadline_ns_{0};
};

}  // namespace noria::timer
