// op_queue.hpp: operations in future form on one side of a socket: first come, first served.
//
// Whoever finds the queue idle pumps it: tries the first operation until the system says "not now", then waits for
// readiness as one waiter. `armed_` is set from then until the waiter has fired, because a waiter must not be
// queued anew while it is on its way.
//
//   state of an Op     next                by
//   kNew               kQueued | kOver     submit
//   kQueued            kAttempt            the pump, which alone touches the operation then
//   kAttempt           kQueued | kOver     the pump
//   kQueued            kOver               cancel
//
// The gate. Who drops a read that the pump has just done, or a copy in the middle of a step, goes on to use the stream while
// bytes are still on their way back to it, or forth. So poll forms wait at the gate while the pump is between an attempt
// and the end of that operation, and while a cancelled copy has not ended; the pump itself waits for such copies only.
//   gate word    next         by
//   no kPump     | kPump      the pump, in the same breath as kAttempt
//   kPump        no kPump     the pump, behind the operation's end, or who took the result before; at 0 it wakes who waits
//   n            n + kCopy    hold, by the cancel of a copy
//   n            n - kCopy    unhold, behind the copy's end; at 0 it wakes, and it pumps
// Threads:    any. Attempts are serialised; nothing of others runs under lock_.
// Invariants: O1 who brings an operation to kOver finishes it, once. O2 operations queued imply: somebody pumps, the
//             waiter is armed, or a copy holds the gate. O3 who passes the gate finds what came back through Stream::keep.
// Lifetime:   part of a socket; each operation holds a reference of it.
#pragma once

#include <cstdint>

#include "base/spin_lock.hpp"
#include "net/socket.hpp"
#include "task/future.hpp"
#include "task/waker.hpp"

namespace noria::net {

class OpQueue;

struct Op : task::Future {
  enum class State : std::uint8_t { kNew, kQueued, kAttempt, kOver };
  // One try: NORIA_PENDING (the readiness was cleared) or the status. Writes the result's fields.
  using AttemptFn = std::int32_t (*)(Op* op);

  Op(const task::FutureOps* ops, runtime::Core* core, OpQueue* op_queue, AttemptFn op_attempt)
      : Future(ops, core), queue(op_queue), attempt(op_attempt) {}

  OpQueue* const queue;
  const AttemptFn attempt;
  Op* next = nullptr;  // guarded by the queue's lock, like the rest
  Op* prev = nullptr;
  State state = State::kNew;
  bool cancelled = false;  // wanted while kNew or kAttempt
};

class OpQueue : private reactor::Waiter {
 public:
  OpQueue(Socket& socket, std::uint32_t side);
  OpQueue(const OpQueue&) = delete;
  OpQueue& operator=(const OpQueue&) = delete;

  // Starts an operation; it may be finished when this returns.
  void submit(Op* op);
  // FutureOps::cancel of every operation.
  static void cancel(task::Future* future);

  // The operation's result was taken: nothing of it can come back.
  static void taken(Op* op);

  // Nothing is queued, in an attempt, or about to end.
  bool idle();

  // Something that was dropped may still move bytes of this side.
  bool held() const {
    // ORDER: acquire, pairs with leave: who finds the gate open finds what came back (O3).
    return gate_.load(NORIA_ACQUIRE) != 0;
  }
  // True: it is held, and the waker was left (the last wins) for when it is not. Not with `cancelled` set: a copy that is
  // cancelled meanwhile does not push out the waker of who comes after it.
  [[nodiscard]] bool wait_at_gate(const noria_cx* cx, const Atomic<bool>* cancelled = nullptr);
  // From the cancel of a copy until its end.
  void hold();
  void unhold();

 private:
  static constexpr int kTurns = 16;  // attempts before others get the thread

  static constexpr std::uint32_t kPump = 1;
  static constexpr std::uint32_t kCopy = 2;  // and its multiples

  void pump();
  Op* begin_attempt(int turn, std::int32_t& status, bool& defers) NORIA_REQUIRES(lock_);
  void enter(std::uint32_t part) NORIA_REQUIRES(lock_);
  task::Waker leave(std::uint32_t part) NORIA_REQUIRES(lock_);
  task::Waker leave_as(Op* op) NORIA_REQUIRES(lock_);
  std::uint32_t gate() NORIA_REQUIRES(lock_) {
    // ORDER: relaxed, it is written under the lock only.
    return gate_.load(NORIA_RELAXED);
  }
  bool rest() NORIA_REQUIRES(lock_);
  bool settle(Op* op, std::int32_t& status) NORIA_REQUIRES(lock_);
  void link(Op* op) NORIA_REQUIRES(lock_);
  void unlink(Op* op) NORIA_REQUIRES(lock_);
  void withdraw(Op* op);
  void on_fire();

  Socket& socket_;
  SpinLock lock_;
  Op* head_ NORIA_GUARDED_BY(lock_) = nullptr;
  Op* tail_ NORIA_GUARDED_BY(lock_) = nullptr;
  Op* ending_ NORIA_GUARDED_BY(lock_) = nullptr;  // whose kPump it is; compared only
  bool pumping_ NORIA_GUARDED_BY(lock_) = false;
  bool again_ NORIA_GUARDED_BY(lock_) = false;     // somebody wanted to pump meanwhile
  bool armed_ NORIA_GUARDED_BY(lock_) = false;     // the waiter is queued, deferred, or about to fire
  bool deferred_ NORIA_GUARDED_BY(lock_) = false;  // deferred: holds a reference of the socket
  Atomic<std::uint32_t> gate_{0};                  // written under lock_
  task::Waker at_gate_ NORIA_GUARDED_BY(lock_);    // set while gate_ is not 0 only
};

}  // namespace noria::net
