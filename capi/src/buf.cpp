#include "noria/buf.h"

#include "check.hpp"
#include "runtime/buffers.hpp"

using namespace noria;
using runtime::Core;
using task::Buffer;
using task::from_c;

namespace {

std::int32_t check(const noria_buf* buf) { return buf == nullptr ? -EINVAL : capi::check_core(from_c(buf)->core()); }

std::int32_t give(std::int32_t error, Buffer* const& buffer, noria_buf** out) {
  if (error == NORIA_OK) *out = task::to_c(buffer);
  return error;
}

}  // namespace

std::int32_t noria_buf_new(noria_runtime* rt, std::size_t capacity, noria_buf** out) {
  if (out == nullptr) return -EINVAL;
  Core* core;
  if (std::int32_t error = capi::resolve_open(rt, core); error != NORIA_OK) return error;
  Buffer* buffer = nullptr;
  return give(runtime::buffer_create(*core, capacity, &buffer), buffer, out);
}

std::int32_t noria_buf_wrap(noria_runtime* rt, void* data, std::size_t size, void (*release)(void* data, void* arg),
                            void* arg, noria_buf** out) {
  if (out == nullptr || (data == nullptr && size != 0)) return -EINVAL;
  Core* core;
  if (std::int32_t error = capi::resolve_open(rt, core); error != NORIA_OK) return error;
  Buffer* buffer = nullptr;
  return give(runtime::buffer_wrap(*core, data, size, release, arg, &buffer), buffer, out);
}

std::int32_t noria_buf_retain(noria_buf* buf) {
  if (std::int32_t error = check(buf); error != NORIA_OK) return error;
  from_c(buf)->ref();
  return NORIA_OK;
}

std::int32_t noria_buf_release(noria_buf* buf) {
  if (std::int32_t error = check(buf); error != NORIA_OK) return error;
  from_c(buf)->release();
  return NORIA_OK;
}

std::int32_t noria_buf_slice(noria_buf* buf, std::size_t offset, std::size_t length, noria_buf** out) {
  if (buf == nullptr || out == nullptr) return -EINVAL;
  if (std::int32_t error = capi::check_open(from_c(buf)->core()); error != NORIA_OK) return error;
  std::size_t capacity = from_c(buf)->capacity();
  if (offset > capacity || length > capacity - offset) return -EINVAL;
  Buffer* slice = nullptr;
  return give(runtime::buffer_slice(from_c(buf), offset, length, &slice), slice, out);
}

std::int32_t noria_buf_data(const noria_buf* buf, void** out) {
  if (out == nullptr) return -EINVAL;
  if (std::int32_t error = check(buf); error != NORIA_OK) return error;
  *out = from_c(buf)->data();
  return NORIA_OK;
}

std::int32_t noria_buf_length(const noria_buf* buf, std::size_t* out) {
  if (out == nullptr) return -EINVAL;
  if (std::int32_t error = check(buf); error != NORIA_OK) return error;
  *out = from_c(buf)->length();
  return NORIA_OK;
}

std::int32_t noria_buf_set_length(noria_buf* buf, std::size_t length) {
  if (std::int32_t error = check(buf); error != NORIA_OK) return error;
  if (length > from_c(buf)->capacity()) return -EINVAL;
  from_c(buf)->set_length(length);
  return NORIA_OK;
}

std::int32_t noria_buf_capacity(const noria_buf* buf, std::size_t* out) {
  if (out == nullptr) return -EINVAL;
  if (std::int32_t error = check(buf); error != NORIA_OK) return error;
  *out = from_c(buf)->capacity();
  return NORIA_OK;
}
