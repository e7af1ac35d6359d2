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

bool OpQueue::empty() {
  SpinScope scope(lock_);
  return head_ == nullptr;
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
      again_ = false;
      if (head_ == nullptr) {
        pumping_ = false;
        break;
      }
      if (turn >= kTurns && status == NORIA_PENDING) {
        defers = rest();
        break;
      }
      op = head_;
      op->state = Op::State::kAttempt;
      if (op->cancelled) status = -ECANCELED;
    }
    if (status == NORIA_PENDING) status = op->attempt(op);
    {
      SpinScope scope(lock_);
      over = settle(op, status);
    }
    if (status != NORIA_PENDING) op->finish_if_claimed(status);
  }
  if (defers) {
    socket_.core()->reactor()->defer(*this);  // with the reference; on_fire gives it back
  } else {
    socket_.unref();
  }
}

}  // namespace noria::net
