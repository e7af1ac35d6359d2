#include "runtime/wait.hpp"

#include <cerrno>

#include "base/clock.hpp"
#include "sync/futex.hpp"
#include "task/context.hpp"

namespace noria::runtime {
namespace {

// A waker on the stack of the thread that sleeps. There is one clone of it at most: the one in the future.
class Sleeper {
 public:
  noria_waker waker() { return {&kWaker, &word_, nullptr}; }

  // ORDER: acquire, pairs with wake: sees what the operation did.
  bool woken() const { return word_.load(NORIA_ACQUIRE) != 0; }

  void sleep(std::uint64_t timeout_ns) { sync::futex_wait(word_, 0, timeout_ns); }

 private:
  static void clone(const noria_waker* waker, noria_waker* out) { *out = *waker; }
  static void wake_by_ref(const noria_waker* waker) {
    auto& word = *static_cast<Atomic<std::uint32_t>*>(waker->data);
    // ORDER: release, pairs with woken. The sleeper may be gone after it: futex_wake uses the address only.
    word.store(1, NORIA_RELEASE);
    sync::futex_wake(word);
  }
  static void wake(noria_waker* waker) { wake_by_ref(waker); }
  static void drop(noria_waker*) {}
  static constexpr noria_waker_vtable kWaker = {clone, wake, wake_by_ref, drop};

  Atomic<std::uint32_t> word_{0};
};

// Wakes nobody: takes the place of a sleeper's waker that goes.
constexpr noria_waker_vtable kNobody = {
    [](const noria_waker* waker, noria_waker* out) { *out = *waker; },
    [](noria_waker*) {},
    [](const noria_waker*) {},
    [](noria_waker*) {},
};

}  // namespace

std::int32_t wait(task::Future& future, std::uint64_t timeout_ns) {
  const task::Context& context = task::t_context;
  if (context.worker != nullptr || context.blocking) return -NORIA_ENESTED;
  if (future.ready()) return NORIA_READY;
  Sleeper sleeper;
  if (future.on_ready(sleeper.waker()) == NORIA_READY) return NORIA_READY;
  std::uint64_t deadline_ns = saturating_add(monotonic_ns(), timeout_ns);
  while (!sleeper.woken()) {
    std::uint64_t left_ns = kNever;
    if (deadline_ns != kNever) {
      std::uint64_t now_ns = monotonic_ns();
      if (now_ns >= deadline_ns) break;
      left_ns = deadline_ns - now_ns;
    }
    sleeper.sleep(left_ns);
  }
  if (sleeper.woken()) return NORIA_READY;
  // The clone in the future points at this stack: take it back, or wait for who is about to wake it.
  if (future.on_ready({&kNobody, nullptr, nullptr}) == NORIA_PENDING) return -ETIMEDOUT;
  while (!sleeper.woken()) sleeper.sleep(kNever);
  return NORIA_READY;
}

}  // namespace noria::runtime
