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
//   LOCAL          polled and dropped on its home's thread only; never changes
//
// Invariants: S1 a task is in exactly one queue, or about to be put there by the thread that set NOTIFIED, iff
//                NOTIFIED and not RUNNING, COMPLETE or INIT.
//             S2 only the thread that set RUNNING clears it; state and outcome belong to it meanwhile.
//             S3 an incomplete task holds one reference of its own ("self"), released at completion, so
//                a queue needs none.
//             S4 with a count of one and no INIT nobody but the running thread can reach the word, and nobody but the handle once it is complete:
//                wakers, handles and join futures all count (a poll's own waker is used by others during the poll only, and no
//                transition is made meanwhile). The transitions below use plain stores then. (A walk at
//                shutdown reads any word, and writes only idle ones and complete ones with OUTPUT.)
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
//   COMPLETE, count of one    (freed)                   handle                 acquire load, see ends_with_handle
#pragma once

#include <cstdint>

#include "base/atomic.hpp"
#ifndef NORIA_MODEL
#include "base/slab.hpp"
#endif

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
  static constexpr std::uint64_t kLocal = 256;
  static constexpr unsigned kRefShift = 16;
  static constexpr std::uint64_t kRef = std::uint64_t{1} << kRefShift;

  static constexpr std::uint64_t refs(std::uint64_t of) { return of >> kRefShift; }

  std::uint64_t load() const {
    // ORDER: acquire, pairs with every releasing transition: who sees a state sees what led to it.
    return word().load(NORIA_ACQUIRE);
  }

  // A word for a task that nobody else can see yet.
  void init(std::uint64_t bits, std::uint64_t count) {
    // ORDER: release, pairs with the acquire of a walk over the slab at shutdown.
    word().store(bits | count * kRef, NORIA_RELEASE);
  }

  // INIT -> NOTIFIED. The caller owns the unstarted task and queues it after this.
  void start() {
    // ORDER: relaxed, the caller is the only one who knows the task.
    std::uint64_t now = word().load(NORIA_RELAXED);
    // ORDER: release, publishes the constructed state to a shutdown walk.
    word().store((now & ~kInit) | kNotified | kJoinInterest, NORIA_RELEASE);
  }

  // Sets NOTIFIED. True: the caller must queue the task.
  [[nodiscard]] bool wake_by_ref() {
    // ORDER: acq_rel even where it changes nothing, see the table (P1).
#ifdef NORIA_PLANT_STATE
    std::uint64_t before = word().load(NORIA_RELAXED);
    if ((before & (kNotified | kRunning)) != 0) return false;  // the planted bug: a wake in a poll is lost
    before = word().fetch_or(kNotified, NORIA_ACQ_REL);
#else
    std::uint64_t before = word().fetch_or(kNotified, NORIA_ACQ_REL);
#endif
    return (before & (kNotified | kRunning | kComplete | kInit)) == 0;
  }

  // As wake_by_ref, and gives a reference back. `last`: it was the last one (the task is complete then).
  [[nodiscard]] bool wake_by_value(bool& last) {
    // ORDER: relaxed, the exchange below decides.
    std::uint64_t now = word().load(NORIA_RELAXED);
    for (;;) {
      std::uint64_t next = (now | kNotified) - kRef;
      // ORDER: acq_rel as wake_by_ref, and as the release of a reference; relaxed on failure, retried.
      if (word().compare_exchange_weak(now, next, NORIA_ACQ_REL)) {
        last = refs(next) == 0;
        return (now & (kNotified | kRunning | kComplete | kInit)) == 0;
      }
    }
  }

  // NOTIFIED -> RUNNING, by the worker that took the task from its queue. NOTIFIED is cleared before the
  // poll, so that a wake during it is seen (P1).
  [[nodiscard]] ToRunning to_running() {
    // ORDER: acquire, pairs with whoever queued it and with the release that made the count one.
    std::uint64_t now = word().load(NORIA_ACQUIRE);
    if (refs(now) == 1) {
      // ORDER: release for a shutdown walk that reads the word; nobody else can (S4).
      word().store(now + kRunning - kNotified, NORIA_RELEASE);
    } else {
      // ORDER: acq_rel, takes what wakers published; S1 makes the arithmetic exact.
      now = word().fetch_add(kRunning - kNotified, NORIA_ACQ_REL);
    }
    return (now & kCancelled) != 0 ? ToRunning::kDrop : ToRunning::kPoll;
  }

  // RUNNING -> idle after PENDING; kRequeue: it was woken meanwhile and the caller queues it; kDrop: it was
  // cancelled meanwhile, is still RUNNING, and the caller drops it.
  // `self_woken`: the task woke itself in the poll, which its thread knows without the word.
  [[nodiscard]] ToIdle to_idle(bool self_woken = false) {
    const std::uint64_t self = self_woken ? kNotified : 0;
    // ORDER: acquire, pairs with abort and with the release that made the count one.
    std::uint64_t now = word().load(NORIA_ACQUIRE);
    if (refs(now) == 1) {
      if ((now & kCancelled) != 0) return ToIdle::kDrop;
      // ORDER: release, publishes the poll's effects to the next one (another worker may steal it).
      word().store((now & ~kRunning) | self, NORIA_RELEASE);
      return ((now | self) & kNotified) != 0 ? ToIdle::kRequeue : ToIdle::kIdle;
    }
    for (;;) {
      if ((now & kCancelled) != 0) return ToIdle::kDrop;
      // ORDER: acq_rel, publishes the poll's effects; acquires a wake's. Failure is retried.
      if (word().compare_exchange_weak(now, (now & ~kRunning) | self, NORIA_ACQ_REL))
        return ((now | self) & kNotified) != 0 ? ToIdle::kRequeue : ToIdle::kIdle;
    }
  }

  // RUNNING -> COMPLETE. `keep`: the state holds an output; it is kept if the handle exists (then `kept`).
  // Without `notify` the self reference is given back in the same step.
  [[nodiscard]] ToComplete to_complete(bool keep, bool& kept) {
    // ORDER: acquire, pairs with poll_join and detach, and with the release that made the count one.
    std::uint64_t now = word().load(NORIA_ACQUIRE);
    kept = false;
    if (refs(now) == 1 && (now & kJoinWaker) == 0) return {false, true};
    for (;;) {
      bool output = keep && (now & kJoinInterest) != 0;
      bool notify = (now & kJoinWaker) != 0 || (keep && !output);
      std::uint64_t next = (now & ~kRunning) | kComplete | (output ? kOutput : 0);
      if (!notify) next -= kRef;
      // ORDER: acq_rel, publishes outcome and output to joiners. Failure is retried.
      if (word().compare_exchange_weak(now, next, NORIA_ACQ_REL)) {
        kept = output;
        return {notify, !notify && refs(next) == 0};
      }
    }
  }

  // Sets CANCELLED. True: the caller must queue the task so that a worker drops it.
  [[nodiscard]] bool cancel() {
    // ORDER: acq_rel, as wake_by_ref; to_idle and to_running see the flag.
    std::uint64_t before = word().fetch_or(kCancelled | kNotified, NORIA_ACQ_REL);
    return (before & (kNotified | kRunning | kComplete | kInit)) == 0;
  }

  enum class Claim { kClaimed, kQueued, kRuns, kOver };
  // idle -> RUNNING CANCELLED, by shutdown: the caller drops the task. kQueued: it is in a queue or on its way
  // there; kOver: complete or never started.
  [[nodiscard]] Claim claim_for_shutdown() {
    // ORDER: acquire, pairs with the transitions of workers.
    std::uint64_t now = word().load(NORIA_ACQUIRE);
    for (;;) {
      if ((now & (kComplete | kInit)) != 0 || refs(now) == 0) return Claim::kOver;
      if ((now & kRunning) != 0) return Claim::kRuns;
      if ((now & kNotified) != 0) return Claim::kQueued;
      // ORDER: acq_rel, takes the task over as a worker does. Failure is retried.
      if (word().compare_exchange_weak(now, now | kRunning | kCancelled, NORIA_ACQ_REL)) return Claim::kClaimed;
    }
  }

  // Says that somebody wants to be told of completion; true if it is complete already.
  [[nodiscard]] bool ask_for_completion() {
    // ORDER: acq_rel, publishes the place in the join cell or list; acquires the outcome.
    return (word().fetch_or(kJoinWaker, NORIA_ACQ_REL) & kComplete) != 0;
  }

  // COMPLETE OUTPUT -> COMPLETE. True: the caller owns the output.
  [[nodiscard]] bool claim_output() {
    // ORDER: acq_rel, acquires the output from the worker that completed the task.
    return (word().fetch_and(~kOutput, NORIA_ACQ_REL) & kOutput) != 0;
  }

  // COMPLETE OUTPUT -> COMPLETE, by the ending thread of a local task, with a reference for it. kQueued: the handle is gone and the
  // output is on its way to this thread.
  [[nodiscard]] Claim claim_output_for_shutdown() {
    // ORDER: acquire, pairs with the handle's transitions.
    std::uint64_t now = word().load(NORIA_ACQUIRE);
    for (;;) {
      if ((now & kOutput) == 0) return Claim::kOver;
      if ((now & kJoinInterest) == 0) return Claim::kQueued;
      // ORDER: acq_rel, as claim_output. Failure is retried.
      if (word().compare_exchange_weak(now, (now & ~kOutput) + kRef, NORIA_ACQ_REL)) return Claim::kClaimed;
    }
  }

  // The handle goes. True: an output was left and is the caller's to drop. The reference is still held.
  [[nodiscard]] bool release_interest() {
    // ORDER: acq_rel, acquires the output from the worker that completed the task.
    return (word().fetch_and(~(kJoinInterest | kOutput), NORIA_ACQ_REL) & kOutput) != 0;
  }

  // The handle of a local task goes on a foreign thread. True: an output is left (OUTPUT stays set) and the caller
  // brings the task, with its reference, to the thread that may drop it.
  [[nodiscard]] bool send_back_output() {
    // ORDER: acq_rel, as release_interest.
    return (word().fetch_and(~kJoinInterest, NORIA_ACQ_REL) & kOutput) != 0;
  }

  // Asked by the handle that goes: it is complete, nothing is left in it, and the handle's is the last reference (S4): the caller
  // frees it.
  [[nodiscard]] bool ends_with_handle() const {
    std::uint64_t now = load();
    return refs(now) == 1 && (now & (kComplete | kOutput)) == kComplete;
  }

  void ref() {
    // ORDER: relaxed, who has a reference may make another; nothing is published by it.
    word().fetch_add(kRef, NORIA_RELAXED);
  }

  // True: it was the last reference.
  [[nodiscard]] bool unref() {
    // ORDER: acq_rel, what each holder did happens before the last one frees.
    return refs(word().fetch_sub(kRef, NORIA_ACQ_REL)) == 1;
  }

 private:
#ifdef NORIA_MODEL
  Atomic<std::uint64_t>& word() { return cell_; }
  const Atomic<std::uint64_t>& word() const { return cell_; }
  Atomic<std::uint64_t> cell_{0};
#else
  Atomic<std::uint64_t>& word() { return cell_.word(); }
  const Atomic<std::uint64_t>& word() const { return cell_.word(); }
  LifeWord cell_;  // a task is a slot of a slab: the count keeps the word non-zero while it lives
#endif
};

}  // namespace noria::task
