// inbox.hpp: what other threads tell a wheel: timers to look at, and the earliest deadline.
// Threads:    push, lower, earliest_ns, empty from any thread; take, publish, lower_locked under the wheel's lock.
// Invariants: B1 a timer is in the inbox once (W3 of word.hpp).
//             B2 earliest_ns() is never later than the deadline, rounded up, of any timer that is linked or whose push has
//                come with lower(): push comes before lower, and publish looks at the inbox after it has written; so it
//                keeps a lower deadline whose timer it has not linked.
#pragma once

#include <cstdint>

#include "base/atomic.hpp"

namespace noria::timer {

// T has a field `NORIA_PLAIN(T*) inbox_next`, owned by whoever pushes and then by whoever takes.
template <typename T>
class Inbox {
 public:
  explicit Inbox(std::uint64_t never_ns) : earliest_ns_(never_ns) {}

  void push(T& timer) {
    // ORDER: relaxed, only a guess for the exchange.
    T* head = head_.load(NORIA_RELAXED);
    do {
      NORIA_PLAIN_GET(timer.inbox_next) = head;
      // ORDER: acq_rel, release publishes inbox_next to take().
    } while (!head_.compare_exchange_weak(head, &timer, NORIA_ACQ_REL));
  }

  // Everything that was pushed, newest first, linked through inbox_next.
  [[nodiscard]] T* take() {
    if (empty()) return nullptr;
    // ORDER: acquire, pairs with push().
    return head_.exchange(nullptr, NORIA_ACQUIRE);
  }

  // ORDER: acquire, pairs with push(); after publish it decides B2.
  bool empty() const { return head_.load(NORIA_ACQUIRE) == nullptr; }

  // The earliest deadline that the wheel knows of; may be early, is never late (B2).
  // ORDER: seq_cst, after the sleeper has published when it will wake; pairs with lower, whose caller reads that next.
  std::uint64_t earliest_ns() const { return earliest_ns_.load(NORIA_SEQ_CST); }

  // After a push. True if this is now the earliest, so that a sleeper must be told.
  [[nodiscard]] bool lower(std::uint64_t deadline_ns) {
    // ORDER: relaxed, only a guess for the exchange.
    std::uint64_t earliest = earliest_ns_.load(NORIA_RELAXED);
    // ORDER: seq_cst as earliest_ns; release gives the push to a publish that overwrites this. It writes even what
    // is there already: a mere look would leave such a publish without the push (B2).
    while (
        !earliest_ns_.compare_exchange_weak(earliest, deadline_ns < earliest ? deadline_ns : earliest, NORIA_SEQ_CST)) {
    }
    return deadline_ns < earliest;
  }

  // For a timer that the lock's holder has linked: no push that a publish could miss.
  bool lower_locked(std::uint64_t deadline_ns) {
    // ORDER: relaxed, publish is under the same lock; a remote's lower only makes it smaller.
    std::uint64_t earliest = earliest_ns_.load(NORIA_RELAXED);
    while (deadline_ns < earliest) {
      // ORDER: seq_cst as earliest_ns; keeps what remotes released here for the next publish.
      if (earliest_ns_.compare_exchange_weak(earliest, deadline_ns, NORIA_SEQ_CST)) return true;
    }
    return false;
  }

  // The earliest of the linked timers, computed by the lock's holder after take().
  void publish(std::uint64_t deadline_ns) {
    // ORDER: acq_rel, acquire sees the push of each lower() that this overwrites.
    std::uint64_t before = earliest_ns_.exchange(deadline_ns, NORIA_ACQ_REL);
#if defined(NORIA_PLANT_WHEEL) && NORIA_PLANT_WHEEL == 3
    return;  // breaks B2
#endif
    if (before < deadline_ns && !empty()) lower_locked(before);
  }

 private:
  Atomic<T*> head_{nullptr};
  Atomic<std::uint64_t> earliest_ns_;
};

}  // namespace noria::timer
