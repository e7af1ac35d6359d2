// wait.hpp: blocking a thread until a future is ready.
#pragma once

#include <cstdint>

#include "task/future.hpp"

namespace noria::runtime {

// By the future's owner. NORIA_READY, -ETIMEDOUT after `timeout_ns` of real time, -ENOMEM, -NORIA_ENESTED on a worker or on
// a thread that drives a runtime.
[[nodiscard]] std::int32_t wait(task::Future& future, std::uint64_t timeout_ns);

}  // namespace noria::runtime
