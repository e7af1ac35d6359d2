#include "runtime/driver.hpp"

#include "reactor/reactor.hpp"
#include "runtime/core.hpp"
#include "timer/wheel.hpp"

namespace noria::runtime {

void EngineDriver::wait(std::uint64_t timeout_ns, std::uint64_t cap_ns) {
  // An injected or paused clock does not move with real time: who sleeps for a deadline of it is rung when it changes.
  bool real = core_.options_.clock_now == nullptr && !core_.clock_.paused();
  if (!real && timeout_ns != 0 && timeout_ns != kNever) timeout_ns = virtual_wait_ns(timeout_ns);
  (void)core_.reactor_->poll(timeout_ns < cap_ns ? timeout_ns : cap_ns);
}

// A paused clock waits for its ring; one that a function of the user's drives is looked at every millisecond.
std::uint64_t EngineDriver::virtual_wait_ns(std::uint64_t timeout_ns) const {
  if (core_.clock_.paused()) return kNever;
  return timeout_ns < kNsPerMs ? timeout_ns : kNsPerMs;
}

void EngineDriver::interrupt() {
  if (core_.forked()) return;  // the descriptor is the parent's too (A15)
  core_.reactor_->unpark();
}

bool EngineDriver::has_sources() const { return core_.reactor_->sources() != 0; }

std::uint64_t EngineDriver::now_ns() const { return core_.clock_.now_ns(); }

std::uint64_t EngineDriver::next_deadline_ns(std::uint32_t wheel) const {
  return core_.wheels_[wheel]->next_deadline_ns();
}

bool EngineDriver::due(std::uint32_t wheel, std::uint64_t now_ns) const { return core_.wheels_[wheel]->due(now_ns); }

void EngineDriver::fire_due(std::uint32_t wheel, std::uint64_t now_ns, bool owner) {
  timer::Wheel& from = *core_.wheels_[wheel];
  timer::Advanced more;
  do {
    timer::Expired expired;
    more = owner ? from.advance(now_ns, expired) : from.try_advance(now_ns, expired);
    expired.run();
  } while (more == timer::Advanced::kMore);
}

bool EngineDriver::sort_some(std::uint32_t wheel) { return core_.wheels_[wheel]->place_some(); }

bool EngineDriver::would_jump() const { return core_.clock_.paused(); }

bool EngineDriver::jump(std::uint64_t deadline_ns) { return core_.jump_clock(deadline_ns); }

void EngineDriver::pushed_late() { core_.pushed_late(); }

}  // namespace noria::runtime
