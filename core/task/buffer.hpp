// buffer.hpp: reference-counted bytes that an operation in flight may hold.
// Threads:    ref and release from any; data and capacity are immutable; the length is one writer's at a time.
// Invariants: B1 the bytes live as long as the buffer: behind it in its slot, in a block of their own, lent by the user until
//             `give_back`, or in the root that a slice holds. B2 a slice holds the root, not the slice that it was cut
//             from: there are no chains.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/counted.hpp"
#include "base/live.hpp"
#include "noria/buf.h"

namespace noria::runtime {
class Core;
}

namespace noria::task {

class Buffer final : public Counted<Buffer> {
 public:
  using GiveBack = void (*)(void* data, void* arg);

  // Bytes that lie in a block from raw_alloc (`block`), or behind the object.
  Buffer(runtime::Core* core, char* data, std::size_t capacity, bool block);
  // Bytes that the user lent; `give_back` may be null.
  Buffer(runtime::Core* core, char* data, std::size_t size, GiveBack give_back, void* arg);
  // A part of another one.
  Buffer(runtime::Core* core, Buffer* from, std::size_t offset, std::size_t length);
  ~Buffer();

  runtime::Core* core() const { return core_; }
  char* data() const { return data_; }
  std::size_t capacity() const { return capacity_; }
  std::size_t length() const {
    // ORDER: relaxed, a number; who passes the buffer on orders it with the bytes.
    return length_.load(NORIA_RELAXED);
  }
  // At most capacity().
  void set_length(std::size_t length) {
    // ORDER: relaxed, as above.
    length_.store(length, NORIA_RELAXED);
  }

 private:
  enum class Source : std::uint8_t { kInline, kBlock, kLent, kSlice };

  runtime::Core* const core_;
  char* const data_;
  const std::size_t capacity_;
  Atomic<std::size_t> length_;
  union {
    GiveBack give_back_;  // kLent
    Buffer* root_;        // kSlice
  };
  void* const arg_;
  const Source source_;
};

inline noria_buf* to_c(Buffer* buffer) { return reinterpret_cast<noria_buf*>(buffer); }
inline Buffer* from_c(noria_buf* buf) { return reinterpret_cast<Buffer*>(buf); }
inline const Buffer* from_c(const noria_buf* buf) { return reinterpret_cast<const Buffer*>(buf); }

}  // namespace noria::task
