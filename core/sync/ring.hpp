// ring.hpp: the ready ring of one worker: one owner pushes and pops, many thieves take half.
// Threads:    push, pop, pop_half: the owner. steal_into: anyone, into a ring that he owns. size: anyone.
// Invariants: R1 head <= tail, tail - head <= kCapacity. R2 an item belongs to whoever moves head past it; head moves
//             by compare-and-swap only. R3 the owner writes slot i again only once it has seen head beyond i; so a
//             thief whose swap succeeds has read what was pushed, however old its reads were.
// Source:     after Chase and Lev, "Dynamic Circular Work-Stealing Deque" (SPAA 2005), with both ends FIFO; indices are
//             64 bits wide and do not wrap.
// Lifetime:   outlives every thief (workers are joined before their rings are freed).
#pragma once

#include <cstdint>

#include "base/atomic.hpp"
#include "base/platform.hpp"

namespace noria::sync {

template <typename T, std::uint32_t kCapacity = 256>
class Ring {
 public:
  static_assert((kCapacity & (kCapacity - 1)) == 0, "the slot of an index is its low bits");
  static constexpr std::uint32_t kHalf = kCapacity / 2;

  explicit Ring(std::uint64_t start = 0) {
    // ORDER: relaxed, nobody else sees the ring yet.
    head_.store(start, NORIA_RELAXED);
    // ORDER: relaxed, as above.
    tail_.store(start, NORIA_RELAXED);
  }

  // False: it is full.
  [[nodiscard]] bool push(T* item) {
    // ORDER: relaxed, only the owner writes tail.
    std::uint64_t tail = tail_.load(NORIA_RELAXED);
    // ORDER: acquire, pairs with the swaps of thieves: a slot that is seen free has been read by them (R3).
    std::uint64_t head = head_.load(NORIA_ACQUIRE);
    if (tail - head >= kCapacity) return false;
    // ORDER: relaxed, published by tail below.
    slot(tail).store(item, NORIA_RELAXED);
#ifdef NORIA_PLANT_RING
    // ORDER: relaxed, the planted bug: a thief may see the tail before the slot.
    tail_.store(tail + 1, NORIA_RELAXED);
#else
    // ORDER: release, publishes the slot; pairs with the acquire of tail in steal_into.
    tail_.store(tail + 1, NORIA_RELEASE);
#endif
    return true;
  }

  // nullptr when empty.
  T* pop() {
    // ORDER: acquire, as in push; the swap below decides.
    std::uint64_t head = head_.load(NORIA_ACQUIRE);
    // ORDER: relaxed, only the owner writes tail.
    std::uint64_t tail = tail_.load(NORIA_RELAXED);
    while (head != tail) {
      // ORDER: relaxed, the owner wrote it.
      T* item = slot(head).load(NORIA_RELAXED);
      // ORDER: acq_rel, takes the item from thieves (R2); acquire on failure, as the load above.
      if (head_.compare_exchange_weak(head, head + 1, NORIA_ACQ_REL)) return item;
    }
    return nullptr;
  }

  // Takes the older half of a full ring for `visit`, so that a push finds room. 0: thieves were faster and there is room now.
  template <typename F>
  std::uint32_t pop_half(F&& visit) {
    // ORDER: acquire, as in pop.
    std::uint64_t head = head_.load(NORIA_ACQUIRE);
    // ORDER: relaxed, only the owner writes tail.
    if (tail_.load(NORIA_RELAXED) - head < kCapacity) return 0;
    T* taken[kHalf];
    for (std::uint32_t i = 0; i < kHalf; ++i) {
      // ORDER: relaxed, the owner wrote them.
      taken[i] = slot(head + i).load(NORIA_RELAXED);
    }
    // ORDER: acq_rel, as in pop.
    if (!head_.compare_exchange_strong(head, head + kHalf, NORIA_ACQ_REL)) return 0;
    for (T* item : taken) visit(item);
    return kHalf;
  }

  // Moves the older half (rounded up) into `to`, which the caller owns and which is empty, and answers one of them besides;
  // `moved` counts all. nullptr: nothing to take.
  T* steal_into(Ring& to, std::uint32_t& moved) {
    moved = 0;
    // ORDER: acquire, pairs with the swaps of others.
    std::uint64_t head = head_.load(NORIA_ACQUIRE);
    for (;;) {
      // ORDER: acquire, pairs with the release in push: the slots below tail are visible.
      std::uint64_t tail = tail_.load(NORIA_ACQUIRE);
      std::uint64_t size = tail - head;
      // A head that is older than the tail can show more than fits: then it has moved, and the swap would fail.
      if (size == 0 || size > kCapacity) {
        if (size == 0) return nullptr;
        // ORDER: acquire, as above.
        head = head_.load(NORIA_ACQUIRE);
        continue;
      }
      auto count = static_cast<std::uint32_t>(size - size / 2);
      T* first = copy_to(to, head, count);
      // ORDER: acq_rel, takes the items (R2); release keeps the reads of the slots before it (R3).
      if (head_.compare_exchange_strong(head, head + count, NORIA_ACQ_REL)) {
        to.publish(count - 1);
        moved = count;
        return first;
      }
    }
  }

  // Exact for the owner while nobody steals, else a moment old.
  std::uint32_t size() const {
    // ORDER: relaxed, a hint; head first, so that the difference does not go below zero.
    std::uint64_t head = head_.load(NORIA_RELAXED);
    // ORDER: relaxed, as above.
    std::uint64_t tail = tail_.load(NORIA_RELAXED);
    std::uint64_t size = tail - head;
    return tail < head ? 0 : static_cast<std::uint32_t>(size < kCapacity ? size : kCapacity);
  }

 private:
  Atomic<T*>& slot(std::uint64_t index) { return slots_[index & (kCapacity - 1)]; }

  // Copies `count` items from `head` on behind the tail of `to`, unpublished, but for the first, which is answered.
  T* copy_to(Ring& to, std::uint64_t head, std::uint32_t count) {
    // ORDER: relaxed, the caller owns `to`.
    std::uint64_t at = to.tail_.load(NORIA_RELAXED);
    // ORDER: relaxed, published by push's tail; may be torn between rounds, the swap tells.
    T* first = slot(head).load(NORIA_RELAXED);
    for (std::uint32_t i = 1; i < count; ++i) {
      // ORDER: relaxed, as above; the copies are published with the tail of `to`.
      to.slot(at + i - 1).store(slot(head + i).load(NORIA_RELAXED), NORIA_RELAXED);
    }
    return first;
  }

  void publish(std::uint32_t count) {
    if (count == 0) return;
    // ORDER: relaxed, only the owner writes tail.
    std::uint64_t tail = tail_.load(NORIA_RELAXED);
    // ORDER: release, as in push.
    tail_.store(tail + count, NORIA_RELEASE);
  }

  alignas(kCacheLine) Atomic<std::uint64_t> head_;  // written by whoever takes
  alignas(kCacheLine) Atomic<std::uint64_t> tail_;  // written by the owner
  alignas(kCacheLine) Atomic<T*> slots_[kCapacity];
};

}  // namespace noria::sync
