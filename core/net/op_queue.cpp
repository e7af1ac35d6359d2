#include "net/op_queue.hpp"

#include <cerrno>
#include <utility>

namespace noria::net {

OpQueue::OpQueue(Socket& socket, std::uint32_t side) : socket_(socket) {
  interest = side;
  fire = [](Waiter* waiter) { static_cast<OpQueue*>(waiter)->on_fire(); };
}

void OpQueue::link(Op* op) {
  op->next = nullptr;
  op->prev = tail_;
  (tail_ != nullptr ? tail_->next : head_) = op;
  tail_ = op;
}

void OpQueue::unlink(Op* op) {
  (op->prev != nullptr ? op->prev->next : head_) = op->next;
  (op->next != nullptr ? op->next->prev : tail_) = op->prev;
  op->state = Op::State::kOver;
}

void OpQueue::submit(Op* op) {
  bool first = false;
  bool cancelled = false;
  {
    SpinScope scope(lock_);
    cancelled = op->cancelled;
    if (cancelled) {
      op->state = Op::State::kOver;
    } else {
      first = head_ == nullptr;
      op->state = Op::State::kQueued;
      link(op);
    }
  }
  if (cancelled) {
    op->finish_if_claimed(-ECANCELED);
  } else if (first) {
    pump();
  }
}

void OpQueue::cancel(task::Future* future) {
  Op* op = static_cast<Op*>(future);
  op->queue->withdraw(op);
}

void OpQueue::withdraw(Op* op) {
  {
    SpinScope scope(lock_);
    op->cancelled = true;  // kNew, kAttempt: submit or the pump sees it
    if (op->state != Op::State::kQueued) return;
    unlink(op);
  }
  op->finish_if_claimed(-ECANCELED);
}

bool OpQueue::idle() {
  SpinScope scope(lock_);
  return head_ == nullptr && gate() == 0;
}

void OpQueue::on_fire() {
  bool was_deferred = false;
  {
    SpinScope scope(lock_);
    armed_ = false;
    was_deferred = std::exchange(deferred_, false);
  }
  pump();
  if (was_deferred) socket_.unref();
}

// Others get the thread. True: the caller defers the waiter; false: it is about to fire anyway.
bool OpQueue::rest() {
  pumping_ = false;
  if (armed_ && !socket_.forget(*this)) return false;
  armed_ = true;
  deferred_ = true;
  return true;
}

// After an attempt. True: the pump ends here, the waiter is armed (O2).
bool OpQueue::settle(Op* op, std::int32_t& status) {
  if (status == NORIA_PENDING && op->cancelled) status = -ECANCELED;
  if (status != NORIA_PENDING) {
    unlink(op);
    return false;
  }
  op->state = Op::State::kQueued;
  if (again_) return false;
  if (!armed_) armed_ = socket_.wait(*this);
  if (armed_) pumping_ = false;
  return armed_;
}

// What to try now, or nullptr: the pump ends here, and defers the waiter if it says so.
Op* OpQueue::begin_attempt(int turn, std::int32_t& status, bool& defers) {
  again_ = false;
  if (head_ == nullptr || gate() >= kCopy) {
    pumping_ = false;
    return nullptr;
  }
  if (turn >= kTurns && status == NORIA_PENDING) {
    defers = rest();
    return nullptr;
  }
  head_->state = Op::State::kAttempt;
  if (head_->cancelled) status = -ECANCELED;
  enter(kPump);
  ending_ = head_;
  return head_;
}

void OpQueue::pump() {
  {
    SpinScope scope(lock_);
    again_ = true;
    if (pumping_) return;
    pumping_ = true;
  }
  socket_.ref();  // the last operation may hold the last reference of others
  bool over = false;
  bool defers = false;
  for (int turn = 0; !over; ++turn) {
    Op* op = nullptr;
    std::int32_t status = socket_.gone() ? -EBADF : NORIA_PENDING;
    {
      SpinScope scope(lock_);
      op = begin_attempt(turn, status, defers);
    }
    if (op == nullptr) break;
    if (status == NORIA_PENDING) status = op->attempt(op);
    task::Waker opened;
    {
      SpinScope scope(lock_);
      over = settle(op, status);
      if (status == NORIA_PENDING) opened = leave_as(op);  // here: with `over` others may pump from now on
    }
    if (status != NORIA_PENDING) {
      op->finish_if_claimed(status);  // a dropped one gives its bytes back in here
      SpinScope scope(lock_);
      opened = leave_as(op);
    }
    opened.wake();
  }
  if (defers) {
    socket_.core()->reactor()->defer(*this);  // with the reference; on_fire gives it back
  } else {
    socket_.unref();
  }
}

void OpQueue::enter(std::uint32_t part) {
  // ORDER: release, as leave; who drops the operation is ordered behind it by the lock or by the future.
  gate_.store(gate() + part, NORIA_RELEASE);
}

// The waker, if the gate is open now: to be woken when no lock is held.
task::Waker OpQueue::leave(std::uint32_t part) {
  std::uint32_t left = gate() - part;
  // ORDER: release, pairs with held (O3).
  gate_.store(left, NORIA_RELEASE);
  return left == 0 ? std::move(at_gate_) : task::Waker();
}

task::Waker OpQueue::leave_as(Op* op) {
  if (ending_ != op) return {};
  ending_ = nullptr;
  return leave(kPump);
}

void OpQueue::taken(Op* op) {
  task::Waker opened;
  {
    SpinScope scope(op->queue->lock_);
    opened = op->queue->leave_as(op);
  }
  opened.wake();
}

bool OpQueue::wait_at_gate(const noria_cx* cx, const Atomic<bool>* cancelled) {
  if (!held()) return false;
  task::Waker waker(*cx->waker);  // goes in; what it pushes out is dropped after the lock
  SpinScope scope(lock_);
  if (gate() == 0) return false;
  // ORDER: acquire, the cancel sets it before it takes the lock in hold(): who waits behind that hold is not pushed out.
  if (cancelled == nullptr || !cancelled->load(NORIA_ACQUIRE)) std::swap(at_gate_, waker);
  return true;
}

void OpQueue::hold() {
  SpinScope scope(lock_);
  enter(kCopy);
}

void OpQueue::unhold() {
  task::Waker opened;
  {
    SpinScope scope(lock_);
    opened = leave(kCopy);
  }
  opened.wake();
  pump();
}

}  // namespace noria::net
