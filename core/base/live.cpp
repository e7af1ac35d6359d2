#include "base/live.hpp"

#include <pthread.h>

#include "base/spin_lock.hpp"

namespace noria {

constinit thread_local LiveBlock t_live{};

namespace {

// The list of blocks and what threads that ended have left behind. Never destroyed: threads may
// count after main has returned.
struct Registry {
  SpinLock lock;
  LiveBlock* head NORIA_GUARDED_BY(lock) = nullptr;
  std::int64_t forked[kLiveKinds] NORIA_GUARDED_BY(lock) = {};  // prepare_fork to child_of_fork
  Atomic<std::int64_t> gone[kLiveKinds]{};                      // the common sum (L2)
};
constinit Registry g_registry{};

pthread_once_t g_once = PTHREAD_ONCE_INIT;
pthread_key_t g_key;       // written once by start()
bool g_key_valid = false;  // written once by start()

void common_add(std::size_t kind, std::int64_t n) noexcept {
  // ORDER: relaxed, a count among others; the lock orders it with the list where that matters.
  g_registry.gone[kind].fetch_add(n, NORIA_RELAXED);
}

// A thread ends: its counts go over to the common sum under the lock, so that no reader sees them
// twice or not at all. Runs after every C++ thread-exit destructor (a pthread key's destructor).
void fold(void* p) noexcept {
  auto* block = static_cast<LiveBlock*>(p);
  SpinScope scope(g_registry.lock);
  for (std::size_t i = 0; i < kLiveKinds; ++i) {
    // ORDER: relaxed, our own block (L1).
    common_add(i, block->count[i].load(NORIA_RELAXED));
    block->count[i].store(0, NORIA_RELAXED);
  }
  if (block->next != nullptr) block->next->prev = block->prev;
  (block->prev != nullptr ? block->prev->next : g_registry.head) = block->next;
  block->state = LiveBlock::State::kGone;
}

// The child has none of the other threads, and their storage may be reused at any time: what they
// held is summed up before the fork, while it can be read.
void prepare_fork() noexcept NORIA_NO_THREAD_SAFETY_ANALYSIS {
  g_registry.lock.lock();
  for (std::size_t i = 0; i < kLiveKinds; ++i) g_registry.forked[i] = 0;
  for (LiveBlock* b = g_registry.head; b != nullptr; b = b->next) {
    if (b == &t_live) continue;
    for (std::size_t i = 0; i < kLiveKinds; ++i) {
      // ORDER: relaxed, a recent value is all that a fork beside a running thread can give.
      g_registry.forked[i] += b->count[i].load(NORIA_RELAXED);
    }
  }
}

void parent_of_fork() noexcept NORIA_NO_THREAD_SAFETY_ANALYSIS { g_registry.lock.unlock(); }

void child_of_fork() noexcept NORIA_NO_THREAD_SAFETY_ANALYSIS {
  for (std::size_t i = 0; i < kLiveKinds; ++i) common_add(i, g_registry.forked[i]);
  g_registry.head = nullptr;
  if (t_live.state == LiveBlock::State::kListed) {
    t_live.next = t_live.prev = nullptr;
    g_registry.head = &t_live;
  }
  g_registry.lock.unlock();
}

void start() noexcept {
  g_key_valid = ::pthread_key_create(&g_key, fold) == 0;
  ::pthread_atfork(prepare_fork, parent_of_fork, child_of_fork);
}

}  // namespace

void live_add_slow(Live kind, std::int64_t n) noexcept {
  LiveBlock& block = t_live;
  auto index = static_cast<std::size_t>(kind);
  if (block.state == LiveBlock::State::kGone) return common_add(index, n);
  ::pthread_once(&g_once, start);
  // Without a destructor at thread exit the block may not be listed: then the common sum counts.
  if (!g_key_valid || ::pthread_setspecific(g_key, &block) != 0) return common_add(index, n);
  {
    SpinScope scope(g_registry.lock);
    block.prev = nullptr;
    block.next = g_registry.head;
    if (block.next != nullptr) block.next->prev = &block;
    g_registry.head = &block;
    block.state = LiveBlock::State::kListed;
  }
  live_add(kind, n);
}

std::array<std::int64_t, kLiveKinds> live_sum() noexcept {
  std::array<std::int64_t, kLiveKinds> sum{};
  SpinScope scope(g_registry.lock);
  for (std::size_t i = 0; i < kLiveKinds; ++i) {
    // ORDER: relaxed, exact once the counting threads are quiet (L3).
    sum[i] = g_registry.gone[i].load(NORIA_RELAXED);
    for (LiveBlock* b = g_registry.head; b != nullptr; b = b->next) {
      // ORDER: relaxed, as above.
      sum[i] += b->count[i].load(NORIA_RELAXED);
    }
  }
  return sum;
}

}  // namespace noria
