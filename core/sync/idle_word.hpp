// idle_word.hpp: how many workers are awake and searching, and who is the sentry: one word, every transition here.
//
//   bits 0-15 awake, 16-31 searching (of the awake), 32-33 sentry state, 34-49 sentry's worker
//   sentry: kNone  nobody; kTicking  it wakes every tick and looks at the awake ones; kAsleep  all are parked and it sleeps
//           without end; who makes awake non-zero sets kTicking in the same step and rings its bell.
//
// The rule against lost wakes. A pusher from outside: push to the inject queue, then wake_first(). A worker: ParkState::prepare,
// then park(), then a last look at the inject queue. All are seq_cst; so either the pusher sees awake == 0 and wakes
// somebody who is PARKED, or the worker's last look sees what was pushed.
// Invariants: I1 a non-empty inject queue implies an awake worker that will look, or a pusher between push and wake_first.
//             I2 searching <= awake. I3 awake > 0 implies sentry != kAsleep. I4 with every worker parked and kAsleep, nobody has a
//             time-out but that of the nearest deadline.
#pragma once

#include <cstdint>

#include "base/atomic.hpp"

namespace noria::sync {

class IdleWord {
 public:
  static constexpr std::uint32_t kNobody = 0xFFFFFFFF;

  struct View {
    std::uint64_t word;
    std::uint32_t awake() const { return static_cast<std::uint32_t>(word & 0xFFFF); }
    std::uint32_t searching() const { return static_cast<std::uint32_t>((word >> 16) & 0xFFFF); }
    bool sentry_none() const { return (word & kSentryMask) == 0; }
    bool sentry_asleep() const { return (word & kSentryMask) == kAsleep; }
    std::uint32_t sentry() const {
      return sentry_none() ? kNobody : static_cast<std::uint32_t>((word >> kIdShift) & 0xFFFF);
    }
  };

  explicit IdleWord(std::uint32_t awake = 0) {
    // ORDER: relaxed, nobody else sees it yet.
    word_.store(awake, NORIA_RELAXED);
  }

  View view() const {
    // ORDER: seq_cst, after a push of this thread; pairs with park.
    return {word_.load(NORIA_SEQ_CST)};
  }
  View hint() const {
    // ORDER: relaxed, a stale count delays a wake that the sentry or the next push makes up for.
    return {word_.load(NORIA_RELAXED)};
  }

  // The worker (which has prepared) is no longer awake.
  View park(bool was_searching) {
    std::uint64_t less = kAwake + (was_searching ? kSearching : 0);
    // ORDER: seq_cst, before the last look at the queues; pairs with wake_first.
#ifdef NORIA_PLANT_IDLE
    return {word_.fetch_sub(less, NORIA_RELAXED) - less};
#else
    return {word_.fetch_sub(less, NORIA_SEQ_CST) - less};
#endif
  }

  // The worker is awake again by itself. `bell`: the sentry that was asleep and must be rung, else kNobody.
  void unpark(bool searching, std::uint32_t& bell) {
    (void)changed(
        [searching](View, std::uint64_t& next) {
          next += kAwake + (searching ? kSearching : 0);
          return true;
        },
        bell);
  }

  // For a push from outside: counts one worker awake and searching if none is awake. False: somebody is.
  [[nodiscard]] bool wake_first(std::uint32_t& bell) {
    bell = kNobody;
    if (view().awake() != 0) return false;
    return changed(
        [](View now, std::uint64_t& next) {
          if (now.awake() != 0) return false;
          next += kAwake + kSearching;
          return true;
        },
        bell);
  }

  // For a backlog: counts one more awake and searching if one of `workers` is parked and nobody searches.
  [[nodiscard]] bool wake_more(std::uint32_t workers, std::uint32_t& bell) {
    return changed(
        [workers](View now, std::uint64_t& next) {
          if (now.awake() >= workers || now.searching() != 0) return false;
          next += kAwake + kSearching;
          return true;
        },
        bell);
  }

