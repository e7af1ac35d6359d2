// deliver.hpp: a future's end as a call of a plain function, from a task that waits for it.
// Threads:    the callback where the task runs: any worker, a strand, or one thread (spawn_local).
// Invariants: D1 exactly one of callback and discard is called: by the poll that finds the future ready, or by the drop of
//             a task that never did. D2 the future is dropped after it, also when the callback throws.
#pragma once

#include <cstdint>

#include "runtime/core.hpp"

namespace noria::task {
class Strand;
}

namespace noria::runtime {

// `delivery` has been read in full size. Takes the future on success only. -EINVAL, -ENOMEM, -NORIA_EWRONGTHREAD.
[[nodiscard]] std::int32_t deliver(Core& core, task::Future* future, const noria_delivery& delivery);

}  // namespace noria::runtime
