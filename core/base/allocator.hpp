// allocator.hpp: where all of the engine's memory comes from.
// Threads:    raw_alloc and raw_free from any; set_allocator before the first raw_alloc.
// Invariants: every block is counted in Live::kAllocations from raw_alloc to raw_free. The hooks
//             never change once a block has been asked for, so each block goes back where it came from.
#pragma once

#include <cstddef>
#include <cstdint>

namespace noria {

// `alloc` answers null when there is no memory; `align` is a power of two. Both are called from any
// thread, inside of any call, also while the engine holds a lock of its own (of a guest slab, of the inject queue, of the reactor's table, of the pool);
// so they must not call back into the engine, nor wait for a thread that may be in it.
struct AllocatorHooks {
  void* (*alloc)(std::size_t size, std::size_t align, void* data);
  void (*free)(void* p, std::size_t size, std::size_t align, void* data);
  void* data;
};

// 0, -EINVAL where a function is missing, -EBUSY after the first allocation.
[[nodiscard]] std::int32_t set_allocator(const AllocatorHooks& hooks) noexcept;

// Null where there is no memory (and for a size that wraps).
[[nodiscard]] void* raw_alloc(std::size_t size, std::size_t align) noexcept;

// `size` and `align` are those of raw_alloc. Null is ignored.
void raw_free(void* p, std::size_t size, std::size_t align) noexcept;

}  // namespace noria