  // A worker that has counted itself was counted by a waker at the same time.
  void count_once(bool searching) {
    // ORDER: acq_rel, it stays counted: only the number matters.
    word_.fetch_sub(kAwake + (searching ? kSearching : 0), NORIA_ACQ_REL);
  }

  // Nobody was found to wake after all. Another pusher may have trusted the count meanwhile: the caller looks at the queue again.
  void undo_wake() {
    // ORDER: seq_cst, as park.
    word_.fetch_sub(kAwake + kSearching, NORIA_SEQ_CST);
  }

  // An awake worker begins to search, unless half of the `workers` do.
  [[nodiscard]] bool start_search(std::uint32_t workers) {
    View now = hint();
    if (2 * now.searching() >= workers && now.searching() != 0) return false;
    // ORDER: acq_rel, only the count matters; a race admits one too many.
    word_.fetch_add(kSearching, NORIA_ACQ_REL);
    return true;
  }

  // True: it was the last one that searched.
  bool stop_search() {
    // ORDER: acq_rel, as start_search.
    return View{word_.fetch_sub(kSearching, NORIA_ACQ_REL)}.searching() == 1;
  }

  // A parked worker takes the sentry's part if it is free or held by `from` (the poller, which sleeps better without it).
  [[nodiscard]] bool take_sentry(std::uint32_t worker, std::uint32_t from) {
    std::uint32_t bell;
    return changed(
        [worker, from](View now, std::uint64_t& next) {
          if (!now.sentry_none() && now.sentry() != from) return false;
          next = with_sentry(next, kTicking, worker);
          return true;
        },
        bell);
  }

  // The sentry leaves its part. False: it was not its own.
  bool leave_sentry(std::uint32_t worker) {
    std::uint32_t bell;
    return changed(
        [worker](View now, std::uint64_t& next) {
          if (now.sentry() != worker) return false;
          next &= ~(kSentryMask | kIdMask);
          return true;
        },
        bell);
  }

  // The sentry stops ticking; only while all are parked.
  [[nodiscard]] bool sentry_sleeps(std::uint32_t worker) {
    std::uint32_t bell;
    return changed(
        [worker](View now, std::uint64_t& next) {
          if (now.awake() != 0 || now.sentry() != worker) return false;
          next = with_sentry(next, kAsleep, worker);
          return true;
        },
        bell);
  }

 private:
  static constexpr std::uint64_t kAwake = 1;
  static constexpr std::uint64_t kSearching = 1 << 16;
  static constexpr std::uint64_t kTicking = std::uint64_t{1} << 32;
  static constexpr std::uint64_t kAsleep = std::uint64_t{2} << 32;
  static constexpr std::uint64_t kSentryMask = std::uint64_t{3} << 32;
  static constexpr unsigned kIdShift = 34;
  static constexpr std::uint64_t kIdMask = std::uint64_t{0xFFFF} << kIdShift;

  static std::uint64_t with_sentry(std::uint64_t word, std::uint64_t state, std::uint32_t worker) {
    return (word & ~(kSentryMask | kIdMask)) | state | (std::uint64_t{worker} << kIdShift);
  }

  // Applies `step` until it says no or the exchange succeeds. Who makes awake non-zero wakes a sentry that is asleep (I3).
  template <typename Step>
  bool changed(Step&& step, std::uint32_t& bell) {
    // ORDER: seq_cst, as view.
    std::uint64_t now = word_.load(NORIA_SEQ_CST);
    for (;;) {
      std::uint64_t next = now;
      bell = kNobody;
      if (!step(View{now}, next)) return false;
      if (View{next}.awake() != 0 && View{next}.sentry_asleep()) {
        bell = View{next}.sentry();
        next = with_sentry(next, kTicking, bell);
      }
      // ORDER: seq_cst, pairs with park and with the pushes before view. Failure is retried.
      if (word_.compare_exchange_weak(now, next, NORIA_SEQ_CST)) return true;
    }
  }

  Atomic<std::uint64_t> word_{0};
};

}  // namespace noria::sync
