// oneshot.hpp: one pointer from a sender to a receiver, through one state word and without a lock.
//
// The word holds flags below and references above kRefShift (sender, receiver, futures of either: one each).
//
//   VALUE      the value was sent                                set by the sender
//   TX_GONE    the sender is gone                                set by the sender
//   RX_CLOSED  no value is taken any more                        set by the receiver
//   RX_WAKER   rx_waker_ holds who waits for the value           set by the receiver, cleared by who takes it
//   TX_WAKER   tx_waker_ holds who waits for RX_CLOSED           set by the sender, cleared by who takes it
//
//   from                        to                                by         order
//   not RX_CLOSED               VALUE TX_GONE, wakers cleared     sender     acq_rel  publishes the value
//   any                         TX_GONE, wakers cleared           sender     acq_rel
//   any                         RX_CLOSED, wakers cleared         receiver   acq_rel
//   not RX_WAKER, TX_GONE       RX_WAKER                          receiver   acq_rel  publishes the waker
//   not TX_WAKER, RX_CLOSED     TX_WAKER                          sender     acq_rel  publishes the waker
//
// Threads:    the sender's functions one at a time, the receiver's one at a time, the two sides at once.
// Invariants: O1 a waker's slot is written by its side only, and only while its flag is clear. O2 the waker belongs to
//             who cleared the flag. O3 VALUE and RX_CLOSED are decided by exchanges of one word: a value that
//             was refused is never seen by the receiver. O4 once VALUE is set the sender does not touch the value.
// Lifetime:   one slot for both ends; the last reference discards a value that nobody took.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/atomic.hpp"
#include "base/slab.hpp"
#include "noria/waker.h"
#include "runtime/core.hpp"

namespace noria::channel {

class OneshotWait;

class Oneshot {
 public:
  Oneshot(runtime::Core* core, void (*discard)(void* value)) : discard_(discard), core_(core) {
    // ORDER: relaxed, the ends are passed on by the caller.
    life_.word().store(2 * kRef, NORIA_RELAXED);
  }
  Oneshot(const Oneshot&) = delete;
  Oneshot& operator=(const Oneshot&) = delete;

  runtime::Core* core() const { return core_; }

  // --- the sender
  // NORIA_OK, or -NORIA_ECLOSED and the value stays the caller's. Ends the sender either way.
  [[nodiscard]] std::int32_t send(void* value);
  void drop_sender();
  // -EBUSY: a future of closed() has the side, until it is given back or has ended otherwise than as OK.
  [[nodiscard]] std::int32_t poll_closed(const noria_cx* cx);
  [[nodiscard]] std::int32_t closed(task::Future** out);  // the future: -ECANCELED if the sender goes first

  // --- the receiver
  // -EBUSY: a future of receive() has the side, until its result is taken, or it is given back or has failed.
  [[nodiscard]] std::int32_t try_receive(void** value);  // -EAGAIN: not yet
  [[nodiscard]] std::int32_t poll_receive(const noria_cx* cx, void** value);
  [[nodiscard]] std::int32_t receive(task::Future** out);
  void close();
  void drop_receiver();

 private:
  friend class OneshotWait;

  static char taken_mark_;  // its address is no value of a user

  static constexpr std::uint64_t kValue = 1;
  static constexpr std::uint64_t kTxGone = 2;
  static constexpr std::uint64_t kRxClosed = 4;
  static constexpr std::uint64_t kRxWaker = 8;
  static constexpr std::uint64_t kTxWaker = 16;
  static constexpr std::uint64_t kWakers = kRxWaker | kTxWaker;
  static constexpr unsigned kRefShift = 8;
  static constexpr std::uint64_t kRef = std::uint64_t{1} << kRefShift;

  ~Oneshot() = default;
  static bool held(const Atomic<OneshotWait*>& holder) {
    // ORDER: acquire, pairs with OneshotWait::let_go: the side sees what the owner of the future did with the value.
    return holder.load(NORIA_ACQUIRE) != nullptr;
  }
  // The value was passed on. `word` is the life word.
  bool taken(std::uint64_t word) const { return (word & kValue) != 0 && value_ == &taken_mark_; }
  // With VALUE set, and by who has the receiver's side.
  void* take_value() { return std::exchange(value_, &taken_mark_); }
  // Leaves a clone of `waker` in its slot. False: one of `over` is set, so there is nothing to wait for.
  [[nodiscard]] bool leave(const noria_waker& waker, noria_waker& slot, std::uint64_t flag, std::uint64_t over);
  // Sets `flags`, takes both wakers, gives a reference back if `unref`. False, with nothing done: one of `unless` is set.
  bool end_side(std::uint64_t flags, std::uint64_t unless, bool unref, bool sender);
  void ref() {
    // ORDER: relaxed, who has a reference may make another.
    life_.word().fetch_add(kRef, NORIA_RELAXED);
  }
  static void tell(noria_waker& waker, bool wanted);
  void unref();
  void end(std::uint64_t word);

  // The first line is all that sending and receiving touch.
  LifeWord life_;                 // the word
  void* value_ = nullptr;         // the sender until VALUE, then the receiver; &taken_mark_ once it was passed on
  void (*discard_)(void* value);  // immutable
  runtime::Core* core_;           // immutable
  noria_waker rx_waker_{};        // O1
  Atomic<OneshotWait*> rx_holder_{nullptr};  // see oneshot_wait.hpp
  noria_waker tx_waker_{};                   // O1
  Atomic<OneshotWait*> tx_holder_{nullptr};  // as rx_holder_
};

}  // namespace noria::channel
