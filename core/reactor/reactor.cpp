#include "reactor/reactor.hpp"

#include <cerrno>

#include <noria/runtime.h>
#include "base/allocator.hpp"
#include "reactor/epoll.hpp"

namespace noria::reactor {

std::int32_t Reactor::create(std::uint32_t kind, std::unique_ptr<Reactor>& out) {
  switch (kind) {
    case NORIA_REACTOR_AUTO:
    case NORIA_REACTOR_EPOLL:
      return Epoll::create(out);
    case NORIA_REACTOR_IO_URING:
    case NORIA_REACTOR_KQUEUE:
      return -ENOTSUP;
    default:
      return -EINVAL;
  }
}

void* Reactor::operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return raw_alloc(size, alignof(std::max_align_t));
}

void Reactor::operator delete(void* p, std::size_t size) noexcept { raw_free(p, size, alignof(std::max_align_t)); }

}  // namespace noria::reactor
