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
// Threads:    any. Attempts are serialised; nothing of others runs under lock_.
// Invariants: O1 who brings an operation to kOver finishes it, once. O2 operations queued imply: somebody pumps, or
//             the waiter is armed.
// Lifetime:   part of a socket; each operation holds a reference of it.
#pragma once

#include <cstdint>

#include "base/spin_lock.hpp"
#include "net/socket.hpp"
#include "task/future.hpp"

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

  bool empty();

 private:
  static constexpr int kTurns = 16;  // attempts before others get the thread

  void pump();
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
  bool pumping_ NORIA_GUARDED_BY(lock_) = false;
  bool again_ NORIA_GUARDED_BY(lock_) = false;     // somebody wanted to pump meanwhile
  bool armed_ NORIA_GUARDED_BY(lock_) = false;     // the waiter is queued, deferred, or about to fire
  bool deferred_ NORIA_GUARDED_BY(lock_) = false;  // deferred: holds a reference of the socket
};

}  // namespace noria::net
