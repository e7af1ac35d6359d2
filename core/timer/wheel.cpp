// wheel.cpp: see wheel.hpp; the protocol with other threads is in word.hpp and inbox.hpp.
#include "timer/wheel.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "timer/tick.hpp"

namespace noria::timer {

namespace {

// Where a deadline belongs: what has passed is due, even inside the tick that has begun.
std::uint64_t placement_tick(std::uint64_t deadline_ns, std::uint64_t now_ns) {
  std::uint64_t tick = deadline_tick(deadline_ns);
  return deadline_ns <= now_ns ? std::min(tick, now_tick(now_ns)) : tick;
}

// The hint for a deadline: when the slot opens that it belongs to.
std::uint64_t hint_ns(std::uint64_t deadline_ns, std::uint64_t now_ns) {
  return deadline_ns <= now_ns ? deadline_ns : tick_ns(deadline_tick(deadline_ns));
}

Reset too_late(const Timer& timer) { return timer.fired() ? Reset::kFired : Reset::kCancelled; }

}  // namespace

Expired::~Expired() { NORIA_ASSERT(empty(), "every collected timer is called back"); }

std::size_t Expired::run() {
  std::size_t fired_count = 0;
  while (head_ != nullptr) {
    Timer* timer = static_cast<Timer*>(head_);
    head_ = timer->next;
    if (head_ == nullptr) tail_ = &head_;
    const TimerOps* ops = timer->ops;
    bool fired = timer->fired();
    timer->word.hand_back();
    if (fired) {
      ++fired_count;
      ops->fire(timer);
    }
    ops->released(timer);
  }
  return fired_count;
}

Wheel::Wheel(std::uint64_t start_ns, void* host)
    : now_ns_(start_ns), host_(host), slots_(now_tick(start_ns)), inbox_(kNever) {}

Wheel::~Wheel() { NORIA_ASSERT(size() == 0, "a wheel goes only after clear() has emptied it"); }

void Wheel::count(std::size_t delta) {
  // ORDER: relaxed, written under the lock only; readers want a figure.
  size_.store(size_.load(NORIA_RELAXED) + delta, NORIA_RELAXED);
}

void Wheel::let_go(Timer& timer, Expired& out) {
  count(static_cast<std::size_t>(-1));
  out.append(timer);
}

Armed Wheel::arm(Timer& timer, std::uint64_t deadline_ns, Arming arming) {
  sync::MutexLock lock(lock_);
  if (NORIA_UNLIKELY(closed_)) return Armed::kClosed;
  // ORDER: relaxed, published by the word.
  timer.wheel.store(this, NORIA_RELAXED);
  timer.word.arm(deadline_ns);
  std::uint64_t tick = placement_tick(deadline_ns, now_ns_);
  if (arming == Arming::kPlaced) {
    slots_.place(timer, tick);
  } else {
    place_later(timer, tick);
  }
  count(1);
  return inbox_.lower_locked(hint_ns(deadline_ns, now_ns_)) ? Armed::kEarliest : Armed::kLater;
}

bool Wheel::cancel(Timer& timer, Wheel* mine) {
  bool decided = false;
  if (mine != nullptr) {
    bool won = mine->cancel_mine(timer, decided);
    if (decided) return won;
  }
  TimerWord::Remote result = timer.word.cancel_remote();
  if (result == TimerWord::Remote::kPush) {
    // ORDER: relaxed, read after the word; stays as it is while QUEUED.
    Wheel* wheel = timer.wheel.load(NORIA_RELAXED);
    wheel->inbox_.push(timer);
  }
  return result != TimerWord::Remote::kTooLate;
}

// Leaves `decided` false if the timer is not in this wheel.
bool Wheel::cancel_mine(Timer& timer, bool& decided) {
  // ORDER: relaxed, a first look; decided under the lock below.
  if (timer.wheel.load(NORIA_RELAXED) != this) return false;
  bool release = false;
  {
    sync::MutexLock lock(lock_);
    TimerWord::Bits bits = timer.word.load();
    do {
      if (!TimerWord::armed(bits)) {
        decided = true;
        return false;
      }
      // ORDER: relaxed, read after the word. Another arming has another word, so that an exchange
      // from these bits cancels an arming in this wheel.
      if (timer.wheel.load(NORIA_RELAXED) != this) return false;
    } while (!timer.word.cancel_locked(bits));
    decided = true;
    if ((bits & TimerWord::kLinked) != 0) slots_.unlink(timer);
    release = (bits & TimerWord::kQueued) == 0;
    if (release) count(static_cast<std::size_t>(-1));
    // ORDER: relaxed, a hint to look closer; read under the lock.
    if (timer.deadline_ns() <= inbox_.earliest_ns()) stale_.store(true, NORIA_RELAXED);
  }
  if (release) timer.ops->released(&timer);
  return true;
}

Reset Wheel::reset(Timer& timer, std::uint64_t deadline_ns, Wheel* mine) {
  std::uint64_t before_ns = timer.deadline_ns();
  // ORDER: relaxed, arm and reset are serialised by the caller.
  Wheel* wheel = timer.wheel.load(NORIA_RELAXED);
  if (mine != nullptr && mine == wheel && deadline_ns < before_ns) return mine->reset_mine(timer, deadline_ns);
  switch (timer.word.reset_remote(deadline_ns)) {
    case TimerWord::Remote::kTooLate:
      return too_late(timer);
    case TimerWord::Remote::kDone:
      // ORDER: relaxed, a hint to look closer; missed, it costs one early wake-up (E1).
      if (before_ns <= wheel->inbox_.earliest_ns()) wheel->stale_.store(true, NORIA_RELAXED);
      return Reset::kLater;
    case TimerWord::Remote::kPush:
      wheel->inbox_.push(timer);
      deadline_ns = timer.word.deadline_after_push_ns();
      break;
    case TimerWord::Remote::kQueued:
      break;
  }
  return wheel->inbox_.lower(hint_ns(deadline_ns, 0)) ? Reset::kEarliest : Reset::kLater;
}

Reset Wheel::reset_mine(Timer& timer, std::uint64_t deadline_ns) {
  sync::MutexLock lock(lock_);
  TimerWord::Bits bits = timer.word.load();
  do {
    if (!TimerWord::armed(bits)) return too_late(timer);
  } while (!timer.word.reset_locked(bits, deadline_ns));
  if ((bits & TimerWord::kLinked) != 0) {
    slots_.unlink(timer);
    place_later(timer, placement_tick(deadline_ns, now_ns_));
  }
  return inbox_.lower_locked(hint_ns(deadline_ns, now_ns_)) ? Reset::kEarliest : Reset::kLater;
}

Advanced Wheel::advance(std::uint64_t now_ns, Expired& out) {
  sync::MutexLock lock(lock_);
  return advance_locked(now_ns, out);
}

Advanced Wheel::try_advance(std::uint64_t now_ns, Expired& out) {
  if (!lock_.try_lock()) return Advanced::kBusy;
  Advanced result = advance_locked(now_ns, out);
  lock_.unlock();
  return result;
}

Advanced Wheel::advance_locked(std::uint64_t now_ns, Expired& out) {
  now_ns_ = std::max(now_ns_, now_ns);
  const std::uint64_t target = now_tick(now_ns_);
  int budget = kBatch;
  if (taken_ == nullptr) taken_ = inbox_.take();
  while (taken_ != nullptr && budget > 0) {
    drain_one(out);
    --budget;
  }
  if (slots_.fresh_tick() <= target) budget = place_fresh(place_cascade(budget));
  while (budget > 0) {
    if (Timer* due = slots_.pop_due()) {
      expire_one(*due, out);
      --budget;
      continue;
    }
    budget = place_cascade(budget);
    if (budget > 0 && !slots_.has_due() && !slots_.open_next(target)) break;
  }
  moved_ = std::min(moved_ + kBatch - budget, kMostAhead);
  if (int part = fresh_part(); part > budget) {
    (void)place_fresh(part);
    budget = 0;
  } else {
    budget = place_fresh(budget);
  }
  const bool more = taken_ != nullptr || slots_.earliest() <= target;
  // ORDER: relaxed, a hint; a store that comes later is seen by the next call.
  const bool stale = stale_.load(NORIA_RELAXED);
  if (more) {
    inbox_.publish(now_ns_);
  } else if (stale || budget < kBatch || inbox_.earliest_ns() <= now_ns_) {
    // ORDER: relaxed, as above.
    stale_.store(false, NORIA_RELAXED);
    if (stale || size() <= kSettle) slots_.settle(kSettle);
    cascade_ahead();
    inbox_.publish(tick_ns(slots_.earliest()));
  }
  return more ? Advanced::kMore : Advanced::kDone;
}

// What is due soon is placed at once, so that the fresh ones have time to be placed by looks, a few at a time (E3); but not before those of its tick, or of
// an earlier one, that were armed before it.
void Wheel::place_later(Timer& timer, std::uint64_t tick) {
  if (tick <= slots_.current() + kNear && tick < slots_.fresh_tick()) return slots_.place(timer, tick);
  slots_.add_fresh(timer, tick);
  // ORDER: relaxed, written under the lock only; who reads it without wants a hint.
  fresh_.store(fresh_.load(NORIA_RELAXED) + 1, NORIA_RELAXED);
}

bool Wheel::place_some() {
  // ORDER: relaxed, a hint: others write it under the lock when they act for the owner.
  if (fresh_.load(NORIA_RELAXED) <= kFresh) return false;
  sync::MutexLock lock(lock_);
  (void)place_fresh(kBatch);
  return true;
}

int Wheel::place_cascade(int budget) {
  for (; budget > 0; --budget) {
    Timer* timer = slots_.pop_cascade();
    if (timer == nullptr) break;
    slots_.place(*timer, placement_tick(timer->deadline_ns(), now_ns_));
  }
  return budget;
}

int Wheel::place_fresh(int budget) {
  for (; budget > 0; --budget) {
    Timer* timer = slots_.pop_fresh();
    if (timer == nullptr) {
      // ORDER: relaxed, as in place_later.
      fresh_.store(0, NORIA_RELAXED);
      break;
    }
    slots_.place(*timer, placement_tick(timer->deadline_ns(), now_ns_));
  }
  return budget;
}

int Wheel::fresh_part() const {
  // ORDER: relaxed, as in place_later.
  std::size_t fresh = fresh_.load(NORIA_RELAXED);
  return fresh <= kFresh ? 0 : static_cast<int>(std::min(fresh / kFreshPart, kMostFresh));
}

// As many again as were moved since, and a few: where about as many are due in each tick, none are left when a slot above opens.
void Wheel::cascade_ahead() {
  const int budget = kAhead + std::exchange(moved_, 0);
  for (int level = 1; level < Slots::kLevels; ++level) {
    for (int left = budget; left > 0; --left) {
      Timer* timer = slots_.pop_ahead(level);
      if (timer == nullptr) break;
      slots_.place(*timer, placement_tick(timer->deadline_ns(), now_ns_), level);
    }
  }
}

void Wheel::drain_one(Expired& out) {
  Timer& timer = *taken_;
  // Read before the word is changed: from then on the timer may be pushed again.
  taken_ = timer.inbox_next;
  bool was_linked = false;
  std::uint64_t deadline_ns = 0;
  TimerWord::Drained drained = timer.word.drain(was_linked, deadline_ns);
  if (was_linked) slots_.unlink(timer);
  if (drained == TimerWord::Drained::kPlace) {
    slots_.place(timer, placement_tick(deadline_ns, now_ns_));
  } else {
    let_go(timer, out);
  }
}

void Wheel::expire_one(Timer& timer, Expired& out) {
  std::uint64_t deadline_ns = 0;
  switch (timer.word.expire(now_ns_, deadline_ns)) {
    case TimerWord::Expiry::kFire:
      let_go(timer, out);
      break;
    case TimerWord::Expiry::kLater:
      slots_.place(timer, placement_tick(deadline_ns, now_ns_));
      break;
    case TimerWord::Expiry::kGone:
      break;
  }
}

bool Wheel::clear(Expired& out) {
  sync::MutexLock lock(lock_);
  closed_ = true;
  int budget = kBatch;
  if (taken_ == nullptr) taken_ = inbox_.take();
  while (taken_ != nullptr && budget > 0) {
    drain_one(out);
    --budget;
  }
  for (; budget > 0; --budget) {
    Timer* timer = slots_.pop_any();
    if (timer == nullptr) break;
    if (timer->word.close()) let_go(*timer, out);
  }
  inbox_.publish(budget > 0 && taken_ == nullptr ? kNever : now_ns_);
  return size() != 0;
}

}  // namespace noria::timer
