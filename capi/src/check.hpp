// check.hpp: what every thunk asks of its arguments before it calls the engine.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/live.hpp"
#include "noria/base.h"
#include "noria/task.h"
#include "runtime/core.hpp"

namespace noria::capi {

// 0 and the runtime that a call means: `rt`, or the thread's current one where it is null (A11). A runtime that closes
// passes: for questions and for what ends things.
[[nodiscard]] inline std::int32_t resolve(noria_runtime* rt, runtime::Core*& core) {
  core = rt != nullptr ? runtime::from_c(rt) : runtime::Core::current();
  if (core == nullptr) return -NORIA_ENOCONTEXT;
  if (core->forked()) return -NORIA_EFORKED;
  return NORIA_OK;
}

// As resolve, for calls that create something: not in a runtime that closes.
[[nodiscard]] inline std::int32_t resolve_open(noria_runtime* rt, runtime::Core*& core) {
  if (std::int32_t error = resolve(rt, core); error != NORIA_OK) return error;
  return core->closed() ? -NORIA_ESHUTDOWN : NORIA_OK;
}

// As resolve_open, for calls that need the time driver or the I/O driver.
[[nodiscard]] inline std::int32_t resolve_time(noria_runtime* rt, runtime::Core*& core) {
  if (std::int32_t error = resolve_open(rt, core); error != NORIA_OK) return error;
  return core->time_enabled() ? NORIA_OK : -NORIA_ENODRIVER;
}

[[nodiscard]] inline std::int32_t resolve_io(noria_runtime* rt, runtime::Core*& core) {
  if (std::int32_t error = resolve_open(rt, core); error != NORIA_OK) return error;
  return core->io_enabled() ? NORIA_OK : -NORIA_ENODRIVER;
}

// For a handle whose runtime is known.
[[nodiscard]] inline std::int32_t check_core(const runtime::Core* core) {
  return core->forked() ? -NORIA_EFORKED : NORIA_OK;
}

// As check_core, for calls on a handle that create something or begin to wait.
[[nodiscard]] inline std::int32_t check_open(const runtime::Core* core) {
  if (std::int32_t error = check_core(core); error != NORIA_OK) return error;
  return core->closed() ? -NORIA_ESHUTDOWN : NORIA_OK;
}

inline noria_future* to_c(task::Future* future) { return reinterpret_cast<noria_future*>(future); }
inline task::Future* from_c(noria_future* future) { return reinterpret_cast<task::Future*>(future); }

// What a call that makes a future answers: `*out` is set on success only.
// By reference, since the call that sets `future` may be an argument too.
[[nodiscard]] inline std::int32_t give_future(std::int32_t error, task::Future* const& future, noria_future** out) {
  if (error == NORIA_OK) *out = to_c(future);
  return error;
}

// A waker, and a cx around one, that can be used.
[[nodiscard]] inline bool usable(const noria_waker* waker) { return waker != nullptr && waker->vtable != nullptr; }
[[nodiscard]] inline bool usable(const noria_cx* cx) { return cx != nullptr && usable(cx->waker); }

// The size rule of plain structs (A2): what the caller does not know is zero, what we do not know must be.
// -EINVAL for a size that does not even hold itself, -E2BIG for a tail that says something.
[[nodiscard]] inline std::int32_t check_size(const void* from, std::uint32_t size, std::size_t known) {
  if (size < sizeof(std::uint32_t)) return -EINVAL;
  const char* bytes = static_cast<const char*>(from);
  for (std::size_t i = known; i < size; ++i)
    if (bytes[i] != 0) return -E2BIG;
  return NORIA_OK;
}

// A vtable of the first size has poll, drop and take; what was added since may be missing.
[[nodiscard]] inline std::int32_t check_vtable(const noria_task_vtable* vtable) {
  if (vtable == nullptr || vtable->flags != 0 || vtable->poll == nullptr) return -EINVAL;
  if (vtable->size < offsetof(noria_task_vtable, name)) return -EINVAL;
  return check_size(vtable, vtable->size, sizeof(noria_task_vtable));
}

// A switch of an option struct: 1 is on, 0 and NORIA_NONE are off.
[[nodiscard]] inline std::int32_t check_switch(std::uint32_t& value) {
  if (value == NORIA_NONE) value = 0;
  return value > 1 ? -EINVAL : NORIA_OK;
}

// Reads an option struct that the caller filled in.
template <typename T>
[[nodiscard]] std::int32_t read_struct(const T* from, T& to) {
  if (std::int32_t error = check_size(from, from->size, sizeof(T)); error != NORIA_OK) return error;
  to = T{};
  std::memcpy(static_cast<void*>(&to), from, from->size < sizeof(T) ? from->size : sizeof(T));
  to.size = sizeof(T);
  return NORIA_OK;
}

// Fills a struct whose `size` the caller has set; what the caller does not know is left out.
template <typename T>
[[nodiscard]] std::int32_t write_struct(T* out, const T& value) {
  std::uint32_t size = out->size;
  if (std::int32_t error = check_size(out, size, sizeof(T)); error != NORIA_OK) return error;
  std::memcpy(static_cast<void*>(out), &value, size < sizeof(T) ? size : sizeof(T));
  out->size = size;
  return NORIA_OK;
}

}  // namespace noria::capi
