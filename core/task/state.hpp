// state.hpp: the state word of a task and every transition of it.
//
// The word holds flags in its low bits and the reference count above kRefShift.
//
//   NOTIFIED       the task has been woken and not yet polled for it
//   RUNNING        one thread polls or drops the task; that thread alone touches its state
//   COMPLETE       it will not be polled again
//   JOIN_INTEREST  the handle exists: an output is worth keeping
//   JOIN_WAKER     somebody asked to be told of completion
//   CANCELLED      it must not be polled again, only dropped
//   OUTPUT         complete, and the state still holds an output that was not taken
//   INIT           made and not started
//
// Invariants: S1 a task is in exactly one queue, or about to be put there by the thread that set NOTIFIED, iff
//                NOTIFIED and not RUNNING, COMPLETE or INIT.
//             S2 only the thread that set RUNNING clears it; state and outcome belong to it meanwhile.
//             S3 an incomplete task holds one reference of its own ("self"), released at completion, so
//                a queue needs none.
//             S4 with a count of one and no INIT nobody but the running thread can reach the word: wakers,
//                handles and join futures all count. The transitions below use plain stores then.
//
//   from                      to                        by                     order
//   INIT                      NOTIFIED                  starter                release store
//   idle                      NOTIFIED                  wake, abort: queues it acq_rel
//   NOTIFIED | RUNNING | COMPLETE  (unchanged)          wake                   acq_rel, so that what was written
//                                                       before the wake is seen by the next poll (P1)
//   NOTIFIED                  RUNNING                   worker that popped it  acq_rel
//   RUNNING                   idle                      its worker, PENDING    acq_rel
//   RUNNING NOTIFIED          NOTIFIED                  its worker: queues it  acq_rel
//   RUNNING CANCELLED         RUNNING (drops it)        its worker             acquire
//   RUNNING                   COMPLETE [OUTPUT]         its worker             acq_rel
//   idle                      RUNNING CANCELLED         shutdown               acq_rel
//   COMPLETE OUTPUT           COMPLETE                  taker or releaser      acq_rel
#pragma once

#include <cstdint>

#include "base/atomic.hpp"

namespace noria::task {

enum class ToRunning { kPoll, kDrop };
enum class ToIdle { kIdle, kRequeue, kDrop };
struct ToComplete {
  bool notify;  // somebody asked to be told; the self reference is still held
  bool free;    // the last reference went with it
};

class StateWord {
 public:
  static constexpr std::uint64_t kRunning = 1;
  static constexpr std::uint64_t kComplete = 2;
  static constexpr std::uint64_t kNotified = 4;
  static constexpr std::uint64_t kJoinInterest = 8;
  static constexpr std::uint64_t kJoinWaker = 16;
  static constexpr std::uint64_t kCancelled = 32;
  static constexpr std::uint64_t kOutput = 64;
  static constexpr std::uint64_t kInit = 128;
  static constexpr unsigned kRefShift = 16;
  static constexpr std::uint64_t kRef = std::uint64_t{1} << kRefShift;

  static constexpr std::uint64_t refs(std::uint64_t word) { return word >> kRefShift; }

  std::uint64_t load() const {
    // ORDER: acquire, pairs with every releasing transition: who sees a state sees what led to it.
    return word_.load(NORIA_ACQUIRE);
  }

  // A word for a task that nobody else can see yet.
  void init(std::uint64_t bits, std::uint64_t count) {
    // ORDER: release, pairs with the acquire of a walk over the slab at shutdown.
    word_.store(bits | count * kRef, NORIA_RELEASE);
  }

  // INIT -> NOTIFIED. The caller owns the unstarted task and queues it after this.
  void start() {
    // ORDER: relaxed, the caller is the only one who knows the task.
    std::uint64_t word = word_.load(NORIA_RELAXED);
    // ORDER: release, publishes the constructed state to a shutdown walk.
    word_.store((word & ~kInit) | kNotified | kJoinInterest, NORIA_RELEASE);
  }

