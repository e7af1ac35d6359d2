// kept.hpp: bytes that were read from a stream and not delivered: of a read whose future was dropped, of a copy that was
// cut short. They wait for the stream's next read.
// Threads:    a node belongs to its operation, then to the stream's list, then to who takes it out.
// Lifetime:   made with the operation, so that keeping allocates nothing. Holds a buffer, a block or a pipe.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include <noria/buf.h>
#include "base/live.hpp"
#include "base/slab.hpp"

namespace noria::runtime {
class Core;
}

namespace noria::net {

// A pipe that splice(2) fills and empties; the bytes in it are counted, so that "not now" never means "full".
struct Pipe {
  std::int32_t read_fd = -1;
  std::int32_t write_fd = -1;
  std::size_t held = 0;

  // -EMFILE and the like.
  [[nodiscard]] std::int32_t open();
  void close();
  bool is_open() const { return read_fd >= 0; }
};

// Plain memory from the engine's allocator.
struct Block {
  char* data = nullptr;
  std::size_t size = 0;

  [[nodiscard]] bool make(std::size_t bytes);
  void free();
  // One that was lent by this thread's worker of `core`, and back to it; what was not lent is freed.
  [[nodiscard]] bool borrow(const runtime::Core& core);
  void give_back(const runtime::Core& core);
  bool lent() const;
};

struct Kept {
  LifeWord life;  // 1 while it lives
  Kept* next = nullptr;
  std::uint64_t place = 0;   // in the stream, of the first of them: earlier bytes go first
  noria_buf* buf = nullptr;  // a reference, or
  Block block;               // memory of its own, or
  Pipe pipe;                 // what is in it
  std::size_t begin = 0;     // of the bytes in buf or block
  std::size_t end = 0;

  Kept() {
    // ORDER: release, as every life word.
    life.word().store(1, NORIA_RELEASE);
  }
  bool empty() const { return begin == end && pipe.held == 0; }
  // Brings up to the sum of `pieces` out; with `peek` the bytes stay. -ENOMEM: only a peek into a pipe.
  [[nodiscard]] std::int32_t read(const iovec* pieces, std::size_t count, bool peek, std::size_t* got);
  // Gives the node and what it holds back.
  void drop();

 private:
  [[nodiscard]] std::int32_t empty_pipe();
  char* data() const;
};

}  // namespace noria::net
