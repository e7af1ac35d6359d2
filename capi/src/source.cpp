#include "noria/source.h"

#include "check.hpp"
#include "net/watch.hpp"

using namespace noria;

namespace {

constexpr uint32_t kInterests = NORIA_READABLE | NORIA_WRITABLE | NORIA_PRIORITY;

// A handle whose runtime still does things.
int32_t check_open(const net::Watch* watch) {
  if (int32_t error = capi::check_core(watch->core()); error != NORIA_OK) return error;
  return watch->core()->closed() ? -NORIA_ESHUTDOWN : NORIA_OK;
}

bool is_interest(uint32_t interest) { return interest != 0 && (interest & ~kInterests) == 0; }

}  // namespace

extern "C" {

int32_t noria_source_new(noria_runtime* rt, int32_t fd, noria_source** out) {
  if (out == nullptr) return -EINVAL;
  runtime::Core* core = nullptr;
  if (int32_t error = capi::resolve_io(rt, core); error != NORIA_OK) return error;
  net::Watch* watch = nullptr;
  int32_t error = net::Watch::make(core, fd, &watch);
  if (error == NORIA_OK) *out = net::to_c(watch);
  return error;
}

int32_t noria_source_poll_ready(noria_source* source, uint32_t interest, const noria_cx* cx, noria_readiness* out) {
  if (source == nullptr || out == nullptr || !capi::usable(cx) || !is_interest(interest)) return -EINVAL;
  net::Watch* watch = net::from_c(source);
  if (int32_t error = check_open(watch); error != NORIA_OK) return error;
  return watch->poll(interest, cx, out);
}

int32_t noria_source_ready(noria_source* source, uint32_t interest, noria_future** out) {
  if (source == nullptr || out == nullptr || !is_interest(interest)) return -EINVAL;
  net::Watch* watch = net::from_c(source);
  if (int32_t error = check_open(watch); error != NORIA_OK) return error;
  return watch->ready(interest, out);
}

int32_t noria_source_clear(noria_source* source, const noria_readiness* seen, uint32_t events) {
  if (source == nullptr || seen == nullptr) return -EINVAL;
  net::Watch* watch = net::from_c(source);
  if (int32_t error = capi::check_core(watch->core()); error != NORIA_OK) return error;
  watch->clear({seen->events, seen->tick}, events);
  return NORIA_OK;
}

int32_t noria_source_close(noria_source* source) {
  if (source == nullptr) return -EINVAL;
  net::Watch* watch = net::from_c(source);
  if (int32_t error = capi::check_core(watch->core()); error != NORIA_OK) return error;
  watch->stop();
  return NORIA_OK;
}

int32_t noria_source_drop(noria_source* source) {
  if (source == nullptr) return -EINVAL;
  net::Watch* watch = net::from_c(source);
  if (int32_t error = capi::check_core(watch->core()); error != NORIA_OK) return error;
  watch->drop();
  return NORIA_OK;
}

}  // extern "C"
