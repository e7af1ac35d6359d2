// socket.hpp: a descriptor that several threads use at once and one of them closes.
//
// The use word counts system calls in progress, plus one while the socket is open; kClosed above them.
//   from         to            by                        order
//   n >= 1       n + 1         a call that begins        acquire
//   n            n - 1         a call that ends          acq_rel
//   n            kClosed | n   close(), once             acq_rel
//   1            kClosed       take_fd()                 acq_rel
//   kClosed | 1  kClosed       the last to leave         closes the descriptor
// Invariants: N1 the number is not given back to the system while a call may still use it, so that no call ever meets
//             somebody else's descriptor.
// Lifetime:   see source.hpp; closed before the last reference goes.
#pragma once

#include <cstdint>

#include "reactor/reactor.hpp"
#include "runtime/core.hpp"

namespace noria::net {

// Makes a descriptor non-blocking.
[[nodiscard]] std::int32_t set_nonblocking(std::int32_t fd);

class Socket : public reactor::Source {
 public:
  Socket(runtime::Core* core, std::int32_t fd, DestroyFn destroy) : Source(fd, destroy), core_(core) {}

  runtime::Core* core() const { return core_; }

  // Registers with the reactor and takes the descriptor over; on an error it stays the caller's.
  [[nodiscard]] std::int32_t open();

  // A system call on the descriptor, while it lives; false: the socket is closed.
  class Use {
   public:
    explicit Use(const Socket& socket) : socket_(const_cast<Socket*>(&socket)) {
      if (!socket_->enter()) socket_ = nullptr;
    }
    ~Use() {
      if (socket_ != nullptr) socket_->leave();
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    explicit operator bool() const { return socket_ != nullptr; }

   private:
    Socket* socket_;
  };

  // Deregisters, tells who waits, and closes the descriptor behind the last call in progress. Twice is once.
  void close();
  bool closed() const {
    // ORDER: acquire, pairs with close.
    return (use_.load(NORIA_ACQUIRE) & kClosed) != 0;
  }

  // Deregisters and gives the descriptor up. -EBUSY while a call is in progress, -EBADF after close.
  [[nodiscard]] std::int32_t take_fd(std::int32_t* out);

  // The socket may have SO_LINGER set: closing it would block.
  void may_linger() {
    // ORDER: relaxed, who closes after a setsockopt that has returned sees it through that order.
    lingers_.store(true, NORIA_RELAXED);
  }

  // Nothing will be reported any more: it is closed, or the runtime is.
  bool gone() const { return (look().events & reactor::kGone) != 0 || core_->reactor()->closed(); }

  // Something can be read again that the kernel does not know of.
  void report_readable();

 protected:
  ~Socket();

 private:
  static constexpr std::uint64_t kClosed = std::uint64_t{1} << 63;

  [[nodiscard]] bool enter();
  void leave();

  runtime::Core* const core_;
  Atomic<std::uint64_t> use_{0};
  Atomic<bool> lingers_{false};
};

}  // namespace noria::net