  // Sets NOTIFIED. True: the caller must queue the task.
  [[nodiscard]] bool wake_by_ref() {
    // ORDER: acq_rel even where it changes nothing, see the table (P1).
#ifdef NORIA_PLANT_STATE
    std::uint64_t before = word_.load(NORIA_RELAXED);
    if ((before & (kNotified | kRunning)) != 0) return false;  // the planted bug: a wake in a poll is lost
    before = word_.fetch_or(kNotified, NORIA_ACQ_REL);
#else
    std::uint64_t before = word_.fetch_or(kNotified, NORIA_ACQ_REL);
#endif
    return (before & (kNotified | kRunning | kComplete | kInit)) == 0;
  }

  // As wake_by_ref, and gives a reference back. `last`: it was the last one (the task is complete then).
  [[nodiscard]] bool wake_by_value(bool& last) {
    // ORDER: relaxed, the exchange below decides.
    std::uint64_t word = word_.load(NORIA_RELAXED);
    for (;;) {
      std::uint64_t next = (word | kNotified) - kRef;
      // ORDER: acq_rel as wake_by_ref, and as the release of a reference; relaxed on failure, retried.
      if (word_.compare_exchange_weak(word, next, NORIA_ACQ_REL)) {
        last = refs(next) == 0;
        return (word & (kNotified | kRunning | kComplete | kInit)) == 0;
      }
    }
  }

  // The running task notifies itself: it will be queued when its poll ends.
  void notify_self() {
    // ORDER: acquire, pairs with the release of the reference that made the count one (S4).
    std::uint64_t word = word_.load(NORIA_ACQUIRE);
    if (refs(word) == 1) {
      // ORDER: relaxed, nobody else can reach the word (S4).
      word_.store(word | kNotified, NORIA_RELAXED);
    } else {
      // ORDER: acq_rel, as wake_by_ref.
      word_.fetch_or(kNotified, NORIA_ACQ_REL);
    }
  }

  // NOTIFIED -> RUNNING, by the worker that took the task from its queue. NOTIFIED is cleared before the
  // poll, so that a wake during it is seen (P1).
  [[nodiscard]] ToRunning to_running() {
    // ORDER: acquire, pairs with whoever queued it and with the release that made the count one.
    std::uint64_t word = word_.load(NORIA_ACQUIRE);
    if (refs(word) == 1) {
      // ORDER: release for a shutdown walk that reads the word; nobody else can (S4).
      word_.store(word + kRunning - kNotified, NORIA_RELEASE);
    } else {
      // ORDER: acq_rel, takes what wakers published; S1 makes the arithmetic exact.
      word = word_.fetch_add(kRunning - kNotified, NORIA_ACQ_REL);
    }
    return (word & kCancelled) != 0 ? ToRunning::kDrop : ToRunning::kPoll;
  }

  // RUNNING -> idle after PENDING; kRequeue: it was woken meanwhile and the caller queues it; kDrop: it was
  // cancelled meanwhile, is still RUNNING, and the caller drops it.
  [[nodiscard]] ToIdle to_idle() {
    // ORDER: acquire, pairs with abort and with the release that made the count one.
    std::uint64_t word = word_.load(NORIA_ACQUIRE);
    if (refs(word) == 1) {
      if ((word & kCancelled) != 0) return ToIdle::kDrop;
      // ORDER: release, publishes the poll's effects to the next one (another worker may steal it).
      word_.store(word & ~kRunning, NORIA_RELEASE);
      return (word & kNotified) != 0 ? ToIdle::kRequeue : ToIdle::kIdle;
    }
    for (;;) {
      if ((word & kCancelled) != 0) return ToIdle::kDrop;
      // ORDER: acq_rel, publishes the poll's effects; acquires a wake's. Failure is retried.
      if (word_.compare_exchange_weak(word, word & ~kRunning, NORIA_ACQ_REL))
        return (word & kNotified) != 0 ? ToIdle::kRequeue : ToIdle::kIdle;
    }
  }

