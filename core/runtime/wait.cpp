#include "runtime/wait.hpp"

#include <cerrno>

#include "base/clock.hpp"
#include "runtime/thread_waker.hpp"
#include "task/context.hpp"

namespace noria::runtime {

std::int32_t wait(task::Future& future, std::uint64_t timeout_ns) {
  const task::Context& context = task::t_context;
  if (context.worker != nullptr || context.blocking) return -NORIA_ENESTED;
  if (future.ready()) return NORIA_READY;
  if (timeout_ns == 0) return -ETIMEDOUT;
  std::uint64_t deadline_ns = saturating_add(monotonic_ns(), timeout_ns);
  ThreadWaker* thread = ThreadWaker::create();
  if (thread == nullptr) return -ENOMEM;
  bool ready = future.on_ready(thread->waker()) == NORIA_READY || thread->wait(deadline_ns);
  if (!ready) {
    future.forget_waker();
    ready = future.ready();
  }
  thread->release();
  return ready ? NORIA_READY : -ETIMEDOUT;
}

}  // namespace noria::runtime
