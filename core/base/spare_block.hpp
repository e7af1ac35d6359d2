// spare_block.hpp: a block of memory that is lent out for a moment, so that operations which rarely hold bytes need none of their own
// while they wait, and all of a worker's go through the same lines of its cache.
// Threads:    one at a time (of a worker: the owner).
// Invariants: at most one block is spare; a block has kSize bytes, wherever it is.
#pragma once

#include <cstddef>
#include <utility>

#include "base/allocator.hpp"
#include "base/platform.hpp"

namespace noria {

class SpareBlock {
 public:
  static constexpr std::size_t kSize = 64 * 1024;

  SpareBlock() = default;
  SpareBlock(const SpareBlock&) = delete;
  SpareBlock& operator=(const SpareBlock&) = delete;
  ~SpareBlock() { release(spare_); }

  // What a thread that has no spare one does. nullptr: no memory.
  [[nodiscard]] static void* make() noexcept { return raw_alloc(kSize, kCacheLine); }
  static void release(void* block) noexcept { raw_free(block, kSize, kCacheLine); }

  // nullptr: no memory. Given back, or released, by whatever thread.
  [[nodiscard]] void* take() noexcept { return spare_ != nullptr ? std::exchange(spare_, nullptr) : make(); }
  void give(void* block) noexcept {
    if (spare_ != nullptr) return release(block);
    spare_ = block;
  }

 private:
  void* spare_ = nullptr;
};

}  // namespace noria
