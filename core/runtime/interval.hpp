// interval.hpp: ticks at a fixed period; what was missed comes at once, delays the rhythm, or is left out.
// Threads:    one at a time; a tick's future may be cancelled, polled and dropped elsewhere meanwhile.
// Invariants: I1 next_ns_ is the next instant to report; the timer is armed for it when somebody waits. I2 a tick that a
//             future brought counts once its result is taken: one that is dropped unread comes again.
//             I3 at most one future is pending: latest_, until it is destroyed.
// Lifetime:   counted: the handle and the future of a tick.
#pragma once

#include <cstdint>

#include "base/counted.hpp"
#include "runtime/timer_handle.hpp"

namespace noria::runtime {

class Interval final : public Counted<Interval> {
 public:
  // `timer` is a handle of its own, which it gives back in the end.
  Interval(Core* core, TimerHandle* timer, std::uint64_t first_ns, std::uint64_t period_ns, std::uint32_t missed)
      : core_(core), timer_(timer), period_ns_(period_ns), missed_(missed), next_ns_(first_ns) {}
  ~Interval() { timer_->drop(); }

  // -ENOMEM. `first_ns` 0: now.
  [[nodiscard]] static std::int32_t create(Core& core, std::uint64_t first_ns, std::uint64_t period_ns,
                                           std::uint32_t missed, Interval** out);

  Core* core() const { return core_; }

  [[nodiscard]] std::int32_t poll_tick(const noria_cx* cx, std::uint64_t* instant_ns);
  [[nodiscard]] std::int32_t tick(task::Future** out);  // -EBUSY, -ENOMEM
  void reset();

 private:
  friend class IntervalTick;

  bool take_due(std::uint64_t& instant_ns);
  void arm();
  void took(std::uint64_t instant_ns);
  void forget(const task::Future* tick);
  void step(std::uint64_t now_ns) NORIA_REQUIRES(lock_);

  Core* const core_;
  TimerHandle* const timer_;
  const std::uint64_t period_ns_;
  const std::uint32_t missed_;
  sync::Mutex lock_;
  std::uint64_t next_ns_ NORIA_GUARDED_BY(lock_);
  task::Future* latest_ NORIA_GUARDED_BY(lock_) = nullptr;
};

}  // namespace noria::runtime
