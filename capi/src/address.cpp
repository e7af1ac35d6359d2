#include <cerrno>

#include "net/address.hpp"
#include "noria/tcp.h"

using namespace noria;

extern "C" {

int32_t noria_address_format(const noria_address* address, char* out, size_t size) {
  if (address == nullptr || out == nullptr || size == 0) return -EINVAL;
  return net::format_address(*address, out, size);
}

int32_t noria_address_parse(const char* text, noria_address* out) {
  if (text == nullptr || out == nullptr) return -EINVAL;
  return net::parse_address(text, *out);
}

}  // extern "C"
