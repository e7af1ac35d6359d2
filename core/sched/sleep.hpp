// sleep.hpp: one sleep of one worker, from begin_sleep to end_sleep. The owner's stack.
#pragma once

#include <cstdint>

#include "sched/scheduler.hpp"
#include "sched/worker.hpp"

namespace noria::sched {

struct Worker::Sleep {
  std::uint64_t limit_ns = kNever;  // an instant of the driver's clock
  bool poller = false;
  bool sentry = false;
  bool asleep = false;            // the sentry has stopped ticking
  std::uint32_t quiet_ticks = 0;  // ticks in a row that found everybody parked
};

}  // namespace noria::sched
