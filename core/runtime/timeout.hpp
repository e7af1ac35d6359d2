// timeout.hpp: a future that ends when another does, and cancels that one when its time has passed.
// Threads:    see composite.hpp; fire and released by whoever runs the wheel.
// Invariants: O1 it ends only through its child: time-out and cancel are passed down, and the child's end comes back up with
//             what it had done; who takes the result takes the child's. O2 the timer is armed before the child is listened to, and cancelled at the end.
// Lifetime:   owns the child until it is destroyed; the wheel holds a reference from arming to released().
#pragma once

#include <cstdint>

#include "runtime/composite.hpp"
#include "timer/timer.hpp"

namespace noria::runtime {

class Timeout final : public Composite, private timer::Timer {
 public:
  Timeout(Core* core, task::Future* child);
  ~Timeout() { drop_child(child_); }

  // Takes the child. -ENOMEM: it did not.
  [[nodiscard]] static std::int32_t create(Core& core, task::Future* child, std::uint64_t timeout_ns,
                                           task::Future** out);

 private:
  void begin(std::uint64_t timeout_ns);
  void expire();
  task::Future* lowest();

  static bool child_ready(Composite* self, std::size_t index);
  static void end(Composite* self);
  static void cancel(Composite* self) { cancel_child(static_cast<Timeout*>(self)->child_); }
  static void on_result(task::Future* future, void* out);
  static void on_told(task::Future* future);
  static void on_destroy(task::Future* future) { static_cast<Timeout*>(future)->~Timeout(); }
  static void on_fire(timer::Timer* timer) noexcept { static_cast<Timeout&>(*timer).expire(); }
  static void on_released(timer::Timer* timer) noexcept { static_cast<Timeout&>(*timer).release(); }
  static const Kind kKind;
  static const timer::TimerOps kTimerOps;

  const task::FutureOps own_ops_;  // the size of the result is the child's
  task::Future* const child_;
  Atomic<bool> expired_{false};
};

}  // namespace noria::runtime
