// The wheel against a sorted map, with random deadlines, steps, cancels and resets (P6).
#include <criterion/criterion.h>

#include <cinttypes>
#include <cstdlib>
#include <deque>
#include <map>
#include <random>

#include "core/timer_probe.hpp"

using namespace noria;
using namespace noria::timer;

namespace {

constexpr std::uint64_t kMs = kNsPerMs;

std::uint64_t seed() {
  const char* given = std::getenv("NORIA_SEED");
  std::uint64_t value = given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}() | 1ULL;
  cr_log_info("NORIA_SEED=%" PRIu64, value);
  return value;
}

// A distance of any magnitude up to 2^bits ns.
std::uint64_t distance(Random& random, std::uint64_t bits) { return random.next() >> (64 - (1 + random.below(bits))); }

// The wheel, and what it must do.
struct Pair {
  Wheel wheel;
  std::multimap<std::uint64_t, Probe*> model;  // by the instant at which it must have fired
  std::uint64_t now;
  std::uint64_t used_seed;

  Pair(std::uint64_t start, std::uint64_t s) : wheel(start), now(start), used_seed(s) {}

  static std::uint64_t due(std::uint64_t deadline) { return tick_ns(deadline_tick(deadline)); }

  void arm(Probe& probe, std::uint64_t deadline) {
    std::uint64_t earliest = wheel.next_deadline_ns();
    Armed armed = wheel.arm(probe, deadline);
    std::uint64_t hint = deadline <= now ? deadline : due(deadline);
    cr_assert(armed == (hint < earliest ? Armed::kEarliest : Armed::kLater), "seed %" PRIu64, used_seed);
    model.emplace(deadline, &probe);
  }

  void forget(Probe& probe) {
    auto range = model.equal_range(probe.deadline_ns());
    for (auto i = range.first; i != range.second; ++i) {
      if (i->second != &probe) continue;
      model.erase(i);
      return;
    }
    cr_assert_fail("the model has no such timer, seed %" PRIu64, used_seed);
  }

  void cancel(Probe& probe, bool mine) {
    bool armed = probe.armed();
    if (armed) forget(probe);
    cr_assert_eq(Wheel::cancel(probe, mine ? &wheel : nullptr), armed, "seed %" PRIu64, used_seed);
  }

  void reset(Probe& probe, std::uint64_t deadline, bool mine) {
    bool armed = probe.armed();
    if (armed) {
      forget(probe);
      model.emplace(deadline, &probe);
    }
    Reset result = Wheel::reset(probe, deadline, mine ? &wheel : nullptr);
    cr_assert_eq(result == Reset::kLater || result == Reset::kEarliest, armed, "seed %" PRIu64, used_seed);
  }

  // The hint is never late; what fired was due and what was due by a whole tick has fired.
  void advance(std::uint64_t to) {
    if (!model.empty()) cr_assert_leq(wheel.next_deadline_ns(), due(model.begin()->first), "seed %" PRIu64, used_seed);
    now = to;
    run(wheel, now);
    while (!model.empty() && due(model.begin()->first) <= now) {
      Probe* probe = model.begin()->second;
      cr_assert_eq(probe->fired_count, 1, "late, seed %" PRIu64, used_seed);
      model.erase(model.begin());
    }
    for (auto i = model.begin(); i != model.end() && i->first <= now;) {
      bool fired = i->second->fired_count == 1;
      i = fired ? model.erase(i) : std::next(i);
    }
    check();
  }

  void check() {
    cr_assert_eq(wheel.size(), model.size(), "seed %" PRIu64, used_seed);
    for (auto i = model.begin(); i != model.end(); ++i) {
      cr_assert_eq(i->second->fired_count, 0, "early, seed %" PRIu64, used_seed);
      if (i->first > now + 100 * kMs) break;  // one look at those nearby each time
    }
    if (model.empty()) cr_assert_eq(wheel.next_deadline_ns(), kNever, "seed %" PRIu64, used_seed);
  }
};

}  // namespace

Test(timer_random, Ten_thousand_timers_fire_never_early_and_within_a_tick) {  // early-fire
  std::uint64_t s = seed();
  Random random{s};
  for (std::uint64_t start : {std::uint64_t{123'456'789}, (std::uint64_t{1} << 36) * kMs - 500 * kMs}) {
    Pair pair(start, s);
    std::deque<Probe> probes;
    std::uint64_t last = 0;
    for (int i = 0; i < 10'000; ++i) {
      std::uint64_t deadline = pair.now + random.below(3000 * kMs);
      last = deadline > last ? deadline : last;
      pair.arm(probes.emplace_back(), deadline);
      if (i % 16 == 0) pair.advance(pair.now + random.below(2 * kMs));
    }
    while (pair.now < last + kMs) pair.advance(pair.now + random.below(5 * kMs));
    cr_assert(pair.model.empty(), "seed %" PRIu64, s);
    for (Probe& probe : probes) {
      cr_assert_eq(probe.fired_count, 1, "seed %" PRIu64, s);
      cr_assert_eq(probe.released_count, 1, "seed %" PRIu64, s);
    }
  }
}

Test(timer_random, Any_mix_of_calls_agrees_with_a_sorted_map) {
  std::uint64_t s = seed();
  Random random{s};
  for (int round = 0; round < 60; ++round) {
    Pair pair(random.next() >> random.below(64), s);
    std::deque<Probe> probes;
    std::uint64_t reach = 21 + random.below(43);  // from ticks to the end of u64
    for (int step = 0; step < 3000; ++step) {
      std::uint64_t what = random.below(100);
      if (what < 40 || probes.empty()) {
        pair.arm(probes.emplace_back(), saturating_add(pair.now, distance(random, reach)));
      } else if (what < 60) {
        pair.cancel(probes[random.below(probes.size())], random.below(2) == 0);
      } else if (what < 85) {
        pair.reset(probes[random.below(probes.size())], saturating_add(pair.now, distance(random, reach)),
                   random.below(2) == 0);
      } else if (what < 97) {
        pair.advance(saturating_add(pair.now, distance(random, reach - 8)));
      } else {
        std::uint64_t next = pair.wheel.next_deadline_ns();  // sleep by the hint
        if (next != kNever) pair.advance(next > pair.now ? next : pair.now);
      }
    }
    pair.advance(kNever - 1);
    clear(pair.wheel);
    for (Probe& probe : probes) cr_assert_eq(probe.released_count, 1, "seed %" PRIu64, s);
  }
}
