#include "reactor/source.hpp"

#include <cerrno>

#include "base/assert.hpp"

namespace noria::reactor {

namespace {

constexpr std::uint32_t kInterestOf[2] = {NORIA_READABLE | NORIA_PRIORITY, NORIA_WRITABLE | NORIA_WRITE_CLOSED};

}  // namespace

void Fired::run() {
  for (std::size_t i = 0; i < count_; ++i) wakers_[i].vtable->wake(&wakers_[i]);
  count_ = 0;
  Waiter* waiter = head_;
  head_ = nullptr;
  tail_ = &head_;
  while (waiter != nullptr) {
    Waiter* next = waiter->next;  // it may be gone, or queued again, once it has fired
    waiter->fire(waiter);
    waiter = next;
  }
}

Source::~Source() {
  NORIA_ASSERT(head_ == nullptr, "a source that ends has no waiters: each holds a reference");
  live_add(Live::kSources, -1);
}

std::int32_t Source::poll_ready(std::uint32_t interest, const noria_cx* cx, Readiness& out) {
  const std::uint32_t mask = ready_mask(interest);
  out = look();
  if ((out.events & mask) != 0) return (out.events & kGone) != 0 ? -EBADF : NORIA_READY;
  const noria_waker& waker = *cx->waker;
  task::Waker fresh[2];  // what goes in, then what comes out: dropped after the lock
  bool same = true;
  {
    SpinScope scope(lock_);
    for (int side = 0; side < 2; ++side) {
      if ((interest & kInterestOf[side]) != 0 && !wakers_[side].wakes_same(waker)) same = false;
    }
    out = look();  // under the lock: R2
  }
  if (!same) {
    for (int side = 0; side < 2; ++side) {
      if ((interest & kInterestOf[side]) != 0) fresh[side] = task::Waker(waker);
    }
    SpinScope scope(lock_);
    for (int side = 0; side < 2; ++side) {
      if ((interest & kInterestOf[side]) != 0) std::swap(wakers_[side], fresh[side]);
    }
    out = look();
  }
  if ((out.events & mask) == 0) return NORIA_PENDING;
  return (out.events & kGone) != 0 ? -EBADF : NORIA_READY;
}

void Source::clear(Readiness seen, std::uint32_t events) {
  // ORDER: acquire, as in look; only the tick is compared.
  std::uint64_t word = word_.load(NORIA_ACQUIRE);
  while (word >> kTickShift == seen.tick) {
    std::uint64_t next = word & ~std::uint64_t{events & ~kGone & kEvents};
    // ORDER: acq_rel, keeps the release of the report that the word carries. Failure is retried with what came.
    if (next == word || word_.compare_exchange_weak(word, next, NORIA_ACQ_REL)) return;
  }
}

bool Source::wait(Waiter& waiter) {
  SpinScope scope(lock_);
  if ((look().events & ready_mask(waiter.interest)) != 0) return false;
  waiter.next = nullptr;
  waiter.prev = tail_;
  (tail_ != nullptr ? tail_->next : head_) = &waiter;
  tail_ = &waiter;
  waiter.linked = true;
  return true;
}

bool Source::forget(Waiter& waiter) {
  SpinScope scope(lock_);
  if (!waiter.linked) return false;
  (waiter.prev != nullptr ? waiter.prev->next : head_) = waiter.next;
  (waiter.next != nullptr ? waiter.next->prev : tail_) = waiter.prev;
  waiter.linked = false;
  return true;
}

void Source::report(std::uint32_t events, Fired& fired) {
  // ORDER: relaxed, the compare-and-swap below decides.
  std::uint64_t word = word_.load(NORIA_RELAXED);
  std::uint64_t next;
  do {
    next = (word | events) + (std::uint64_t{1} << kTickShift);
    // ORDER: acq_rel, publishes the event to look(); keeps earlier reports' releases. Failure is retried.
  } while (!word_.compare_exchange_weak(word, next, NORIA_ACQ_REL));
  SpinScope scope(lock_);
  for (int side = 0; side < 2; ++side) {
    if ((events & ready_mask(kInterestOf[side])) != 0) fired.add(std::move(wakers_[side]));
  }
  for (Waiter* waiter = head_; waiter != nullptr;) {
    Waiter* after = waiter->next;
    if ((events & ready_mask(waiter->interest)) != 0) {
      (waiter->prev != nullptr ? waiter->prev->next : head_) = after;
      (after != nullptr ? after->prev : tail_) = waiter->prev;
      waiter->linked = false;
      fired.add(waiter);
    }
    waiter = after;
  }
}

void Source::close() {
  Fired fired;
  report(kGone, fired);
}

}  // namespace noria::reactor
