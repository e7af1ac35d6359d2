// The wheel on one thread: deadlines, edges, hints, shutdown (P6).
#include "timer/wheel.hpp"

#include <criterion/criterion.h>

#include <deque>
#include <initializer_list>

#include "core/timer_probe.hpp"

using namespace noria;
using namespace noria::timer;

namespace {

constexpr std::uint64_t kMs = kNsPerMs;
constexpr std::uint64_t kSpanMs = std::uint64_t{1} << Slots::kSpanBits;

std::uint64_t rounded_up(std::uint64_t deadline_ns) { return tick_ns(deadline_tick(deadline_ns)); }

// Starts whose ticks lie at edges of slots, levels and of time itself.
constexpr std::uint64_t kStarts[] = {
    0,
    1,
    31 * kMs,
    32 * kMs - 1,
    63 * kMs,
    64 * kMs - 1,
    1023 * kMs,
    1024 * kMs - 1,
    (kSpanMs - 1) * kMs,
    kSpanMs* kMs - 1,
    kSpanMs* kMs,
    (kSpanMs * 2 - 1) * kMs + 17,
    kNever - kSpanMs* kMs,
    kNever - 10'000 * kMs,
    kNever - 3 * kMs,
};

// Sleeps from hint to hint until the probe fires; returns the instant, kNever if no hint led to it.
std::uint64_t sleep_by_hint(Wheel& wheel, Probe& probe, int* wakes) {
  std::uint64_t now = 0;
  while (probe.fired_count == 0) {
    std::uint64_t next = wheel.next_deadline_ns();
    if (next == kNever) return kNever;
    cr_assert_geq(next, now);
    now = next;
    ++*wakes;
    run(wheel, now);
    cr_assert_lt(*wakes, 100);
  }
  return now;
}

// Arms itself again from its own callback, five times in all.
struct Ticker : Timer {
  explicit Ticker(Wheel& wheel_of) : Timer(&kTickerOps), home(&wheel_of) {}
  Wheel* home;
  int left = 5;
  int released_count = 0;
  static void on_fire(Timer* timer) noexcept {
    Ticker* ticker = static_cast<Ticker*>(timer);
    if (--ticker->left > 0) (void)ticker->home->arm(*ticker, ticker->deadline_ns() + 10 * kMs);
  }
  static void on_released(Timer* timer) noexcept { ++static_cast<Ticker*>(timer)->released_count; }
  static constexpr TimerOps kTickerOps{on_fire, on_released};
};

}  // namespace

Test(timer_wheel, Tick_rounding_is_never_early_and_late_by_one_tick_at_most) {
  std::uint64_t edges[] = {3, kMs, 7 * kMs, kSpanMs * kMs, kLastWholeTick * kMs, kNever - 3};
  for (std::uint64_t edge : edges) {
    for (std::uint64_t deadline = edge - 3; deadline <= edge + 2; ++deadline) {
      for (std::uint64_t now = edge - 3; now <= edge + 2; ++now) {
        if (deadline_tick(deadline) <= now_tick(now)) cr_assert_leq(deadline, now);
        if (deadline <= now) cr_assert_leq(deadline_tick(deadline), now_tick(now) + 1);
      }
    }
  }
  cr_assert_eq(tick_ns(kLastTick), kNever - 1);
  cr_assert_eq(tick_ns(kNeverTick), kNever);
}

Test(timer_wheel, Deadline_now_or_before_is_due_at_the_next_advance) {  // now-deadline
  for (std::uint64_t start : kStarts) {
    Wheel wheel(start);
    for (std::uint64_t deadline : {start, start - 1, std::uint64_t{0}}) {
      if (deadline > start) continue;
      Probe probe;
      cr_assert(wheel.arm(probe, deadline) == Armed::kEarliest);
      cr_assert(wheel.due(start));
      cr_assert_eq(run(wheel, start), 1);
      cr_assert_eq(probe.fired_count, 1);
      cr_assert_eq(probe.released_count, 1);
      cr_assert_eq(wheel.next_deadline_ns(), kNever);
      cr_assert_not(wheel.due(start));
    }
  }
}

