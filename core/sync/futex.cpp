#include "sync/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

#include "base/clock.hpp"

namespace noria::sync {

void futex_wait(Atomic<std::uint32_t>& word, std::uint32_t expected, std::uint64_t timeout_ns) noexcept {
  timespec timeout{};
  timespec* limit = nullptr;
  if (timeout_ns != kNever) {
    timeout.tv_sec = static_cast<time_t>(timeout_ns / kNsPerSec);
    timeout.tv_nsec = static_cast<long>(timeout_ns % kNsPerSec);
    limit = &timeout;
  }
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, limit, nullptr, 0);
}

void futex_wake(Atomic<std::uint32_t>& word) noexcept {
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void futex_wake_all(Atomic<std::uint32_t>& word) noexcept {
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
}

}  // namespace noria::sync
