// line.hpp: standing in line for something that is given first come, first served: what semaphore and notify share.
//
// Owner derives from Line<Owner> and says what is given:
//   kKind, kWaitName
//   try_take(count)             without the lock: NORIA_OK, -EAGAIN, or an error
//   take_or_queue(waiter)       under lock_: as try_take, and on -EAGAIN the waiter is queued
//   left(batch)                 under lock_: a waiter has left the queue unserved; serves those behind it if it can
//   serve_rest(batch)           without the lock: tells the batch, and goes on while it was full
//   give_back(state, count)     without the lock: a grant whose waiter went away before it was reported
//
// Threads:    any, each with its own waiter; the calls with one waiter are serialised by its owner.
// Invariants: N1 nothing foreign runs under lock_: wakers are cloned before it, swapped under it, woken and dropped after it.
//             N2 of a grant and a cancel of a future, claim() decides; the loser of the two gives back what it holds.
// Lifetime:   counted: the handle and each future hold a reference.
// The analysis of locks cannot see that owner()->lock_ is this one's: three functions are exempt from it.
#pragma once

#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/counted.hpp"
#include "lock/waiter.hpp"
#include "runtime/core.hpp"
#include "sync/mutex.hpp"

namespace noria::lock {

template <typename Owner>
class LineFuture;

template <typename Owner>
class Line : public Counted<Owner> {
 public:
  runtime::Core* core() const { return core_; }

  // READY with what was asked for, PENDING, or an error of try_take or -NORIA_ECLOSED; then the waiter is unused again.
  [[nodiscard]] std::int32_t poll(std::uint64_t count, const noria_cx* cx, Waiter& waiter) {
    std::uint32_t state = waiter.load_state();
    if (state != Waiter::kUnused && (waiter.owner != owner() || waiter.kind != Owner::kKind)) return -EINVAL;
    if (!task::budget_poll(cx)) return NORIA_PENDING;
    if (state == Waiter::kUnused) {
      std::int32_t result = owner()->try_take(count);
      if (result == -EAGAIN) result = enter(count, *cx->waker, waiter);
      if (result != -EAGAIN) return result;
    } else if (state == Waiter::kQueued && !task::will_wake(waiter.waker, *cx->waker)) {
      replace(*cx->waker, waiter);
      state = waiter.load_state();
    }
    if (state != Waiter::kUnused && state != Waiter::kQueued) {
      waiter.reset();
      return state == Waiter::kClosed ? -NORIA_ECLOSED : NORIA_READY;
    }
    task::budget_restore(task::t_context);
    return NORIA_PENDING;
  }

  // A future of the same. -ENOMEM.
  [[nodiscard]] std::int32_t wait(std::uint64_t count, task::Future** out) {
    auto* future = core_->template make_future<LineFuture<Owner>>(owner(), count);
    if (future == nullptr) return -ENOMEM;
    *out = future;
    future->begin();
    return NORIA_OK;
  }

  // The waiter of a poll form goes away, in whatever state.
  void forget(Waiter& waiter) {
    WakeBatch batch;
    if (unlink(waiter, batch)) {
      task::Waker dropped = task::Waker::adopt(waiter.waker);
      waiter.reset();
      owner()->serve_rest(batch);
      return;
    }
    std::uint32_t state = waiter.load_state();
    std::uint64_t count = waiter.count;
    waiter.reset();
    owner()->give_back(state, count);
  }

 protected:
  explicit Line(runtime::Core* core) : core_(core) {}
  ~Line() = default;

  void queue(Waiter& waiter) NORIA_REQUIRES(lock_) {
    // ORDER: relaxed, under the lock that every other change of a queued waiter takes.
    waiter.state.store(Waiter::kQueued, NORIA_RELAXED);
    queue_.push_back(waiter);
  }

  sync::Mutex lock_;
  WaiterQueue queue_ NORIA_GUARDED_BY(lock_);

 private:
  friend class LineFuture<Owner>;

  Owner* owner() { return static_cast<Owner*>(this); }

  // Takes, or queues the waiter with a clone of `from` and answers -EAGAIN.
  std::int32_t enter(std::uint64_t count, const noria_waker& from, Waiter& waiter) NORIA_NO_THREAD_SAFETY_ANALYSIS {
    task::Waker waker(from);
    waiter.owner = owner();
    waiter.kind = Owner::kKind;
    waiter.count = count;
    std::int32_t result;
    {
      sync::MutexLock guard(lock_);
      result = owner()->take_or_queue(waiter);
      if (result == -EAGAIN) waiter.waker = waker.release();
    }
    if (result != -EAGAIN) waiter.reset();
    return result;
  }

  // Swaps the waker of a waiter, if it is still queued.
  void replace(const noria_waker& from, Waiter& waiter) {
    task::Waker waker(from);
    sync::MutexLock guard(lock_);
    if (waiter.load_state() != Waiter::kQueued) return;
    waker = task::Waker::adopt(std::exchange(waiter.waker, waker.release()));
  }

  // True: it was still queued and is out now.
  bool unlink(Waiter& waiter, WakeBatch& batch) NORIA_NO_THREAD_SAFETY_ANALYSIS {
    sync::MutexLock guard(lock_);
    if (waiter.load_state() != Waiter::kQueued) return false;
    queue_.remove(waiter);
    waiter.set_state(Waiter::kUnused);
    owner()->left(batch);
    return true;
  }

  runtime::Core* const core_;
};

template <typename Owner>
class LineFuture final : public task::Future {
 public:
  LineFuture(runtime::Core* core, Owner* owner, std::uint64_t count) : Future(&kOps, core), owner_(owner) {
    owner->ref();
    waiter_.owner = owner;
    waiter_.kind = Owner::kKind;
    waiter_.count = count;
    waiter_.waker.data = static_cast<task::Future*>(this);
  }

  ~LineFuture() {
    if (status() == NORIA_OK && !consumed()) owner_->give_back(waiter_.load_state(), waiter_.count);
    owner_->release();
  }

  void begin() NORIA_NO_THREAD_SAFETY_ANALYSIS {
    Line<Owner>& line = *owner_;
    std::int32_t result = owner_->try_take(waiter_.count);
    if (result == -EAGAIN) {
      sync::MutexLock guard(line.lock_);
      // A cancel that came before this did not find us in the queue and left the reference to us.
      result = claimed() ? -ECANCELED : owner_->take_or_queue(waiter_);
    }
    if (result == -EAGAIN) return;
    if (result == NORIA_OK) waiter_.set_state(Waiter::kGranted);
    if (claim()) return finish(result);
    if (result == NORIA_OK) owner_->give_back(Waiter::kGranted, waiter_.count);
    release();
  }

 private:
  static void on_cancel(task::Future* future) {
    auto* self = static_cast<LineFuture*>(future);
    if (!self->claim()) return;
    WakeBatch batch;
    bool queued = static_cast<Line<Owner>*>(self->owner_)->unlink(self->waiter_, batch);
    self->publish(-ECANCELED);
    self->owner_->serve_rest(batch);
    // Not queued: whoever took it from the queue gives the operation's reference back.
    if (queued) self->release();
  }
  static void on_destroy(task::Future* future) { static_cast<LineFuture*>(future)->~LineFuture(); }

  static constexpr task::FutureOps kOps = {on_cancel, nullptr, on_destroy, 0, false, Owner::kWaitName};

  Owner* const owner_;
  Waiter waiter_;
};

}  // namespace noria::lock