  // RUNNING -> COMPLETE. `keep`: the state holds an output; it is kept if the handle exists (then `kept`).
  // Without `notify` the self reference is given back in the same step.
  [[nodiscard]] ToComplete to_complete(bool keep, bool& kept) {
    // ORDER: acquire, pairs with poll_join and detach, and with the release that made the count one.
    std::uint64_t word = word_.load(NORIA_ACQUIRE);
    kept = false;
    if (refs(word) == 1 && (word & kJoinWaker) == 0) return {false, true};
    for (;;) {
      bool output = keep && (word & kJoinInterest) != 0;
      bool notify = (word & kJoinWaker) != 0 || (keep && !output);
      std::uint64_t next = (word & ~kRunning) | kComplete | (output ? kOutput : 0);
      if (!notify) next -= kRef;
      // ORDER: acq_rel, publishes outcome and output to joiners. Failure is retried.
      if (word_.compare_exchange_weak(word, next, NORIA_ACQ_REL)) {
        kept = output;
        return {notify, !notify && refs(next) == 0};
      }
    }
  }

  // Sets CANCELLED. True: the caller must queue the task so that a worker drops it.
  [[nodiscard]] bool cancel() {
    // ORDER: acq_rel, as wake_by_ref; to_idle and to_running see the flag.
    std::uint64_t before = word_.fetch_or(kCancelled | kNotified, NORIA_ACQ_REL);
    return (before & (kNotified | kRunning | kComplete | kInit)) == 0;
  }

  enum class Claim { kClaimed, kBusy, kOver };
  // idle -> RUNNING CANCELLED, by shutdown: the caller drops the task. kBusy: it runs, or is in a queue or on its
  // way there; kOver: complete or never started.
  [[nodiscard]] Claim claim_for_shutdown() {
    // ORDER: acquire, pairs with the transitions of workers.
    std::uint64_t word = word_.load(NORIA_ACQUIRE);
    for (;;) {
      if ((word & (kComplete | kInit)) != 0 || refs(word) == 0) return Claim::kOver;
      if ((word & (kRunning | kNotified)) != 0) return Claim::kBusy;
      // ORDER: acq_rel, takes the task over as a worker does. Failure is retried.
      if (word_.compare_exchange_weak(word, word | kRunning | kCancelled, NORIA_ACQ_REL)) return Claim::kClaimed;
    }
  }

  // Says that somebody wants to be told of completion; true if it is complete already.
  [[nodiscard]] bool ask_for_completion() {
    // ORDER: acq_rel, publishes the place in the join cell or list; acquires the outcome.
    return (word_.fetch_or(kJoinWaker, NORIA_ACQ_REL) & kComplete) != 0;
  }

  // COMPLETE OUTPUT -> COMPLETE. True: the caller owns the output.
  [[nodiscard]] bool claim_output() {
    // ORDER: acq_rel, acquires the output from the worker that completed the task.
    return (word_.fetch_and(~kOutput, NORIA_ACQ_REL) & kOutput) != 0;
  }

  // The handle goes. True: an output was left and is the caller's to drop. The reference is still held.
  [[nodiscard]] bool release_interest() {
    // ORDER: acq_rel, acquires the output from the worker that completed the task.
    return (word_.fetch_and(~(kJoinInterest | kOutput), NORIA_ACQ_REL) & kOutput) != 0;
  }

  void ref() {
    // ORDER: relaxed, who has a reference may make another; nothing is published by it.
    word_.fetch_add(kRef, NORIA_RELAXED);
  }

  // A reference for a walker that holds none; false if the slot is dead.
  [[nodiscard]] bool ref_if_live() {
    // ORDER: acquire, pairs with init.
    std::uint64_t word = word_.load(NORIA_ACQUIRE);
    while (refs(word) != 0) {
      // ORDER: acq_rel, as ref, from a reader who held nothing. Failure is retried.
      if (word_.compare_exchange_weak(word, word + kRef, NORIA_ACQ_REL)) return true;
    }
    return false;
  }

  // True: it was the last reference.
  [[nodiscard]] bool unref() {
    // ORDER: acq_rel, what each holder did happens before the last one frees.
    return refs(word_.fetch_sub(kRef, NORIA_ACQ_REL)) == 1;
  }

 private:
  Atomic<std::uint64_t> word_{0};
};

}  // namespace noria::task
