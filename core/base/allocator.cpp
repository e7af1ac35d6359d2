#include "base/allocator.hpp"

#include <cerrno>
#include <cstdlib>

#include "base/atomic.hpp"
#include "base/live.hpp"
#include "base/platform.hpp"

namespace noria {
namespace {

void* system_alloc(std::size_t size, std::size_t align, void*) {
  if (align <= alignof(std::max_align_t)) return std::malloc(size);
  void* p;
  return ::posix_memalign(&p, align, size) == 0 ? p : nullptr;  // aligned_alloc would want `size` rounded up
}

void system_free(void* p, std::size_t, std::size_t, void*) { std::free(p); }

enum Phase : std::uint32_t {
  kOpen,     // hooks may be set
  kSetting,  // one thread writes them
  kFixed,    // a block has been asked for
};

constinit AllocatorHooks g_hooks{system_alloc, system_free, nullptr};  // written in kSetting only
constinit Atomic<std::uint32_t> g_phase{kOpen};

void fix_hooks() noexcept {
  std::uint32_t phase = kOpen;
  // ORDER: acq_rel, acquire pairs with the release in set_allocator (sees the hooks), release so
  // that a thread that reads kFixed sees them too.
  while (phase != kFixed && !g_phase.compare_exchange_weak(phase, kFixed, NORIA_ACQ_REL, NORIA_ACQUIRE)) {
    if (phase == kSetting) {
      phase = kOpen;
      cpu_pause();
    }
  }
}

}  // namespace

std::int32_t set_allocator(const AllocatorHooks& hooks) noexcept {
  if (hooks.alloc == nullptr || hooks.free == nullptr) return -EINVAL;
  std::uint32_t phase = kOpen;
  // ORDER: acquire, pairs with the release of an earlier set_allocator; relaxed on failure.
  if (!g_phase.compare_exchange_strong(phase, kSetting, NORIA_ACQUIRE, NORIA_RELAXED)) {
    return -EBUSY;
  }
  g_hooks = hooks;
  // ORDER: release, publishes the hooks to fix_hooks().
  g_phase.store(kOpen, NORIA_RELEASE);
  return 0;
}

void* raw_alloc(std::size_t size, std::size_t align) noexcept {
  // ORDER: acquire, pairs with the acq_rel in fix_hooks(): sees the hooks.
  if (NORIA_UNLIKELY(g_phase.load(NORIA_ACQUIRE) != kFixed)) fix_hooks();
  void* p = g_hooks.alloc(size, align, g_hooks.data);
  if (NORIA_LIKELY(p != nullptr)) live_add(Live::kAllocations, 1);
  return p;
}

void raw_free(void* p, std::size_t size, std::size_t align) noexcept {
  if (p == nullptr) return;
  g_hooks.free(p, size, align, g_hooks.data);
  live_add(Live::kAllocations, -1);
}

}  // namespace noria
