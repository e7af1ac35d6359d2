// connect.hpp: from an address in text to a stream or a listener, by way of a look-up where it is a name.
// Threads:    any.
#pragma once

#include <cstdint>

#include <noria/tcp.h>

#include "runtime/core.hpp"

namespace noria::net {

// What can be told at once is answered (-EINVAL, -ENODRIVER for a time-out without time); the rest is in the result.
[[nodiscard]] std::int32_t connect(runtime::Core* core, const char* address, const noria_tcp_connect_options& options,
                                   noria_future** out);
[[nodiscard]] std::int32_t listen(runtime::Core* core, const char* address, const noria_tcp_listen_options& options,
                                  noria_future** out);

}  // namespace noria::net
