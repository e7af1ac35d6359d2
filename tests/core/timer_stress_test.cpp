// Wheels under threads: eight threads arm, advance, cancel and reset their own timers and each other's
// (fired-cancel). A plain program, so that it runs under every sanitizer: a timer is freed by its last
// reference, so that a wheel that still points at one is seen. NORIA_LONG=1 runs sixty times as many
// rounds; NORIA_SEED gives the seed.
#include <barrier>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/assert.hpp"
#include "core/timer_probe.hpp"
#include "support/check.hpp"

using namespace noria;
using namespace noria::timer;

namespace {

constexpr unsigned kThreads = 8;
constexpr std::size_t kTimers = 200;  // of each thread, in one round
constexpr std::uint64_t kMs = kNsPerMs;

struct Home {
  Wheel wheel{0};
  Atomic<std::uint64_t> now_ns{0};
  bool closing = false;  // after the threads have ended
};

struct Shared : Timer {
  Shared(Home& home_of, bool again) : Timer(&kOps), home(&home_of), arm_again(again) {}

  Home* home;
  const bool arm_again;       // from its own callback, once; such a timer is not reset by others
  Atomic<int> references{1};  // the wheel's
  Atomic<int> armings{0};
  Atomic<int> fires{0};
  Atomic<int> cancels{0};
  Atomic<int> releases{0};

  static inline Atomic<std::int64_t> alive{0};

  void drop() {
    // ORDER: acq_rel, the last one sees what the others did.
    if (references.fetch_sub(1, NORIA_ACQ_REL) != 1) return;
    NORIA_ASSERT(idle(), "the last reference leaves no wheel behind");
    NORIA_ASSERT(fires + cancels == armings, "one of fire and cancel wins each arming");
    NORIA_ASSERT(releases == armings, "each arming is released once");
    --alive;
    delete this;
  }

  static void on_fire(Timer* timer) noexcept {
    Shared* shared = static_cast<Shared*>(timer);
    // ORDER: acquire, the clock of the wheel as it was at some advance before.
    std::uint64_t now = shared->home->now_ns.load(NORIA_ACQUIRE);
    // The deadline of the others may be that of a reset that came too late.
    if (shared->arm_again) NORIA_ASSERT(shared->deadline_ns() <= now, "a timer never fires early (P6)");
    if (++shared->fires != 1 || !shared->arm_again) return;
    ++shared->references;
    ++shared->armings;
    Armed armed = shared->home->wheel.arm(*shared, now + 2 * kMs);
    NORIA_ASSERT(armed != Armed::kClosed, "the wheel is open during the round");
  }
  static void on_released(Timer* timer) noexcept {
    Shared* shared = static_cast<Shared*>(timer);
    ++shared->releases;
    // Shutdown wins what nobody else has won.
    if (shared->home->closing && shared->fires + shared->cancels < shared->armings) ++shared->cancels;
    shared->drop();
  }
  static constexpr TimerOps kOps{on_fire, on_released};
};

struct Round {
  std::vector<Home> homes{kThreads};
  std::vector<Shared*> timers{std::vector<Shared*>(kThreads * kTimers)};
  std::barrier<> meet{kThreads};
};

void advance(Home& home, bool own, std::uint64_t step_ns) {
  // ORDER: acq_rel, the clock moves before the wheel is told.
  std::uint64_t now = home.now_ns.fetch_add(step_ns, NORIA_ACQ_REL) + step_ns;
  Advanced result;
  do {
    Expired expired;
    result = own ? home.wheel.advance(now, expired) : home.wheel.try_advance(now, expired);
    expired.run();
  } while (result == Advanced::kMore);
}

void cancel(Shared& timer, Wheel* mine) {
  if (Wheel::cancel(timer, mine)) ++timer.cancels;
}

void fill(Round& round, unsigned self, Random& random) {
  for (std::size_t i = 0; i < kTimers; ++i) {
    Shared* timer = new Shared(round.homes[self], random.below(4) == 0);
    ++Shared::alive;
    timer->references += static_cast<int>(kThreads);  // one for each thread
    ++timer->armings;
    round.timers[self * kTimers + i] = timer;
    Armed armed = round.homes[self].wheel.arm(*timer, random.below(40 * kMs));
    NORIA_ASSERT(armed != Armed::kClosed, "the wheel is open during the round");
  }
}

void meddle(Round& round, unsigned self, Random& random) {
  Home& home = round.homes[self];
  std::uint64_t first = random.next();
  for (std::size_t n = 0; n < round.timers.size(); ++n) {
    Shared& timer = *round.timers[(first + n * 7) % round.timers.size()];
    switch (random.below(8)) {
      case 0:
      case 1:
        cancel(timer, &home.wheel);
        break;
      case 2:
      case 3:
      case 4:
        if (!timer.arm_again) (void)Wheel::reset(timer, random.below(80 * kMs), &home.wheel);
        break;
      case 5:
        advance(round.homes[random.below(kThreads)], false, random.below(kMs));
        break;
      default:
        break;
    }
    if (n % 16 == 0) advance(home, true, random.below(kMs));
    timer.drop();
  }
}

void work(Round& round, unsigned self, std::uint64_t seed) {
  Random random{seed + self * 7919 + 1};
  fill(round, self, random);
  round.meet.arrive_and_wait();
  meddle(round, self, random);
  round.meet.arrive_and_wait();
  // All is quiet: half of the wheels go on to the end, the others are shut down.
  Home& home = round.homes[self];
  if (self % 2 == 0) {
    advance(home, true, 200 * kMs);
    advance(home, true, 200 * kMs);
    NORIA_ASSERT(home.wheel.next_deadline_ns() == kNever, "an empty wheel wakes nobody");
  }
}

}  // namespace

int main() {
  const char* given = std::getenv("NORIA_SEED");
  std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
  const int rounds = test::rounds(250, 15000);
  std::printf("NORIA_SEED=%" PRIu64 "\n", seed);
  std::fflush(stdout);
  for (int i = 0; i < rounds; ++i) {
    auto round = std::make_unique<Round>();
    std::vector<std::thread> threads;
    for (unsigned self = 0; self < kThreads; ++self)
      threads.emplace_back(work, std::ref(*round), self, seed + static_cast<std::uint64_t>(i) * 104729);
    for (std::thread& thread : threads) thread.join();
    for (unsigned self = 0; self < kThreads; ++self) {
      round->homes[self].closing = self % 2 == 1;
      if (self % 2 == 1) {
        bool more = true;
        while (more) {
          Expired expired;
          more = round->homes[self].wheel.clear(expired);
          expired.run();
        }
      }
      NORIA_ASSERT(round->homes[self].wheel.size() == 0, "the wheel holds nothing");
    }
    NORIA_ASSERT(Shared::alive == 0, "every timer was freed");
  }
  return 0;
}
