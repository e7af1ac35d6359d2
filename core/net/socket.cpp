#include "net/socket.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "base/assert.hpp"

namespace noria::net {

std::int32_t set_nonblocking(std::int32_t fd) {
  int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return -errno;
  if ((flags & O_NONBLOCK) != 0) return 0;
  return ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 ? 0 : -errno;
}

std::int32_t Socket::open() {
  // ORDER: release, published by the registration below and by the handle.
  use_.store(1, NORIA_RELEASE);
  std::int32_t error = core_->reactor()->add(*this);
  if (error != 0) {
    // ORDER: relaxed, nobody else knows the socket.
    use_.store(kClosed, NORIA_RELAXED);
    return error;
  }
  live_add(Live::kDescriptors, 1);
  return 0;
}

bool Socket::enter() {
  // ORDER: relaxed, the compare-and-swap decides.
  std::uint64_t use = use_.load(NORIA_RELAXED);
  while ((use & kClosed) == 0) {
    // ORDER: acquire, the call comes after the open, and before a close that sees it. Failure is retried.
    if (use_.compare_exchange_weak(use, use + 1, NORIA_ACQUIRE, NORIA_RELAXED)) return true;
  }
  return false;
}

void Socket::leave() {
  // ORDER: acq_rel, every call happens before the last one closes (N1).
  if (use_.fetch_sub(1, NORIA_ACQ_REL) != (kClosed | 1)) return;
  // ORDER: relaxed, see may_linger.
  if (lingers_.load(NORIA_RELAXED)) {
    // A close that lingers blocks, non-blocking or not. With a time of zero it resets, and that is kept.
    linger wish{};
    socklen_t size = sizeof wish;
    if (::getsockopt(fd(), SOL_SOCKET, SO_LINGER, &wish, &size) == 0 && wish.l_onoff != 0 && wish.l_linger != 0) {
      wish.l_onoff = 0;
      ::setsockopt(fd(), SOL_SOCKET, SO_LINGER, &wish, sizeof wish);
    }
  }
  ::close(fd());
  live_add(Live::kDescriptors, -1);
}

void Socket::close() {
  // ORDER: acq_rel, one closer wins; no call begins after it.
  if ((use_.fetch_or(kClosed, NORIA_ACQ_REL) & kClosed) != 0) return;
  core_->reactor()->remove(*this);
  leave();
}

std::int32_t Socket::take_fd(std::int32_t* out) {
  std::uint64_t alone = 1;
  // ORDER: acq_rel, as close, where no call is in progress.
  if (!use_.compare_exchange_strong(alone, kClosed, NORIA_ACQ_REL)) return (alone & kClosed) != 0 ? -EBADF : -EBUSY;
  core_->reactor()->remove(*this);
  live_add(Live::kDescriptors, -1);
  *out = fd();
  return 0;
}

void Socket::report_readable() {
  reactor::Fired fired;
  report(NORIA_READABLE, fired);
}

Socket::~Socket() { NORIA_ASSERT(closed(), "a socket is closed before its last reference goes"); }

}  // namespace noria::net
