// future.hpp: the engine's side of noria_future.
//
// An operation derives from Future (no virtual functions: the life word must come first, see slab.hpp), brings
// FutureOps, and is made by Core::make_future. It starts with two references: the owner's (the handle) and the
// operation's (given back by finish() or release()).
//
// Life word: flags below, references above kRefShift.
//   CLAIMED    somebody (the completer or a canceller) decided how it ends; exactly one wins
//   CANCEL     ops->cancel was called
//   CONSUMED   the result was taken                                        (owner only)
// Threads:    poll, on_ready, result, drop: the owner, serialised. cancel: anyone who keeps it. claim and finish: the
//             operation. The status and typed result are written by the winner of claim() before publish().
// Invariants: F1 finish() is called exactly once, by the winner of claim(); or, where the operation keeps its reference for
//             longer, publish() by him and release() by whoever is done with it last. F2 ops->cancel is called at most once,
//             maybe while the operation completes; it must lead to publish() soon, and never blocks. F3 destroy runs
//             when both references are gone and gives back an untaken result and the memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.hpp"
#include "base/slab.hpp"
#include "noria/future.h"
#include "task/waker.hpp"

namespace noria::runtime {
class Core;
}

namespace noria::task {

class Future;

struct FutureOps {
  // Asks the operation to end: it tries to claim() and, if it wins, finish(-ECANCELED). Never blocks or allocates.
  void (*cancel)(Future*);
  // Moves the typed result out; nullptr: no result type. Called once, when ready, with size == result_size. Called for
  // failed operations too if `partial` is set.
  void (*result)(Future*, void* out);
  // Ends the life of the object: gives back an untaken result, runs the destructor. The memory is freed by the caller.
  void (*destroy)(Future*);
  std::size_t result_size;
  bool partial;      // the result tells what was done on failure and cancel too
  const char* name;  // "sleep", "tcp read": for reports
  // The end was told without a typed result: none was wanted, or there is none. May be null.
  void (*told)(Future*) = nullptr;
  // The owner gives it back and does nothing more with it; others may still have references. May be null.
  void (*dropped)(Future*) = nullptr;
};

class Future {
 public:
  // The life word stays zero, and the future invisible to a shutdown walk, until publish_life(), which
  // Core::make_future calls when the whole object is constructed.
  Future(const FutureOps* ops, runtime::Core* core) : ops_(ops), core_(core) {}
  void publish_life() {
    // ORDER: release, a shutdown walk that sees the word sees the rest.
    life_.word().store(2 * kRef, NORIA_RELEASE);
  }
  Future(const Future&) = delete;
  Future& operator=(const Future&) = delete;

  // --- the owner
  [[nodiscard]] std::int32_t poll(const noria_cx* cx);
  [[nodiscard]] std::int32_t on_ready(const noria_waker& waker);
  void forget_waker() { cell_.clear(); }  // who was to be told by it waits no more
  [[nodiscard]] std::int32_t take_result(void* out, std::size_t size);
  void drop();
  bool ready() const { return cell_.done(); }
  bool consumed() const;  // the result was taken: for destroy
  // Valid once ready().
  std::int32_t status() const { return status_; }

  // --- anyone who keeps it
  void cancel();

  // --- the operation
  // True: the caller decides how it ends, and must call finish().
  [[nodiscard]] bool claim() {
    // ORDER: acq_rel, the winner sees what the operation has done so far.
    return (life_.word().fetch_or(kClaimed, NORIA_ACQ_REL) & kClaimed) == 0;
  }
  // Publishes the status, wakes the owner, gives the operation's reference back. `this` may be gone after it.
  void finish(std::int32_t status);
  // claim() and finish() where no result is to be written between them.
  void finish_if_claimed(std::int32_t status) {
    if (claim()) finish(status);
  }
  // For an operation that gives its reference back later than it finishes: publish, then release.
  void publish(std::int32_t status);
  void ref() {
    // ORDER: relaxed, who has a reference may make another.
    life_.word().fetch_add(kRef, NORIA_RELAXED);
  }
  void release();
  // As ref(), for the maker of a future who reads the runtime's phase next.
  void ref_before_phase() {
    // ORDER: seq_cst, the word is published before the phase is read; pairs with the end of a shutdown.
    life_.word().fetch_add(kRef, NORIA_SEQ_CST);
  }

  // A reference for a walker that holds none; false if it is dead.
  [[nodiscard]] bool ref_if_live();

  const FutureOps* ops() const { return ops_; }
  runtime::Core* core() const { return core_; }
  bool claimed() const {
    // ORDER: acquire, as claim.
    return (life_.word().load(NORIA_ACQUIRE) & kClaimed) != 0;
  }

 protected:
  ~Future() = default;

 private:
  static constexpr std::uint64_t kClaimed = 1;
  static constexpr std::uint64_t kCancel = 2;
  static constexpr std::uint64_t kConsumed = 4;
  static constexpr unsigned kRefShift = 8;
  static constexpr std::uint64_t kRef = std::uint64_t{1} << kRefShift;

  LifeWord life_;         // first member: the slab reads it
  const FutureOps* ops_;  // immutable
  runtime::Core* core_;   // immutable; outlives the future (its memory is a slot of the core's slabs)
  WakerCell cell_;
  std::int32_t status_ = 0;  // the winner of claim(), then the owner
};

}  // namespace noria::task
