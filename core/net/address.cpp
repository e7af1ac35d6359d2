#include "net/address.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace noria::net {

namespace {

// Decimal digits only; the whole text.
bool read_number(const char* text, std::uint64_t limit, std::uint64_t& out) {
  if (*text == '\0') return false;
  out = 0;
  for (; *text != '\0'; ++text) {
    if (*text < '0' || *text > '9') return false;
    out = out * 10 + static_cast<std::uint64_t>(*text - '0');
    if (out > limit) return false;
  }
  return true;
}

std::int32_t read_ipv6(const char* host, noria_address& out) {
  char ip[INET6_ADDRSTRLEN];
  const char* scope = std::strchr(host, '%');
  std::size_t length = scope != nullptr ? static_cast<std::size_t>(scope - host) : std::strlen(host);
  if (length >= sizeof ip) return -EINVAL;
  std::memcpy(ip, host, length);
  ip[length] = '\0';
  if (::inet_pton(AF_INET6, ip, out.ip) != 1) return -EINVAL;
  out.family = AF_INET6;
  if (scope == nullptr) return 0;
  std::uint64_t number = 0;
  if (read_number(scope + 1, UINT32_MAX, number)) {
    out.scope_id = static_cast<std::uint32_t>(number);
  } else {
    out.scope_id = ::if_nametoindex(scope + 1);
    if (out.scope_id == 0) return -EINVAL;
  }
  return 0;
}

}  // namespace

std::int32_t split_host(const char* text, HostPort& out) {
  const char* host = text;
  const char* end = nullptr;
  const char* colon = nullptr;
  out.bracketed = *text == '[';
  if (out.bracketed) {
    host = text + 1;
    end = std::strchr(host, ']');
    if (end == nullptr || end[1] != ':') return -EINVAL;
    colon = end + 1;
  } else {
    end = colon = std::strrchr(text, ':');
    if (end == nullptr || std::memchr(text, ':', static_cast<std::size_t>(end - text)) != nullptr) return -EINVAL;
  }
  auto length = static_cast<std::size_t>(end - host);
  if (length == 0 || length >= kHostSize) return -EINVAL;
  std::uint64_t port = 0;
  if (!read_number(colon + 1, UINT16_MAX, port)) return -EINVAL;
  std::memcpy(out.host, host, length);
  out.host[length] = '\0';
  out.port = static_cast<std::uint16_t>(port);
  return 0;
}

std::int32_t to_numeric(const HostPort& from, noria_address& out) {
  out = noria_address{};
  out.port = from.port;
  if (from.bracketed) return read_ipv6(from.host, out);
  if (::inet_pton(AF_INET, from.host, out.ip) != 1) return -EINVAL;
  out.family = AF_INET;
  return 0;
}

std::int32_t parse_address(const char* text, noria_address& out) {
  HostPort parts;
  noria_address address;
  std::int32_t error = split_host(text, parts);
  if (error == 0) error = to_numeric(parts, address);
  if (error == 0) out = address;
  return error;
}

std::int32_t format_address(const noria_address& address, char* out, std::size_t size) {
  char ip[INET6_ADDRSTRLEN];
  char scope[16] = "";
  if (address.family != AF_INET && address.family != AF_INET6) return -EAFNOSUPPORT;
  ::inet_ntop(static_cast<int>(address.family), address.ip, ip, sizeof ip);
  if (address.family == AF_INET6 && address.scope_id != 0) std::snprintf(scope, sizeof scope, "%%%u", address.scope_id);
  const char* form = address.family == AF_INET ? "%s%s:%u" : "[%s%s]:%u";
  int length = std::snprintf(out, size, form, ip, scope, static_cast<unsigned>(address.port));
  return static_cast<std::size_t>(length) < size ? 0 : -ENOSPC;
}

std::int32_t to_system(const noria_address& from, SocketAddress& to) {
  std::memset(&to.storage, 0, sizeof to.storage);
  if (from.family == AF_INET) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(from.port);
    std::memcpy(&in.sin_addr, from.ip, 4);
    std::memcpy(&to.storage, &in, to.size = sizeof in);
    return 0;
  }
  if (from.family != AF_INET6) return -EAFNOSUPPORT;
  sockaddr_in6 in{};
  in.sin6_family = AF_INET6;
  in.sin6_port = htons(from.port);
  in.sin6_scope_id = from.scope_id;
  std::memcpy(&in.sin6_addr, from.ip, 16);
  std::memcpy(&to.storage, &in, to.size = sizeof in);
  return 0;
}

std::int32_t from_system(const SocketAddress& from, noria_address& to) {
  to = noria_address{};
  if (from.family() == AF_INET) {
    sockaddr_in in;
    std::memcpy(&in, &from.storage, sizeof in);
    to.family = AF_INET;
    to.port = ntohs(in.sin_port);
    std::memcpy(to.ip, &in.sin_addr, 4);
    return 0;
  }
  if (from.family() != AF_INET6) return -EAFNOSUPPORT;
  sockaddr_in6 in;
  std::memcpy(&in, &from.storage, sizeof in);
  to.family = AF_INET6;
  to.port = ntohs(in.sin6_port);
  to.scope_id = in.sin6_scope_id;
  std::memcpy(to.ip, &in.sin6_addr, 16);
  return 0;
}

}  // namespace noria::net
