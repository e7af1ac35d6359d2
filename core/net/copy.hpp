// copy.hpp: copying between streams as a task of the runtime.
// Threads:    any.
#pragma once

#include <cstdint>

#include <noria/tcp.h>

#include "net/stream.hpp"
#include "task/future.hpp"

namespace noria::net {

[[nodiscard]] std::int32_t copy(Stream* from, Stream* to, std::uint64_t idle_timeout_ns, bool both_ways,
                                noria_future** out);

// What a copy has done so far; -EINVAL: it is no copy.
[[nodiscard]] std::int32_t copy_progress(const task::Future* future, noria_copy_result* out);

}  // namespace noria::net
