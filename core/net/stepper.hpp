// stepper.hpp: an operation that several threads push on and one at a time steps.
// Whoever signals while nobody steps does the steps; who signals meanwhile leaves the signal to that one. So step()
// needs no lock, and may cancel, connect and finish.
#pragma once

#include <cstdint>

#include "base/atomic.hpp"
#include "task/future.hpp"

namespace noria::net {

struct Stepper : task::Future {
  using StepFn = void (*)(Stepper*, std::uint32_t signals);

  Stepper(const task::FutureOps* step_ops, runtime::Core* owner, StepFn step_fn)
      : Future(step_ops, owner), step_(step_fn) {}

  // Any thread that holds a reference.
  void signal(std::uint32_t bits) {
    // ORDER: acq_rel, publishes what the signal tells to whoever steps; acquires the last stepper's state.
    if ((signals_.fetch_or(bits | kStepping, NORIA_ACQ_REL) & kStepping) != 0) return;
    ref();
    for (std::uint32_t idle = kStepping;; idle = kStepping) {
      // ORDER: acq_rel, as above.
      step_(this, signals_.fetch_and(kStepping, NORIA_ACQ_REL) & ~kStepping);
      // ORDER: acq_rel, publishes the state to the next stepper. Failure: new signals have come.
      if (signals_.compare_exchange_strong(idle, 0, NORIA_ACQ_REL)) break;
    }
    release();
  }

 private:
  static constexpr std::uint32_t kStepping = std::uint32_t{1} << 31;

  const StepFn step_;
  Atomic<std::uint32_t> signals_{0};
};

}  // namespace noria::net
