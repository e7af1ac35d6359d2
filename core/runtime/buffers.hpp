// buffers.hpp: where buffers come from: small ones whole out of a slab, larger ones with a block of their own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/core.hpp"
#include "task/buffer.hpp"

namespace noria::runtime {

// All: -ENOMEM, or a buffer with one reference.
[[nodiscard]] std::int32_t buffer_create(Core& core, std::size_t capacity, task::Buffer** out);
[[nodiscard]] std::int32_t buffer_wrap(Core& core, void* data, std::size_t size, task::Buffer::GiveBack give_back,
                                       void* arg, task::Buffer** out);
// [offset, offset + length) lies within the capacity of `from`.
[[nodiscard]] std::int32_t buffer_slice(task::Buffer* from, std::size_t offset, std::size_t length, task::Buffer** out);

}  // namespace noria::runtime
