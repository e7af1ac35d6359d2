// Options of a stream, in the terms of noria_tcp_option.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>

#include "net/stream.hpp"

namespace noria::net {

namespace {

struct Name {
  int level;
  int name;
  bool settable;
};

// Options that are one int of the system's, or nullptr.
const Name* plain(std::uint32_t option) {
  static constexpr Name kNoDelay{IPPROTO_TCP, TCP_NODELAY, true};
  static constexpr Name kRecvBuffer{SOL_SOCKET, SO_RCVBUF, true};
  static constexpr Name kSendBuffer{SOL_SOCKET, SO_SNDBUF, true};
  static constexpr Name kUserTimeout{IPPROTO_TCP, TCP_USER_TIMEOUT, true};
  static constexpr Name kError{SOL_SOCKET, SO_ERROR, false};
  static constexpr Name kQuickAck{IPPROTO_TCP, TCP_QUICKACK, true};
  switch (option) {
    case NORIA_TCP_NODELAY:
      return &kNoDelay;
    case NORIA_TCP_RECV_BUFFER:
      return &kRecvBuffer;
    case NORIA_TCP_SEND_BUFFER:
      return &kSendBuffer;
    case NORIA_TCP_USER_TIMEOUT:
      return &kUserTimeout;
    case NORIA_TCP_ERROR:
      return &kError;
    case NORIA_TCP_QUICKACK:
      return &kQuickAck;
    default:
      return nullptr;
  }
}

std::int32_t set_int(int fd, int level, int name, int value) {
  return ::setsockopt(fd, level, name, &value, sizeof value) == 0 ? NORIA_OK : -errno;
}

std::int32_t get_int(int fd, int level, int name, int* value) {
  socklen_t size = sizeof *value;
  return ::getsockopt(fd, level, name, value, &size) == 0 ? NORIA_OK : -errno;
}

}  // namespace

std::int32_t Stream::set_option(std::uint32_t option, std::int32_t value) {
  Use use(*this);
  if (!use) return -EBADF;
  if (option == NORIA_TCP_LINGER) {
    if (value < -1) return -EINVAL;
    linger wish{value >= 0 ? 1 : 0, value >= 0 ? value : 0};
    may_linger();
    return ::setsockopt(fd(), SOL_SOCKET, SO_LINGER, &wish, sizeof wish) == 0 ? NORIA_OK : -errno;
  }
  if (value < 0) return -EINVAL;
  if (option == NORIA_TCP_KEEPALIVE) {
    std::int32_t error = value == 0 ? NORIA_OK : set_int(fd(), IPPROTO_TCP, TCP_KEEPIDLE, value);
    return error != NORIA_OK ? error : set_int(fd(), SOL_SOCKET, SO_KEEPALIVE, value != 0 ? 1 : 0);
  }
  const Name* name = plain(option);
  if (name == nullptr || !name->settable) return -EINVAL;
  return set_int(fd(), name->level, name->name, value);
}

std::int32_t Stream::get_option(std::uint32_t option, std::int32_t* value) const {
  Use use(*this);
  if (!use) return -EBADF;
  if (option == NORIA_TCP_LINGER) {
    linger is{};
    socklen_t size = sizeof is;
    if (::getsockopt(fd(), SOL_SOCKET, SO_LINGER, &is, &size) != 0) return -errno;
    *value = is.l_onoff != 0 ? is.l_linger : -1;
    return NORIA_OK;
  }
  if (option == NORIA_TCP_KEEPALIVE) {
    int on = 0;
    std::int32_t error = get_int(fd(), SOL_SOCKET, SO_KEEPALIVE, &on);
    if (error != NORIA_OK) return error;
    *value = 0;
    return on == 0 ? NORIA_OK : get_int(fd(), IPPROTO_TCP, TCP_KEEPIDLE, value);
  }
  const Name* name = plain(option);
  if (name == nullptr) return -EINVAL;
  std::int32_t error = get_int(fd(), name->level, name->name, value);
  if (error == NORIA_OK && option == NORIA_TCP_ERROR) *value = -*value;
  return error;
}

}  // namespace noria::net
