// address.hpp: between text, noria_address and the system's socket addresses.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

#include <noria/tcp.h>

namespace noria::net {

inline constexpr std::size_t kHostSize = 256;  // a domain name has at most 253 characters

struct SocketAddress {
  sockaddr_storage storage;
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

// "host:port" or "[host]:port", taken apart: the host without brackets. -EINVAL: no such text.
struct HostPort {
  char host[kHostSize];
  std::uint16_t port;
  bool bracketed;
};
[[nodiscard]] std::int32_t split_host(const char* text, HostPort& out);

// A numeric host; -EINVAL where it is a name.
[[nodiscard]] std::int32_t to_numeric(const HostPort& from, noria_address& out);

[[nodiscard]] std::int32_t parse_address(const char* text, noria_address& out);
[[nodiscard]] std::int32_t format_address(const noria_address& address, char* out, std::size_t size);

// -EAFNOSUPPORT for what is neither IPv4 nor IPv6.
[[nodiscard]] std::int32_t to_system(const noria_address& from, SocketAddress& to);
[[nodiscard]] std::int32_t from_system(const SocketAddress& from, noria_address& to);

}  // namespace noria::net
