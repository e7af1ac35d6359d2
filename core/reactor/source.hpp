// source.hpp: what the reactor knows of one descriptor: its readiness, and who waits for it.
//
// The readiness word holds events in its low byte (enum noria_events, and kGone once it is deregistered) and above
// them a tick of 56 bits that every report raises.
//   from          to                    by             order
//   (e, t)        (e | reported, t+1)   the poller     acq_rel, then it takes the waiters under lock_
//   (e, t)        (e & ~cleared, t)     who saw EAGAIN acq_rel, only while the tick is the one it was told
//   (e, t)        (e | kGone, t+1)      close()        acq_rel, likewise followed by the waiters
// Threads:    poll_ready: one at a time a direction. The rest: any.
// Invariants: R1 a clear never eats an event that came after the system call that said EAGAIN: the call came after the
//             tick was read, and 2^56 reports do not happen in between. R2 a waiter is left under lock_ and the word is read
//             again under it; a report writes the word first and takes the waiters after: one of both sees the other.
//             R3 nothing of others runs under lock_.
// Lifetime:   a slot of a slab, counted. The poller holds a reference while it deals with an event, see epoll.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include <noria/source.h>
#include "base/live.hpp"
#include "base/slab.hpp"
#include "base/spin_lock.hpp"
#include "task/waker.hpp"

namespace noria::reactor {

struct Readiness {
  std::uint32_t events = 0;
  std::uint64_t tick = 0;
};

inline constexpr std::uint32_t kGone = 64;  // deregistered: nothing will be reported any more

// The events that satisfy an interest: of NORIA_READABLE, NORIA_WRITABLE, NORIA_PRIORITY; or NORIA_WRITE_CLOSED alone, for
// who has nothing to write and wants to know that it would be in vain.
constexpr std::uint32_t ready_mask(std::uint32_t interest) {
  std::uint32_t mask = kGone | NORIA_ERROR | interest;
  if ((interest & (NORIA_READABLE | NORIA_PRIORITY)) != 0) mask |= NORIA_READ_CLOSED;
  if ((interest & NORIA_WRITABLE) != 0) mask |= NORIA_WRITE_CLOSED;
  return mask;
}

// A place in a source's queue, for what is not the one poller of a direction.
struct Waiter {
  std::uint32_t interest = 0;
  void (*fire)(Waiter*) = nullptr;  // once for each wait(), out of the queue, no lock held; keep it short
  Waiter* next = nullptr;           // guarded by the source's lock; then the firing thread's
  Waiter* prev = nullptr;           // likewise
  bool linked = false;              // likewise
};

// What one or more reports set free, to be woken when no lock is held.
class Fired {
 public:
  static constexpr std::size_t kRoom = 64;
  static constexpr std::size_t kPerSource = 2;

  Fired() = default;
  Fired(const Fired&) = delete;
  Fired& operator=(const Fired&) = delete;
  ~Fired() { run(); }

  void add(task::Waker&& waker) {
    if (waker) wakers_[count_++] = waker.release();
  }
  void add(Waiter* waiter) {
    waiter->next = nullptr;
    *tail_ = waiter;
    tail_ = &waiter->next;
  }
  bool crowded() const { return count_ > kRoom - kPerSource; }
  void run();

 private:
  noria_waker wakers_[kRoom];  // the first count_ are ours
  std::size_t count_ = 0;
  Waiter* head_ = nullptr;
  Waiter** tail_ = &head_;
};

class Source {
 public:
  using DestroyFn = void (*)(Source*);  // destroys the object and frees its slot

  // Starts with one reference. `fd` is not closed here.
  Source(std::int32_t fd, DestroyFn destroy) : destroy_(destroy), fd_(fd) {
    live_add(Live::kSources, 1);
    // ORDER: release, a walk over the slab that sees the word sees the rest.
    life_.word().store(1, NORIA_RELEASE);
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  std::int32_t fd() const { return fd_; }

  // NORIA_READY with what is known, NORIA_PENDING with the waker left (the last wins), or -EBADF once it is gone.
  [[nodiscard]] std::int32_t poll_ready(std::uint32_t interest, const noria_cx* cx, Readiness& out);

  // What is known now.
  Readiness look() const {
    // ORDER: acquire, pairs with report: who sees the event sees what its reporter did before.
    return unpack(word_.load(NORIA_ACQUIRE));
  }

  // Before it is registered: events that are worth a try at once.
  void assume(std::uint32_t events) {
    // ORDER: relaxed, nobody else knows the source yet.
    word_.store(events, NORIA_RELAXED);
  }

  // Forgets `events` unless something was reported after `seen` (R1).
  void clear(Readiness seen, std::uint32_t events);

  // True: queued, `waiter` will fire once. False: its interest is satisfied already (or the source is gone).
  [[nodiscard]] bool wait(Waiter& waiter);
  // True: out of the queue, it will not fire. False: it was not queued; it may be firing right now.
  [[nodiscard]] bool forget(Waiter& waiter);

  // The poller, or whoever closes: adds events and hands over who waits for them.
  void report(std::uint32_t events, Fired& fired);
  // No more reports: all that wait are told.
  void close();

  void ref() {
    // ORDER: relaxed, who has a reference (or the table's lock) may make another.
    life_.word().fetch_add(1, NORIA_RELAXED);
  }
  void unref() {
    // ORDER: acq_rel, what each holder did happens before the last one destroys.
    if (life_.word().fetch_sub(1, NORIA_ACQ_REL) == 1) destroy_(this);
  }

 protected:
  ~Source();

 private:
  static constexpr unsigned kTickShift = 8;
  static constexpr std::uint64_t kEvents = 0xFF;

  static Readiness unpack(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word & kEvents), word >> kTickShift};
  }

  LifeWord life_;  // the reference count
  const DestroyFn destroy_;
  Atomic<std::uint64_t> word_{0};
  const std::int32_t fd_;
  SpinLock lock_;
  task::Waker wakers_[2] NORIA_GUARDED_BY(lock_);  // of the poll forms: reading, writing
  Waiter* head_ NORIA_GUARDED_BY(lock_) = nullptr;
  Waiter* tail_ NORIA_GUARDED_BY(lock_) = nullptr;
};

}  // namespace noria::reactor
