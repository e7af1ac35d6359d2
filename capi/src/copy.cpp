#include "net/copy.hpp"

#include "check.hpp"
#include "noria/tcp.h"

using namespace noria;

namespace {

int32_t copy(noria_tcp* from, noria_tcp* to, const noria_copy_options* options, bool both_ways, noria_future** out) {
  if (from == nullptr || to == nullptr || out == nullptr || (both_ways && from == to)) return -EINVAL;
  for (noria_tcp* tcp : {from, to}) {
    if (int32_t error = capi::check_open(net::from_c(tcp)->core()); error != NORIA_OK) return error;
  }
  noria_copy_options known{};
  if (options != nullptr) {
    if (int32_t error = capi::read_struct(options, known); error != NORIA_OK) return error;
  }
  return net::copy(net::from_c(from), net::from_c(to), known.idle_timeout_ns, both_ways, out);
}

}  // namespace

extern "C" {

int32_t noria_copy(noria_tcp* from, noria_tcp* to, const noria_copy_options* options, noria_future** out) {
  return copy(from, to, options, false, out);
}

int32_t noria_copy_bidirectional(noria_tcp* a, noria_tcp* b, const noria_copy_options* options, noria_future** out) {
  return copy(a, b, options, true, out);
}

int32_t noria_copy_progress(const noria_future* future, noria_copy_result* out) {
  if (future == nullptr || out == nullptr) return -EINVAL;
  const auto* copy = reinterpret_cast<const task::Future*>(future);
  if (int32_t error = capi::check_core(copy->core()); error != NORIA_OK) return error;
  return net::copy_progress(copy, out);
}

}  // extern "C"