Test(timer_wheel, Far_deadline_fires_at_its_tick_and_not_before) {  // far-deadline
  for (std::uint64_t start : kStarts) {
    for (std::uint64_t ahead_ms : {std::uint64_t{1}, (kSpanMs - 1), kSpanMs, kSpanMs + 1, kSpanMs * 3,
                                   std::uint64_t{2147483648}, kNever / kMs}) {
      for (std::uint64_t extra_ns : {std::uint64_t{0}, std::uint64_t{1}, kMs - 1}) {
        std::uint64_t deadline =
            saturating_add(start, saturating_add(ahead_ms > kNever / kMs ? kNever : ahead_ms * kMs, extra_ns));
        for (Arming arming : {Arming::kFresh, Arming::kPlaced}) {
          Wheel wheel(start);
          Probe probe;
          cr_assert(wheel.arm(probe, deadline, arming) == (deadline == kNever ? Armed::kLater : Armed::kEarliest));
          std::uint64_t due = rounded_up(deadline);
          cr_assert_eq(wheel.next_deadline_ns(), due);
          cr_assert_eq(run(wheel, deadline - 1), 0, "early: start %lu deadline %lu", start, deadline);
          cr_assert_eq(wheel.next_deadline_ns(), due);
          cr_assert_eq(run(wheel, due), 1, "late: start %lu deadline %lu", start, deadline);
          cr_assert_eq(wheel.size(), 0);
        }
      }
    }
  }
}

Test(timer_wheel, Deadline_at_the_end_of_u64_is_kept_and_cancelled) {  // far-deadline
  Wheel wheel(kNever - 5 * kMs);
  Probe never, last;
  cr_assert(wheel.arm(never, kNever) == Armed::kLater);
  cr_assert(wheel.arm(last, kNever - 1) == Armed::kEarliest);
  cr_assert_eq(run(wheel, kNever - 2), 0);
  cr_assert_eq(run(wheel, kNever - 1), 1);
  cr_assert_eq(last.fired_count, 1);
  cr_assert_eq(wheel.next_deadline_ns(), kNever);
  cr_assert(Wheel::cancel(never, &wheel));
  cr_assert_eq(never.released_count, 1);
  cr_assert_eq(wheel.size(), 0);
}

Test(timer_wheel, Slot_and_level_edges_fire_tick_by_tick) {
  for (std::uint64_t start_ms : {std::uint64_t{0}, std::uint64_t{62}, std::uint64_t{4095}, kSpanMs - 70}) {
    Wheel wheel(start_ms * kMs);
    std::deque<Probe> probes;
    for (std::uint64_t ahead = 1; ahead <= 8300; ++ahead)
      cr_assert(wheel.arm(probes.emplace_back(), (start_ms + ahead) * kMs) != Armed::kClosed);
    for (std::uint64_t ahead = 1; ahead <= 8300; ++ahead) {
      cr_assert_eq(wheel.next_deadline_ns(), (start_ms + ahead) * kMs);
      cr_assert_eq(run(wheel, (start_ms + ahead) * kMs - 1), 0);
      cr_assert_eq(run(wheel, (start_ms + ahead) * kMs), 1);
      cr_assert_eq(probes[ahead - 1].fired_count, 1);
    }
    cr_assert_eq(wheel.size(), 0);
  }
}

Test(timer_wheel, Sleeper_wakes_once_for_one_timer_wherever_it_lies) {  // P4: cascades wake nobody
  for (std::uint64_t start : {std::uint64_t{0}, std::uint64_t{1}, kSpanMs * kMs - 1}) {
    for (std::uint64_t ahead_ms = 1; ahead_ms < kSpanMs * 64; ahead_ms = ahead_ms * 3 + 1) {
      Wheel wheel(start);
      Probe probe;
      cr_assert(wheel.arm(probe, start + ahead_ms * kMs) == Armed::kEarliest);
      int wakes = 0;
      cr_assert_eq(sleep_by_hint(wheel, probe, &wakes), rounded_up(start + ahead_ms * kMs));
      cr_assert_eq(wakes, 1);
    }
  }
}

Test(timer_wheel, Earlier_arm_and_reset_say_that_the_sleeper_must_look_again) {  // earlier-arm
  Wheel wheel(0);
  Probe first, second, third;
  cr_assert(wheel.arm(first, 1000 * kMs) == Armed::kEarliest);
  cr_assert(wheel.arm(second, 2000 * kMs) == Armed::kLater);
  cr_assert(wheel.arm(third, 500 * kMs) == Armed::kEarliest);
  cr_assert(Wheel::reset(second, 100 * kMs, &wheel) == Reset::kEarliest);
  cr_assert_eq(wheel.next_deadline_ns(), 100 * kMs);
  cr_assert(Wheel::reset(first, 50 * kMs, nullptr) == Reset::kEarliest);  // from another thread
  cr_assert_eq(wheel.next_deadline_ns(), 50 * kMs);
  cr_assert(Wheel::reset(third, 60 * kMs, nullptr) == Reset::kLater);
  cr_assert(Wheel::reset(third, 40 * kMs, nullptr) == Reset::kEarliest);  // already in the inbox
  cr_assert(Wheel::reset(third, 70 * kMs, nullptr) == Reset::kLater);
  cr_assert_eq(run(wheel, 50 * kMs - 1), 0);
  cr_assert_eq(run(wheel, 50 * kMs), 1);
  cr_assert_eq(first.fired_count, 1);
  cr_assert_eq(wheel.next_deadline_ns(), 70 * kMs);
  cr_assert_eq(run(wheel, 100 * kMs), 2);
  cr_assert_eq(wheel.next_deadline_ns(), kNever);
}

