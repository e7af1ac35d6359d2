#include "net/kept.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/allocator.hpp"
#include "runtime/core.hpp"
#include "sched/worker.hpp"

namespace noria::net {

std::int32_t Pipe::open() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) return -errno;
  read_fd = fds[0];
  write_fd = fds[1];
  held = 0;
  live_add(Live::kDescriptors, 2);
  return 0;
}

void Pipe::close() {
  if (!is_open()) return;
  ::close(std::exchange(read_fd, -1));
  ::close(std::exchange(write_fd, -1));
  held = 0;
  live_add(Live::kDescriptors, -2);
}

bool Block::make(std::size_t bytes) {
  data = static_cast<char*>(raw_alloc(bytes, kCacheLine));
  size = data != nullptr ? bytes : 0;
  return data != nullptr;
}

bool Block::borrow(const runtime::Core& core) {
  sched::Worker* worker = core.worker_here();
  data = static_cast<char*>(worker != nullptr ? worker->spare_block().take() : SpareBlock::make());
  size = data != nullptr ? SpareBlock::kSize : 0;
  return data != nullptr;
}

void Block::give_back(const runtime::Core& core) {
  sched::Worker* worker = core.worker_here();
  if (worker == nullptr || !lent()) return free();
  worker->spare_block().give(std::exchange(data, nullptr));
  size = 0;
}

bool Block::lent() const { return size == SpareBlock::kSize; }

void Block::free() {
  raw_free(data, size, kCacheLine);
  data = nullptr;
  size = 0;
}

char* Kept::data() const {
  if (buf == nullptr) return block.data;
  void* start = nullptr;
  if (noria_buf_data(buf, &start) != NORIA_OK) return nullptr;
  return static_cast<char*>(start);
}

// Moves what is in the pipe to a block: a peek cannot leave it there.
std::int32_t Kept::empty_pipe() {
  block.free();
  begin = end = 0;
  if (!block.make(pipe.held)) return -ENOMEM;
  while (pipe.held > 0) {
    ssize_t n = ::read(pipe.read_fd, block.data + end, pipe.held);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return -EIO;
    end += static_cast<std::size_t>(n);
    pipe.held -= static_cast<std::size_t>(n);
  }
  pipe.close();
  return 0;
}

std::int32_t Kept::read(const iovec* pieces, std::size_t count, bool peek, std::size_t* got) {
  *got = 0;
  bool from_pipe = begin == end;  // what is in both came to the block first
  if (from_pipe && peek) {
    if (std::int32_t error = empty_pipe(); error != 0) return error;
  } else if (from_pipe) {
    ssize_t n = ::readv(pipe.read_fd, pieces, static_cast<int>(count));
    if (n < 0) return -errno;
    pipe.held -= static_cast<std::size_t>(n);
    *got = static_cast<std::size_t>(n);
    return 0;
  }
  const char* from = data();
  for (std::size_t i = 0; i < count && begin + *got < end; ++i) {
    std::size_t part = std::min(pieces[i].iov_len, end - begin - *got);
    if (part == 0) continue;
    std::memmove(pieces[i].iov_base, from + begin + *got, part);
    *got += part;
  }
  if (!peek) begin += *got;
  return 0;
}

void Kept::drop() {
  if (buf != nullptr) (void)noria_buf_release(buf);
  block.free();
  pipe.close();
  this->~Kept();
  Slab::free(this);
}

}  // namespace noria::net
