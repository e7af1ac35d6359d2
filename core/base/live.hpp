// live.hpp: what of the engine is alive in this process: tasks, wakers, ..., descriptors (P11).
// Threads:    live_add from any thread, also inside thread-exit destructors; live_sum from any.
// Invariants: L1 a thread's block is written by that thread alone, with a load and a store.
//             L2 a block is in the list from the thread's first count to its exit, when what it
//             holds is added to the common sum. L3 the sum over all blocks and the common part is
//             exact once the counting threads are quiet; before that it is a recent one.
// Lifetime:   blocks are thread-local storage: nothing is allocated, so nothing here is counted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/atomic.hpp"
#include "base/platform.hpp"

namespace noria {

enum class Live : std::uint8_t {
  kTasks,
  kWakers,
  kFutures,
  kTimers,
  kSources,
  kBuffers,
  kAllocations,
  kDescriptors,
};
inline constexpr std::size_t kLiveKinds = 8;

struct LiveBlock {
  enum class State : std::uint8_t { kNew, kListed, kGone };

  Atomic<std::int64_t> count[kLiveKinds]{};  // written by the owner only (L1)
  LiveBlock* next = nullptr;                 // guarded by the list's lock
  LiveBlock* prev = nullptr;                 // guarded by the list's lock
  State state = State::kNew;                 // owner thread only
};

extern constinit thread_local LiveBlock t_live __attribute__((tls_model("initial-exec")));

// Enters this thread's block in the list, or counts in the common sum after the thread's exit.
NORIA_APART void live_add_slow(Live kind, std::int64_t n) noexcept;

// About 1 ns: no read-modify-write, no shared line.
inline void live_add(Live kind, std::int64_t n) noexcept {
  LiveBlock& block = t_live;
  if (NORIA_UNLIKELY(block.state != LiveBlock::State::kListed)) return live_add_slow(kind, n);
  auto& count = block.count[static_cast<std::size_t>(kind)];
  // ORDER: relaxed, only this thread writes it (L1); readers sum up and promise no instant (L3).
  count.store(count.load(NORIA_RELAXED) + n, NORIA_RELAXED);
}

// One count a kind, in the order of Live.
std::array<std::int64_t, kLiveKinds> live_sum() noexcept;

}  // namespace noria
