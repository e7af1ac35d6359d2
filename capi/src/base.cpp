// Thunks of base.h.
#include <cerrno>
#include <cstring>

#include "base/allocator.hpp"
#include "check.hpp"
#include "noria/noria.h"

using namespace noria;

namespace {

struct SystemError {
  int value;
  const char* name;
};

constexpr SystemError kSystemErrors[] = {
#define N(e) \
  { e, #e }
    N(EPERM),       N(ENOENT),       N(EINTR),        N(EIO),           N(E2BIG),        N(EBADF),
    N(EAGAIN),      N(ENOMEM),       N(EACCES),       N(EFAULT),        N(EBUSY),        N(EEXIST),
    N(EXDEV),       N(ENODEV),       N(ENOTDIR),      N(EISDIR),        N(EINVAL),       N(ENFILE),
    N(EMFILE),      N(ENOTTY),       N(EFBIG),        N(ENOSPC),        N(ESPIPE),       N(EROFS),
    N(EPIPE),       N(ERANGE),       N(EDEADLK),      N(ENAMETOOLONG),  N(ENOSYS),       N(EOVERFLOW),
    N(ENOTSOCK),    N(EDESTADDRREQ), N(EMSGSIZE),     N(EPROTOTYPE),    N(ENOPROTOOPT),  N(EPROTONOSUPPORT),
    N(EOPNOTSUPP),  N(EAFNOSUPPORT), N(EADDRINUSE),   N(EADDRNOTAVAIL), N(ENETDOWN),     N(ENETUNREACH),
    N(ENETRESET),   N(ECONNABORTED), N(ECONNRESET),   N(ENOBUFS),       N(EISCONN),      N(ENOTCONN),
    N(ESHUTDOWN),   N(ETIMEDOUT),    N(ECONNREFUSED), N(EHOSTDOWN),     N(EHOSTUNREACH), N(EALREADY),
    N(EINPROGRESS), N(ECANCELED),
#undef N
};

}  // namespace

const char* noria_error_name(int32_t error) {
  if (error == NORIA_OK) return "OK";
  if (error == NORIA_PENDING) return "PENDING";
  switch (-static_cast<int64_t>(error)) {
#define NORIA_X(name, value, message) \
  case value:                         \
    return #name;
#include "noria/errors.def"
#undef NORIA_X
    default:
      break;
  }
  for (const SystemError& known : kSystemErrors) {
    if (error == -known.value) return known.name;
  }
  return "UNKNOWN";
}

const char* noria_error_message(int32_t error) {
  if (error == NORIA_OK) return "success";
  if (error == NORIA_PENDING) return "not ready yet";
  switch (-static_cast<int64_t>(error)) {
#define NORIA_X(name, value, message) \
  case value:                         \
    return message;
#include "noria/errors.def"
#undef NORIA_X
    default:
      break;
  }
  // The system's text speaks of a connection, which there need not be.
  if (error == -ETIMEDOUT) return "the time-out has passed";
  // glibc's texts by number are constant, so nothing is formatted into a shared buffer.
  const char* text = error < 0 && error > -4096 ? strerrordesc_np(-error) : nullptr;
  return text != nullptr ? text : "unknown error";
}

int32_t noria_version(void) { return NORIA_VERSION; }

int32_t noria_live_counts(noria_counts* out) {
  if (out == nullptr) return -EINVAL;
  auto sum = live_sum();
  auto count = [&sum](Live kind) { return sum[static_cast<std::size_t>(kind)]; };
  noria_counts counts{};
  counts.size = sizeof counts;
  counts.tasks = count(Live::kTasks);
  counts.wakers = count(Live::kWakers);
  counts.futures = count(Live::kFutures);
  counts.timers = count(Live::kTimers);
  counts.sources = count(Live::kSources);
  counts.buffers = count(Live::kBuffers);
  counts.allocations = count(Live::kAllocations);
  counts.descriptors = count(Live::kDescriptors);
  return capi::write_struct(out, counts);
}

int32_t noria_set_allocator(const noria_allocator* allocator) {
  if (allocator == nullptr) return -EINVAL;
  noria_allocator given;
  if (int32_t error = capi::read_struct(allocator, given); error != NORIA_OK) return error;
  return set_allocator({given.alloc, given.free, given.data});
}
