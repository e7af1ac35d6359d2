// ring.hpp: the ready ring of one worker: one owner pushes and pops, many thieves take half.
// Threads:    push, push_many, pop, move_half, take_half: the owner. steal_into: anyone, into a ring that he owns. size: anyone.
// Invariants: R1 head <= tail, tail - head <= kCapacity. R2 an item belongs to whoever moves head past it; head moves
//             by compare-and-swap only. R3 the owner writes slot i again only once it has seen head beyond i; so a
//             thief whose swap succeeds has read what was pushed, however old its reads were.
// Source:     after Chase and Lev, "Dynamic Circular Work-Stealing Deque" (SPAA 2005), with both ends FIFO; indices are
//             64 bits wide and do not wrap.
// Lifetime:   outlives every thief (workers are joined before their rings are freed).
#pragma once

#include <cstdint>
#include <span>

#include "base/atomic.hpp"
#include "base/platform.hpp"

namespace noria::sync {

template <typename T, std::uint32_t kCapacity = 256>
class Ring {
 public:
  static_assert((kCapacity & (kCapacity - 1)) == 0, "the slot of an index is its low bits");
  static constexpr std::uint32_t kSlots = kCapacity;
  static constexpr std::uint32_t kHalf = kCapacity / 2;

  explicit Ring(std::uint64_t start = 0) {
    // ORDER: relaxed, nobody else sees the ring yet.
    head_.store(start, NORIA_RELAXED);
    // ORDER: relaxed, as above.
    tail_.store(start, NORIA_RELAXED);
  }

  // How many it holds then, or 0: it is full.
  [[nodiscard]] std::uint32_t push(T* item) {
    // ORDER: relaxed, only the owner writes tail.
    std::uint64_t tail = tail_.load(NORIA_RELAXED);
    // ORDER: acquire, pairs with the swaps of thieves: a slot that is seen free has been read by them (R3).
    std::uint64_t head = head_.load(NORIA_ACQUIRE);
    if (tail - head >= kCapacity) return 0;
    // ORDER: relaxed, published by tail below.
    slot(tail).store(item, NORIA_RELAXED);
#ifdef NORIA_PLANT_RING
    // ORDER: relaxed, the planted bug: a thief may see the tail before the slot.
    tail_.store(tail + 1, NORIA_RELAXED);
#else
    // ORDER: release, publishes the slot; pairs with the acquire of tail in steal_into.
    tail_.store(tail + 1, NORIA_RELEASE);
#endif
    return static_cast<std::uint32_t>(tail + 1 - head);
  }

  // Pushes all of them, one at least. How many it holds then, or 0: they do not fit, and none was pushed.
  [[nodiscard]] std::uint32_t push_many(std::span<T* const> items) {
    // ORDER: relaxed, only the owner writes tail.
    std::uint64_t tail = tail_.load(NORIA_RELAXED);
    // ORDER: acquire, as in push (R3).
    std::uint64_t head = head_.load(NORIA_ACQUIRE);
    if (tail - head + items.size() > kCapacity) return 0;
    // ORDER: relaxed, as in push.
    for (std::size_t i = 0; i < items.size(); ++i) slot(tail + i).store(items[i], NORIA_RELAXED);
    publish(static_cast<std::uint32_t>(items.size()));
    return static_cast<std::uint32_t>(tail - head + items.size());
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

  // Moves the older half of a full ring behind what `to` holds, which the caller owns too and which has room for it, so that a push
  // finds room here. 0: thieves were faster and there is room now.
  template <std::uint32_t kOther>
  std::uint32_t move_half(Ring<T, kOther>& to) {
    // ORDER: acquire, as in pop.
    std::uint64_t head = head_.load(NORIA_ACQUIRE);
    // ORDER: relaxed, only the owner writes tail.
    if (tail_.load(NORIA_RELAXED) - head < kCapacity) return 0;
    copy_to(to, head, kHalf);
    // ORDER: acq_rel, as in pop.
    if (!head_.compare_exchange_strong(head, head + kHalf, NORIA_ACQ_REL)) return 0;
    to.publish(kHalf);
    return kHalf;
  }

  // Takes the older half of a full ring out; as move_half otherwise.
  std::uint32_t take_half(T* (&out)[kHalf]) {
    // ORDER: acquire, as in pop.
    std::uint64_t head = head_.load(NORIA_ACQUIRE);
    // ORDER: relaxed, only the owner writes tail.
    if (tail_.load(NORIA_RELAXED) - head < kCapacity) return 0;
    for (std::uint32_t i = 0; i < kHalf; ++i) {
      // ORDER: relaxed, the owner wrote them.
      out[i] = slot(head + i).load(NORIA_RELAXED);
    }
    // ORDER: acq_rel, as in pop.
    return head_.compare_exchange_strong(head, head + kHalf, NORIA_ACQ_REL) ? kHalf : 0;
  }

  // Moves the older half (rounded up; no more than fit) into `to`, which the caller owns and which is empty, and answers one of them besides;
  // `moved` counts all. nullptr: nothing to take.
  template <std::uint32_t kOther>
  T* steal_into(Ring<T, kOther>& to, std::uint32_t& moved) {
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
      if constexpr (kOther < kHalf) count = count < kOther ? count : kOther;
      // ORDER: relaxed, published by the tail that was read; may be old, the swap tells.
      T* first = slot(head).load(NORIA_RELAXED);
      copy_to(to, head + 1, count - 1);
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
  template <typename, std::uint32_t>
  friend class Ring;

  Atomic<T*>& slot(std::uint64_t index) { return slots_[index & (kCapacity - 1)]; }

  // Copies `count` items from `from` on behind the tail of `to`, unpublished.
  template <std::uint32_t kOther>
  void copy_to(Ring<T, kOther>& to, std::uint64_t from, std::uint32_t count) {
    // ORDER: relaxed, the caller owns `to`.
    std::uint64_t at = to.tail_.load(NORIA_RELAXED);
    for (std::uint32_t i = 0; i < count; ++i) {
      // ORDER: relaxed, what is read may be old, the swap tells; the copies are published with the tail of `to`.
      to.slot(at + i).store(slot(from + i).load(NORIA_RELAXED), NORIA_RELAXED);
    }
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
