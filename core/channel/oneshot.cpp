#include "channel/oneshot.hpp"

#include <cerrno>

#include "base/foreign.hpp"
#include "channel/oneshot_wait.hpp"

namespace noria::channel {

char Oneshot::taken_mark_;

std::int32_t Oneshot::send(void* value) {
  value_ = value;  // not seen by anyone unless VALUE follows
  if (end_side(kValue | kTxGone, kRxClosed, true, true)) return NORIA_OK;
  drop_sender();
  return -NORIA_ECLOSED;
}

void Oneshot::drop_sender() { end_side(kTxGone, 0, true, true); }

void Oneshot::close() { end_side(kRxClosed, 0, false, false); }

void Oneshot::drop_receiver() {
  // ORDER: acquire, pairs with the sender's last exchange: with one reference left nobody else is here.
  std::uint64_t word = life_.word().load(NORIA_ACQUIRE);
  if ((word >> kRefShift) == 1 && (word & kWakers) == 0) return end(word);
  end_side(kRxClosed, 0, true, false);
}

bool Oneshot::end_side(std::uint64_t flags, std::uint64_t unless, bool unref, bool sender) {
  // ORDER: acquire, pairs with the other side's exchanges: sees the wakers that they left.
  std::uint64_t word = life_.word().load(NORIA_ACQUIRE);
  std::uint64_t next;
  do {
    if ((word & unless) != 0) return false;
    next = (word | flags) & ~kWakers;
    if (unref && (word & kWakers) == 0) next -= kRef;
    // ORDER: acq_rel, publishes the value and what the side did; acquires the wakers (O2). Failure is retried.
  } while (!life_.word().compare_exchange_weak(word, next, NORIA_ACQ_REL));
  if ((word & kWakers) == 0) {
    if (unref && (next >> kRefShift) == 0) end(next);
    return true;
  }
  noria_waker rx = rx_waker_, tx = tx_waker_;
  if (unref) this->unref();
  // The other side's waker is told. Our own is not needed any more, but for that of a future, which ends by it.
  if ((word & kRxWaker) != 0) tell(rx, sender);
  if ((word & kTxWaker) != 0) tell(tx, !sender);
  return true;
}

void Oneshot::tell(noria_waker& waker, bool wanted) {
  if (wanted || waker.vtable == &OneshotWait::kWaker) {
    waker.vtable->wake(&waker);
  } else {
    waker.vtable->drop(&waker);
  }
}

bool Oneshot::leave(const noria_waker& waker, noria_waker& slot, std::uint64_t flag, std::uint64_t over) {
  // ORDER: acquire, pairs with end_side: sees the value, and that the slot is free.
  std::uint64_t word = life_.word().load(NORIA_ACQUIRE);
  if ((word & over) != 0) return false;
  if ((word & flag) != 0 && task::will_wake(slot, waker)) return true;
  task::Waker old;
  task::Waker next(waker);
  if ((word & flag) != 0) {
    // ORDER: acq_rel, takes the slot back, unless the other side has it (O2): then it is over.
    if ((life_.word().fetch_and(~flag, NORIA_ACQ_REL) & flag) == 0) return false;
    old = task::Waker::adopt(slot);
  }
  slot = next.release();
  // ORDER: acq_rel, publishes the slot; acquires what ended it meanwhile.
  if ((life_.word().fetch_or(flag, NORIA_ACQ_REL) & over) == 0) return true;
  // Over before the flag was set, so the other side did not look: take it back.
  // ORDER: acq_rel, as above.
  if ((life_.word().fetch_and(~flag, NORIA_ACQ_REL) & flag) != 0) next = task::Waker::adopt(slot);
  return false;
}

std::int32_t Oneshot::poll_closed(const noria_cx* cx) {
  if (held(tx_holder_)) return -EBUSY;
  if (!task::budget_poll(cx)) return NORIA_PENDING;
  if (!leave(*cx->waker, tx_waker_, kTxWaker, kRxClosed)) return NORIA_READY;
  task::budget_restore(task::t_context);
  return NORIA_PENDING;
}

std::int32_t Oneshot::try_receive(void** value) {
  if (held(rx_holder_)) return -EBUSY;
  // ORDER: acquire, pairs with send: who sees VALUE sees the value.
  std::uint64_t word = life_.word().load(NORIA_ACQUIRE);
  if (taken(word)) return -NORIA_ECONSUMED;
  if ((word & kValue) != 0) {
    *value = take_value();
    return NORIA_OK;
  }
  return (word & (kTxGone | kRxClosed)) != 0 ? -NORIA_ECLOSED : -EAGAIN;
}

std::int32_t Oneshot::poll_receive(const noria_cx* cx, void** value) {
  if (held(rx_holder_)) return -EBUSY;
  if (!task::budget_poll(cx)) return NORIA_PENDING;
  std::int32_t result = try_receive(value);
  if (result != -EAGAIN) return result;
  if (!leave(*cx->waker, rx_waker_, kRxWaker, kTxGone | kRxClosed)) return try_receive(value);
  task::budget_restore(task::t_context);
  return NORIA_PENDING;
}

void Oneshot::unref() {
  // ORDER: acq_rel, what each side did happens before the last one ends it.
  std::uint64_t before = life_.word().fetch_sub(kRef, NORIA_ACQ_REL);
  if ((before >> kRefShift) == 1) end(before);
}

void Oneshot::end(std::uint64_t word) {
  bool discard = (word & kValue) != 0 && !taken(word);
  void (*callback)(void*) = discard_;
  void* value = value_;
  this->~Oneshot();
  Slab::free(this);
  if (discard) call_foreign(callback, value);
}

}  // namespace noria::channel
