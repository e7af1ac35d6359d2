#include "sync/mutex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace noria::sync {
namespace {

constexpr int kSpins = 40;  // about 2 us: longer than the engine holds any lock, unless preempted

}  // namespace

void Mutex::lock_slow() noexcept {
  for (int i = 0; i < kSpins; ++i) {
    // ORDER: relaxed, only a hint when to try; stale costs a turn.
    std::uint32_t seen = word_.load(NORIA_RELAXED);
    if (seen == kFree && try_lock()) return;
    if (seen == kWaited) break;  // others sleep already: the wait is long
    cpu_pause();
  }
  // ORDER: acquire, pairs with the release in unlock().
  while (word_.exchange(kWaited, NORIA_ACQUIRE) != kFree) {
    // Returns at once if the word changed; a signal or a stray wake only costs another turn.
    ::syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, kWaited, nullptr, nullptr, 0);
  }
}

void Mutex::wake_one() noexcept { ::syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0); }

}  // namespace noria::sync