Test(timer_wheel, Cancel_and_later_reset_leave_no_wake_up_behind) {
  for (bool remote : {false, true}) {
    Wheel wheel(0);
    Wheel* mine = remote ? nullptr : &wheel;
    Probe near, moved, far;
    cr_assert(wheel.arm(near, 5000 * kMs) == Armed::kEarliest);
    cr_assert(wheel.arm(moved, 5001 * kMs) == Armed::kLater);
    cr_assert(wheel.arm(far, 9000 * kMs) == Armed::kLater);
    cr_assert(Wheel::cancel(near, mine));
    cr_assert_not(Wheel::cancel(near, mine));
    cr_assert(Wheel::reset(near, 1, mine) == Reset::kCancelled);
    cr_assert(Wheel::reset(moved, 90'000 * kMs, mine) == Reset::kLater);
    cr_assert_eq(near.released_count, remote ? 0 : 1);
    cr_assert_eq(run(wheel, kMs), 0);  // what a worker does before it parks
    cr_assert_eq(near.released_count, 1);
    cr_assert(near.idle());
    cr_assert_eq(wheel.next_deadline_ns(), 9000 * kMs);
    cr_assert(Wheel::reset(far, kNever, mine) == Reset::kLater);
    cr_assert(Wheel::cancel(moved, mine));
    cr_assert_eq(run(wheel, 2 * kMs), 0);
    cr_assert_eq(wheel.next_deadline_ns(), kNever);
    cr_assert_eq(wheel.size(), 1);
    cr_assert(Wheel::reset(far, 10 * kMs, mine) == Reset::kEarliest);
    cr_assert_eq(run(wheel, 10 * kMs), 1);
    cr_assert(Wheel::reset(far, 1, mine) == Reset::kFired);
    cr_assert_not(Wheel::cancel(far, mine));
  }
}

Test(timer_wheel, Cancelled_timer_in_an_opened_slot_neither_fires_nor_leaks) {
  Wheel wheel(0);
  Probe cancelled, sooner, kept;
  for (Probe* probe : {&cancelled, &sooner, &kept}) cr_assert(wheel.arm(*probe, 100 * kMs) != Armed::kClosed);
  cr_assert(Wheel::cancel(cancelled, nullptr));
  cr_assert(Wheel::reset(sooner, 90 * kMs, nullptr) == Reset::kEarliest);
  cr_assert(Wheel::cancel(sooner, &wheel));  // the owner's cancel meets the inbox
  cr_assert_eq(sooner.released_count, 0);
  cr_assert_eq(run(wheel, 100 * kMs), 1);
  cr_assert_eq(kept.fired_count, 1);
  for (Probe* probe : {&cancelled, &sooner}) {
    cr_assert_eq(probe->fired_count, 0);
    cr_assert_eq(probe->released_count, 1);
  }
  cr_assert_eq(wheel.size(), 0);
}

Test(timer_wheel, One_advance_moves_a_bounded_batch_in_order) {
  constexpr std::size_t kTimers = 5000;
  Wheel wheel(0);
  std::deque<Probe> probes;
  for (std::size_t i = 0; i < kTimers; ++i)
    cr_assert(wheel.arm(probes.emplace_back(), (1 + i * 37 % kTimers) * kMs) != Armed::kClosed);
  std::size_t fired_count = 0;
  Advanced result;
  do {
    Expired expired;
    result = wheel.advance(kTimers * kMs, expired);
    if (result == Advanced::kMore) cr_assert(wheel.due(kTimers * kMs));
    std::size_t batch = expired.run();
    cr_assert_leq(batch, static_cast<std::size_t>(Wheel::kBatch));
    fired_count += batch;
  } while (result == Advanced::kMore);
  cr_assert_eq(fired_count, kTimers);
  std::uint64_t base = Probe::total_fired - kTimers;
  for (Probe& probe : probes) cr_assert_eq(probe.order - base, probe.deadline_ns() / kMs - 1);
}

// Armed from far to near: into levels that differ, the overflow list among them, or fresh and near ones in turn.
Test(timer_wheel, Same_tick_fires_in_the_order_of_arming) {
  for (Arming arming : {Arming::kFresh, Arming::kPlaced}) {
    for (std::uint64_t tick : {std::uint64_t{70'000}, 2 * kSpanMs + 5}) {
      Wheel wheel(0);
      std::deque<Probe> probes;
      std::uint64_t now = 0;
      for (std::uint64_t left = tick - 1; left > 0; left /= 3) {
        now = tick - left;
        cr_assert_eq(run(wheel, now * kMs), 0);
        for (int i = 0; i < 10; ++i) cr_assert(wheel.arm(probes.emplace_back(), tick * kMs, arming) != Armed::kClosed);
      }
      cr_assert_eq(run(wheel, (tick + 1) * kMs), probes.size());
      std::uint64_t base = probes[0].order;
      for (std::size_t i = 0; i < probes.size(); ++i) cr_assert_eq(probes[i].order, base + i);
    }
  }
}

Test(timer_wheel, Same_tick_fires_in_the_order_of_arming_while_its_slot_is_moved_ahead) {
  Wheel wheel(0);
  std::deque<Probe> probes;
  for (int i = 0; i < 200; ++i)
    cr_assert(wheel.arm(probes.emplace_back(), 70 * kMs, Arming::kPlaced) != Armed::kClosed);
  for (std::uint64_t tick = 40; tick <= 42; ++tick) {  // each moves some of them, not all
    Probe due;
    cr_assert(wheel.arm(due, tick * kMs, Arming::kPlaced) == Armed::kEarliest);
    cr_assert_eq(run(wheel, tick * kMs), 1);
    for (int i = 0; i < 20; ++i)
      cr_assert(wheel.arm(probes.emplace_back(), 70 * kMs, Arming::kPlaced) != Armed::kClosed);
  }
  cr_assert_eq(run(wheel, 80 * kMs), probes.size());
  std::uint64_t base = probes[0].order;
  for (std::size_t i = 0; i < probes.size(); ++i) cr_assert_eq(probes[i].order, base + i);
}

Test(timer_wheel, Tick_where_a_slot_opens_has_no_more_to_do_than_another) {
  struct Load {
    std::uint64_t each, ticks;
  };
  for (auto [each, ticks] : {Load{100, 3000}, Load{Wheel::kBatch + 1, 2200}, Load{600, 1100}}) {
    Wheel wheel(0);
    std::deque<Probe> probes;
    for (std::uint64_t i = 0; i < ticks * each; ++i)
      cr_assert(wheel.arm(probes.emplace_back(), (1 + i * 7919 % ticks) * kMs, Arming::kPlaced) != Armed::kClosed);
    for (std::uint64_t tick = 1; tick <= ticks; ++tick) {
      std::uint64_t fired = 0;
      Advanced result = Advanced::kMore;
      for (std::uint64_t calls = 0; result == Advanced::kMore; ++calls) {
        cr_assert_leq(calls, each / Wheel::kBatch, "at tick %lu of %lu each", tick, each);
        Expired expired;
        result = wheel.advance(tick * kMs, expired);
        fired += expired.run();
      }
      cr_assert_eq(fired, each);
    }
    cr_assert_eq(wheel.size(), 0);
  }
}

// However many have been armed and not looked at since.
Test(timer_wheel, P6_near_timer_does_not_wait_until_far_ones_are_placed) {
  constexpr std::uint64_t kFar = 100'000;
  Wheel wheel(0);
  std::deque<Probe> probes;
  for (std::uint64_t i = 0; i < kFar; ++i)
    cr_assert(wheel.arm(probes.emplace_back(), (2000 + i) * kMs) != Armed::kClosed);
  Probe near;
  cr_assert(wheel.arm(near, 5 * kMs) == Armed::kEarliest);
  {
    Expired expired;
    cr_assert(wheel.advance(5 * kMs, expired) == Advanced::kDone);
    cr_assert_eq(expired.run(), 1);
  }
  // And all have been placed by looks, a part each, when the first of them is due.
  std::uint64_t looks = 0;
  for (std::uint64_t tick = 6; wheel.due(tick * kMs); ++tick, ++looks) {
    Expired expired;
    cr_assert(wheel.advance(tick * kMs, expired) == Advanced::kDone);
    cr_assert_eq(expired.run(), 0);
  }
  cr_assert_leq(looks, 1000);
  clear(wheel);
}

Test(timer_wheel, Timers_armed_in_great_numbers_are_placed_little_by_little) {
  constexpr std::uint64_t kCount = 20 * Wheel::kFresh;
  constexpr std::uint64_t kFrom = 2 * Wheel::kNear;
  for (bool idle : {false, true}) {
    Wheel wheel(0);
    std::deque<Probe> probes;
    for (std::uint64_t i = 0; i < Wheel::kFresh; ++i)
      cr_assert(wheel.arm(probes.emplace_back(), (kFrom + i) * kMs) != Armed::kClosed);
    cr_assert_not(wheel.due(kMs), "a few wait until something is due");
    cr_assert_not(wheel.place_some());
    for (std::uint64_t i = Wheel::kFresh; i < kCount; ++i)
      cr_assert(wheel.arm(probes.emplace_back(), (kFrom + i) * kMs) != Armed::kClosed);
    std::uint64_t looks = 0;
    while (idle ? wheel.place_some() : wheel.due(kMs)) {
      Expired expired;
      if (!idle) cr_assert(wheel.advance(kMs, expired) == Advanced::kDone);
      cr_assert_eq(wheel.next_deadline_ns(), kFrom * kMs);
      cr_assert_leq(++looks, kCount / Wheel::kBatch + 1);
    }
    cr_assert_geq(looks, idle ? kCount / Wheel::kBatch : Wheel::kFreshPart);
    cr_assert_eq(run(wheel, kFrom * kMs), 1);
    cr_assert_eq(run(wheel, (kFrom + kCount) * kMs), kCount - 1);
    std::uint64_t base = probes[0].order;
    for (std::size_t i = 0; i < probes.size(); ++i) cr_assert_eq(probes[i].order, base + i);
  }
}

Test(timer_wheel, Fresh_timer_fires_in_its_tick_among_those_that_are_placed) {
  Wheel wheel(0);
  std::deque<Probe> probes;
  constexpr std::uint64_t kFrom = 2 * Wheel::kNear;
  for (std::uint64_t tick = kFrom + 1; tick <= kFrom + 200; ++tick) {
    cr_assert(wheel.arm(probes.emplace_back(), tick * kMs, tick % 2 == 0 ? Arming::kFresh : Arming::kPlaced) !=
              Armed::kClosed);
  }
  cr_assert_eq(run(wheel, (kFrom + 100) * kMs), 100);
  cr_assert_eq(run(wheel, (kFrom + 200) * kMs), 100);
  std::uint64_t base = probes[0].order;
  for (std::size_t i = 0; i < probes.size(); ++i) cr_assert_eq(probes[i].order, base + i);
}

Test(timer_wheel, Older_time_does_not_turn_the_wheel_back) {
  Wheel wheel(1000 * kMs);
  Probe probe;
  cr_assert_eq(run(wheel, 2000 * kMs), 0);
  cr_assert(wheel.arm(probe, 1500 * kMs) == Armed::kEarliest);
  cr_assert_eq(run(wheel, 100 * kMs), 1);
}

Test(timer_wheel, Timer_armed_again_from_its_own_callback_fires_again) {
  Wheel wheel(0);
  Ticker ticker(wheel);
  cr_assert(wheel.arm(ticker, 10 * kMs) == Armed::kEarliest);
  for (int i = 1; i <= 5; ++i) {
    cr_assert_eq(wheel.next_deadline_ns(), static_cast<std::uint64_t>(i) * 10 * kMs);
    cr_assert_eq(run(wheel, static_cast<std::uint64_t>(i) * 10 * kMs), 1);
  }
  cr_assert_eq(ticker.released_count, 5);
  cr_assert_eq(wheel.size(), 0);
}

Test(timer_wheel, Clear_releases_everything_once_and_refuses_what_comes_after) {  // P7
  Wheel wheel(0);
  std::deque<Probe> probes;
  Random random{42};
  for (int i = 0; i < 3000; ++i)
    cr_assert(wheel.arm(probes.emplace_back(), random.next() >> random.below(60)) != Armed::kClosed);
  for (std::size_t i = 0; i < probes.size(); i += 7) cr_assert(Wheel::cancel(probes[i], nullptr));
  for (std::size_t i = 1; i < probes.size(); i += 7) (void)Wheel::reset(probes[i], 10 * kMs, nullptr);
  clear(wheel);
  for (Probe& probe : probes) {
    cr_assert_eq(probe.fired_count, 0);
    cr_assert_eq(probe.released_count, 1);
    cr_assert(probe.cancelled());
    cr_assert(probe.idle());
    cr_assert_not(Wheel::cancel(probe, nullptr));
  }
  cr_assert_eq(wheel.size(), 0);
  cr_assert_eq(wheel.next_deadline_ns(), kNever);
  cr_assert(wheel.arm(probes[0], kMs) == Armed::kClosed);
  cr_assert(probes[0].idle());
}
