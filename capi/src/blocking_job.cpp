#include "check.hpp"
#include "noria/task.h"
#include "runtime/job_future.hpp"

using namespace noria;

std::int32_t noria_spawn_blocking(noria_runtime* rt, std::int32_t (*run)(void* arg), void (*discard)(void* arg),
                                  void* arg, noria_future** out) {
  if (run == nullptr) return -EINVAL;
  runtime::Core* core;
  if (std::int32_t error = capi::resolve_open(rt, core); error != NORIA_OK) return error;
  if (out == nullptr) return runtime::JobFuture::spawn(*core, run, discard, arg, nullptr);
  task::Future* future = nullptr;
  return capi::give_future(runtime::JobFuture::spawn(*core, run, discard, arg, &future), future, out);
}
