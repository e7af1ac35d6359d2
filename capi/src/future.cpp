#include "noria/future.h"

#include "check.hpp"
#include "runtime/deliver.hpp"
#include "runtime/join_all.hpp"
#include "runtime/select.hpp"
#include "runtime/timeout.hpp"
#include "runtime/wait.hpp"
#include "task/strand.hpp"

using namespace noria;
using capi::check_core;
using capi::from_c;
using capi::usable;
using runtime::Core;

namespace {

std::int32_t check(noria_future* future) { return future == nullptr ? -EINVAL : check_core(from_c(future)->core()); }

// The array as the engine sees it; a null in it is told.
std::int32_t check_all(noria_future* const* futures, std::size_t count) {
  if (futures == nullptr) return count == 0 ? NORIA_OK : -EINVAL;
  for (std::size_t i = 0; i < count; ++i)
    if (std::int32_t error = check(futures[i]); error != NORIA_OK) return error;
  return NORIA_OK;
}

task::Future* const* engine_side(noria_future* const* futures) {
  return reinterpret_cast<task::Future* const*>(futures);
}

}  // namespace

std::int32_t noria_future_poll(noria_future* future, const noria_cx* cx) {
  if (std::int32_t error = check(future); error != NORIA_OK) return error;
  return usable(cx) ? from_c(future)->poll(cx) : -EINVAL;
}

std::int32_t noria_future_on_ready(noria_future* future, const noria_waker* waker) {
  if (std::int32_t error = check(future); error != NORIA_OK) return error;
  return usable(waker) ? from_c(future)->on_ready(*waker) : -EINVAL;
}

std::int32_t noria_future_wait(noria_future* future, std::uint64_t timeout_ns) {
  if (std::int32_t error = check(future); error != NORIA_OK) return error;
  return runtime::wait(*from_c(future), timeout_ns);
}

std::int32_t noria_future_result(noria_future* future, void* out, std::size_t size) {
  if (std::int32_t error = check(future); error != NORIA_OK) return error;
  return from_c(future)->take_result(out, size);
}

std::int32_t noria_future_cancel(noria_future* future) {
  if (std::int32_t error = check(future); error != NORIA_OK) return error;
  from_c(future)->cancel();
  return NORIA_OK;
}

std::int32_t noria_future_drop(noria_future* future) {
  if (std::int32_t error = check(future); error != NORIA_OK) return error;
  from_c(future)->drop();
  return NORIA_OK;
}

std::int32_t noria_future_deliver(noria_future* future, const noria_delivery* delivery) {
  if (delivery == nullptr) return -EINVAL;
  if (std::int32_t error = check(future); error != NORIA_OK) return error;
  noria_delivery known;
  if (std::int32_t error = capi::read_struct(delivery, known); error != NORIA_OK) return error;
  if (known.callback == nullptr || (known.strand == nullptr) == (known.kind == NORIA_DELIVER_STRAND)) return -EINVAL;
  noria_runtime* rt = known.rt;
  if (known.strand != nullptr) rt = runtime::to_c(reinterpret_cast<task::Strand*>(known.strand)->core);
  Core* core;
  if (std::int32_t error = capi::resolve_open(rt, core); error != NORIA_OK) return error;
  return runtime::deliver(*core, from_c(future), known);
}

std::int32_t noria_select(noria_runtime* rt, noria_future* const* futures, std::size_t count, noria_future** out) {
  if (out == nullptr || count == 0) return -EINVAL;
  if (std::int32_t error = check_all(futures, count); error != NORIA_OK) return error;
  Core* core;
  if (std::int32_t error = capi::resolve_open(rt, core); error != NORIA_OK) return error;
  task::Future* future = nullptr;
  return capi::give_future(runtime::Select::create(*core, engine_side(futures), count, &future), future, out);
}

std::int32_t noria_select_poll(noria_future* const* futures, std::size_t count, const noria_cx* cx,
                               std::size_t* index) {
  if (count == 0 || !usable(cx) || index == nullptr) return -EINVAL;
  if (std::int32_t error = check_all(futures, count); error != NORIA_OK) return error;
  return runtime::Select::poll_each(engine_side(futures), count, cx, index);
}

std::int32_t noria_join_all(noria_runtime* rt, noria_future* const* futures, std::size_t count, noria_future** out) {
  if (out == nullptr) return -EINVAL;
  if (std::int32_t error = check_all(futures, count); error != NORIA_OK) return error;
  Core* core;
  if (std::int32_t error = capi::resolve_open(rt, core); error != NORIA_OK) return error;
  task::Future* future = nullptr;
  return capi::give_future(runtime::JoinAll::create(*core, engine_side(futures), count, &future), future, out);
}

std::int32_t noria_join_all_result(noria_future* all, std::size_t index, void* out, std::size_t size) {
  if (std::int32_t error = check(all); error != NORIA_OK) return error;
  runtime::JoinAll* joined = runtime::JoinAll::from(from_c(all));
  return joined != nullptr ? joined->result_of(index, out, size) : -EINVAL;
}

std::int32_t noria_timeout(noria_runtime* rt, noria_future* inner, std::uint64_t timeout_ns, noria_future** out) {
  if (out == nullptr) return -EINVAL;
  if (std::int32_t error = check(inner); error != NORIA_OK) return error;
  Core* core;
  if (std::int32_t error = capi::resolve_time(rt, core); error != NORIA_OK) return error;
  task::Future* future = nullptr;
  return capi::give_future(runtime::Timeout::create(*core, from_c(inner), timeout_ns, &future), future, out);
}
