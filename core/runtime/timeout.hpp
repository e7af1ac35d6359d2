// timeout.hpp: a future that ends when another does, and cancels that one when its time has passed.
// Threads:    see composite.hpp; fire and released by whoever runs the wheel.
// Invariants: O1 it ends only through its child: time-out and cancel are passed down, and the child's end comes back up with
//             what it had done; who takes the result takes the child's. O2 the timer is armed before the child is listened to, and cancelled at the end.
//             O3 the child is dropped as soon as the time-out has ended, its owner is gone and nobody is passing a cancel
//             down: what an untaken child holds must not wait for the wheel to let go of the timer.
// Lifetime:   owns the child until then; the wheel holds a reference from arming to released().
#pragma once

#include <cstdint>

#include "runtime/composite.hpp"
#include "timer/timer.hpp"

namespace noria::runtime {

class Timeout final : public Composite, private timer::Timer {
 public:
  Timeout(Core* core, task::Future* child);
  ~Timeout() = default;

  // Takes the child. -ENOMEM: it did not.
  [[nodiscard]] static std::int32_t create(Core& core, task::Future* child, std::uint64_t timeout_ns,
                                           task::Future** out);
  // What is inside of a tower of time-outs; the future itself if it is none. By the owner.
  static task::Future* inmost(task::Future* future);

 private:
  void begin(std::uint64_t timeout_ns);
  void expire();
  void pass_cancel();
  void let_child_go(std::uint32_t hold);

  static bool child_ready(Composite* self, std::size_t index);
  static void end(Composite* self);
  static void cancel(Composite* self) { static_cast<Timeout*>(self)->pass_cancel(); }
  static void on_result(task::Future* future, void* out);
  static void on_told(task::Future* future);
  static void on_dropped(task::Future* future) { static_cast<Timeout*>(future)->let_child_go(kOwner); }
  static void on_destroy(task::Future* future) { static_cast<Timeout*>(future)->~Timeout(); }
  static void on_fire(timer::Timer* timer) noexcept { static_cast<Timeout&>(*timer).expire(); }
  static void on_released(timer::Timer* timer) noexcept { static_cast<Timeout&>(*timer).release(); }
  // Who may still use the child; whoever takes the last of them away drops it.
  static constexpr std::uint32_t kOwner = 1;
  static constexpr std::uint32_t kRunning = 2;
  static constexpr std::uint32_t kCanceller = 4;  // one each

  static const Kind kKind;
  static const timer::TimerOps kTimerOps;

  const task::FutureOps own_ops_;  // the size of the result is the child's
  task::Future* const child_;
  Atomic<std::uint32_t> holds_{kOwner | kRunning};  // on the child
  Atomic<bool> expired_{false};
};

}  // namespace noria::runtime
