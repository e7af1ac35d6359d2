// park.cpp: how a worker sleeps: announces it, looks once more, and sleeps as the poller in the reactor or in a futex.
//
// Order: the part (poller or not) is taken, ParkState::prepare, IdleWord::park, the last look at the queues, then sleep. Whoever brings work
// does it the other way round (idle_word.hpp). The poller publishes the instant it will wake at before it reads the deadlines of the
// sleepers; a sleeper that parks, or a guest that arms, reads it after its own is visible (G2).
#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "sched/scheduler.hpp"
#include "sched/sleep.hpp"
#include "sched/worker.hpp"
#include "sync/futex.hpp"

namespace noria::sched {

using sync::IdleWord;
using sync::ParkState;

void Worker::park(std::uint64_t limit_ns) {
  if (sorts_timers(limit_ns)) return;
  Sleep sleep;
  sleep.limit_ns = limit_ns;
  begin_sleep(sleep);
  if (sleep.poller) {
    sleep_in_reactor(sleep);
  } else if (!must_stay_awake()) {
    // Paused time jumps when the last one sleeps: the poller may have gone before.
    if (scheduler_.driver().would_jump()) scheduler_.ring_poller();
    sleep_in_futex(sleep);
  }
  end_sleep(sleep);
}

// Before it sleeps: so many timers may have been armed that to sort them takes long, and what is due or has come meanwhile goes first. True: it has
// something else to do now.
bool Worker::sorts_timers(std::uint64_t limit_ns) {
  task::Driver& driver = scheduler_.driver();
  while (driver.sort_some(index_)) {
    end_search();
    look_at_driver();
    if (has_ready() || !scheduler_.inject().empty() || scheduler_.stopping()) return true;
    if (limit_ns != kNever && driver.now_ns() >= limit_ns) return true;
  }
  return false;
}

void Worker::begin_sleep(Sleep& sleep) {
  const Config& config = scheduler_.config();
  if (config.on_park != nullptr) config.on_park(config.hook_data);
  counters_.parks.add(1);
  count_busy();
  slab_->collect();
  announce_sleep(sleep);
}

void Worker::announce_sleep(Sleep& sleep) {
  sleep.poller = scheduler_.take_poller(index_);
  // ORDER: release, before prepare(); pairs with in_reactor().
  in_reactor_.store(sleep.poller, NORIA_RELEASE);
  park_state_.prepare();
  IdleWord& idle = scheduler_.idle();
  idle.park(searching_);
  searching_ = false;
  if (scheduler_.workers() > 1) {
    sleep.sentry = idle.take_sentry(index_, sleep.poller ? IdleWord::kNobody : scheduler_.poller());
  }
}

// The last look. A worker that is no poller also sees to it that the poller knows of its deadlines.
bool Worker::must_stay_awake() const {
  if (has_ready() || !scheduler_.inject().empty() || scheduler_.stopping()) return true;
  scheduler_.deadline_armed(scheduler_.driver().next_deadline_ns(index_));
  return false;
}

std::uint64_t Worker::nearest_deadline(std::uint64_t limit_ns) const {
  std::uint64_t nearest_ns = limit_ns;
  for (std::uint32_t i = 0; i <= scheduler_.workers(); ++i) {
    // An awake worker looks after its own wheel; if it is stuck, the sentry's tick does.
    if (i < scheduler_.workers() && !scheduler_.worker(i).park_state().parked()) continue;
    std::uint64_t deadline_ns = scheduler_.driver().next_deadline_ns(i);
    if (deadline_ns < nearest_ns) nearest_ns = deadline_ns;
  }
  return nearest_ns;
}

void Worker::fire_for_sleepers(std::uint64_t now_ns) {
  task::Driver& driver = scheduler_.driver();
  for (std::uint32_t i = 0; i <= scheduler_.workers(); ++i) {
    bool own = i == index_;
    if (!own && i < scheduler_.workers() && !scheduler_.worker(i).park_state().parked()) continue;
    if (driver.next_deadline_ns(i) <= now_ns) driver.fire_due(i, now_ns, own);
  }
}

// Published before it is read once more: who arms an earlier one after that sees it and rings (G2; tests/model/deadline_model.cpp).
std::uint64_t Worker::publish_deadline(std::uint64_t limit_ns) {
  std::uint64_t deadline_ns = nearest_deadline(limit_ns);
  for (;;) {
    scheduler_.set_sleep_deadline(deadline_ns);
    std::uint64_t again_ns = nearest_deadline(limit_ns);
    if (again_ns >= deadline_ns) return deadline_ns;
    deadline_ns = again_ns;
  }
}

// The clock is paused and everybody sleeps: what the reactor has ready comes before time moves.
void Worker::jump_or_wait(std::uint64_t deadline_ns, const Sleep& sleep) {
  task::Driver& driver = scheduler_.driver();
  driver.wait(0, 0);
  if (has_ready() || !scheduler_.inject().empty()) return;
  if (deadline_ns != kNever && driver.jump(deadline_ns)) return;
  driver.wait(kNever, cap_ns(sleep));
}

void Worker::sleep_in_reactor(Sleep& sleep) {
  task::Driver& driver = scheduler_.driver();
  while (!must_stay_awake() && park_state_.load() != ParkState::kNotified) {
    std::uint64_t deadline_ns = publish_deadline(sleep.limit_ns);
    if (driver.would_jump() && scheduler_.idle().view().awake() == 0) {
      jump_or_wait(deadline_ns, sleep);
    } else if (deadline_ns == kNever) {
      driver.wait(kNever, cap_ns(sleep));
    } else {
      std::uint64_t now_ns = driver.now_ns();
      driver.wait(deadline_ns > now_ns ? deadline_ns - now_ns : 0, cap_ns(sleep));
    }
    scheduler_.clear_sleep_deadline();
    if (park_state_.load() == ParkState::kBell) hear_bell(sleep);
    if (nearest_deadline(sleep.limit_ns) != kNever) {
      std::uint64_t now_ns = driver.now_ns();
      fire_for_sleepers(now_ns);
      if (now_ns >= sleep.limit_ns) break;
    }
    if (sleep.sentry && !has_ready() && tick(sleep)) break;
  }
}

// The sentry that slept ticks again; where there is none, whoever hears the bell becomes it.
void Worker::hear_bell(Sleep& sleep) {
  park_state_.hush();
  if (std::exchange(sleep.asleep, false)) {
    // The first tick is a whole one: what was seen before this sleep says nothing.
    ticked_ns_ = monotonic_ns();
    for (std::uint32_t i = 0; i < scheduler_.workers(); ++i) (void)steps_since_tick(i);
  }
  if (scheduler_.workers() == 1) return;
  std::uint32_t from = sleep.poller ? IdleWord::kNobody : scheduler_.poller();
  // What it believes may be old: a poller is not told when a sleeper takes the part from it.
  sync::IdleWord& idle = scheduler_.idle();
  sleep.sentry = idle.view().sentry() == index_ || idle.take_sentry(index_, from);
  sleep.quiet_ticks = 0;
}

void Worker::sleep_in_futex(Sleep& sleep) {
  for (;;) {
    sync::futex_wait(park_state_.word(), ParkState::kParked, cap_ns(sleep));
    std::uint32_t state = park_state_.load();
    if (state == ParkState::kNotified) return;
    if (state == ParkState::kBell) {
      hear_bell(sleep);
      continue;
    }
    if (sleep.sentry && tick(sleep)) return;
  }
}

void Worker::end_sleep(Sleep& sleep) {
  IdleWord& idle = scheduler_.idle();
  // A waker that has notified has counted this worker as searching already; else it counts itself (P1 of parker.hpp), and does
  // so before it can no longer be notified: while nobody is counted as awake, everybody can be.
  if (park_state_.load() == ParkState::kNotified) {
    (void)park_state_.finish();
    searching_ = true;
  } else {
    std::uint32_t bell;
    searching_ = acting_;
    idle.unpark(searching_, bell);
    if (bell != IdleWord::kNobody && bell != index_) scheduler_.ring(bell);
    if (park_state_.finish() == ParkState::kNotified) {
      idle.count_once(searching_);
      searching_ = true;
    }
  }
  if (sleep.poller) {
    // ORDER: relaxed, read after a successful notify only.
    in_reactor_.store(false, NORIA_RELAXED);
    scheduler_.leave_poller();
  }
  if (sleep.sentry) (void)idle.leave_sentry(index_);
  // Looked at by everybody: who was rung to take the part over may have been woken before he heard it.
  if (scheduler_.workers() > 1 && idle.view().sentry_none()) hand_over_sentry();
  awake_since_ns_ = monotonic_ns();
  fresh_ = true;
  const Config& config = scheduler_.config();
  // The first owner finds it parked by nobody.
  if (config.on_unpark != nullptr && counters_.parks.get() != 0) config.on_unpark(config.hook_data);
}

// Whoever is parked still takes the part over when it hears the bell.
void Worker::hand_over_sentry() {
  for (std::uint32_t i = 0; i < scheduler_.workers(); ++i) {
    if (i != index_ && scheduler_.ring(i)) return;
  }
}

void Worker::look_at_driver() {
  task::Driver& driver = scheduler_.driver();
  std::uint64_t now_ns = driver.now_ns();
  pace_driver(now_ns);
  if (NORIA_UNLIKELY(--until_help_ == 0)) help_beside_work();
  if (driver.due(index_, now_ns)) driver.fire_due(index_, now_ns, true);
  if (!scheduler_.take_poller(index_)) return;
  if (driver.has_sources()) driver.wait(0, 0);
  fire_for_sleepers(now_ns);
  scheduler_.leave_poller();
}

// Where polls take long, fewer of them come between two looks, so that timers and events wait for about a tick only. Behind a sleep the
// time between says nothing, and what was learned before goes on.
void Worker::pace_driver(std::uint64_t now_ns) {
  std::uint64_t elapsed_ns = std::max<std::uint64_t>(now_ns - looked_ns_, 1);
  looked_ns_ = now_ns;
  if (!fresh_) {
    std::uint64_t fitting = driver_interval_ * kNsPerMs / elapsed_ns;
    driver_interval_ = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(fitting, 1, kDriverInterval));
  }
  fresh_ = false;
  until_driver_ = driver_interval_;
}

void Worker::await_owner() {
  Sleep sleep;
  announce_sleep(sleep);
  (void)publish_deadline(kNever);  // the foreign loop sleeps for that; who arms an earlier one rings
}

void Worker::stand_by() {
  Sleep sleep;
  begin_sleep(sleep);
  (void)publish_deadline(kNever);  // as await_owner
}

void Worker::take_up() {
  scheduler_.clear_sleep_deadline();
  Sleep sleep;
  sleep.poller = true;
  end_sleep(sleep);
}

}  // namespace noria::sched
