// sleep.hpp: a future that is ready at an instant: future and timer in one slot.
// Threads:    fire and released by whoever runs the wheel; cancel by anyone.
// Invariants: L1 the operation's reference belongs to the wheel from arming to released(), which gives it back; so fire
//             and cancel only publish. L2 whoever wins claim() publishes, once.
#pragma once

#include <cstdint>

#include "runtime/core.hpp"
#include "timer/timer.hpp"

namespace noria::runtime {

class Sleep final : public task::Future, private timer::Timer {
 public:
  explicit Sleep(Core* core) : Future(&kOps, core), Timer(&kTimerOps) {}
  ~Sleep() = default;

  // A future that is ready at `deadline_ns`, at once if it is now (`now_ns`) or before. -ENOMEM.
  [[nodiscard]] static std::int32_t until(Core& core, std::uint64_t deadline_ns, std::uint64_t now_ns,
                                          task::Future** out);

 private:
  static void on_cancel(task::Future* future);
  static void on_destroy(task::Future* future) { static_cast<Sleep*>(future)->~Sleep(); }
  static void on_fire(timer::Timer* timer) noexcept;
  static void on_released(timer::Timer* timer) noexcept;
  static const task::FutureOps kOps;
  static const timer::TimerOps kTimerOps;
};

}  // namespace noria::runtime
