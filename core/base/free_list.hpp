// free_list.hpp: slots that other threads gave back to a slab, and the end of a slab without owner.
//
// One word, `head_`, is a stack of freed slots, or the tag kClosed once the owner has left:
//
//   from        to          by            how, order
//   ---------   ---------   -----------   ---------------------------------------------------------
//   list        node+list   any thread    push: CAS release; the node is the owner's from then on
//   list        empty       owner         take: exchange acquire; the owner has the whole list
//   list        kClosed     owner, once   close: exchange acquire; what came before is the last list
//   kClosed     kClosed     any thread    push answers kClosed; the thread calls leave() instead
//
// A second word, `left_`, counts how many slots are still out after close(). The owner alone knows
// how many there are, and only after close() (pushes race with it), while others leave already:
//
//   event                     change     who sees zero afterwards ends the slab
//   settle(n), owner, once    +n         all n had left before: the owner
//   leave(), each of the n    -1         the n-th after settle(): that thread
//
// Invariants:
//   F1 every freed slot is in exactly one of: a list the owner took, or the count of leave().
//      (The exchange of close() splits all pushes into those before, which it returns, and those
//      after, which see kClosed: kClosed never changes.)
//   F2 before settle() the count is <= 0 and each leave() makes it < 0; after it the count is n minus
//      the number of leaves, so exactly one event sees zero.
//   F3 that event sees all that others wrote to their slots: every change of `left_` is acq_rel, and
//      read-modify-writes of one word continue each other's release sequence.
//   F4 nobody touches the list after the push or the leave that gave away its last slot.
// There is no ABA: nobody pops single nodes, and a CAS that finds the same head links to it rightly.
#pragma once

#include <cstdint>

#include "base/atomic.hpp"

namespace noria {

// Node has `NORIA_PLAIN(Node*) next`, which belongs to whoever owns the node.
template <typename Node>
class FreeList {
 public:
  // Any thread. False: the list is closed, the node was not taken; call leave() for it.
  [[nodiscard]] bool push(Node* node) noexcept {
    // ORDER: relaxed, the CAS checks the value; kClosed needs no more, as leave() is acq_rel.
    Node* head = head_.load(NORIA_RELAXED);
    do {
      if (head == closed()) return false;
      NORIA_PLAIN_GET(node->next) = head;
      // ORDER: release, hands the slot's content and link to take() and close(); relaxed on
      // failure, as above.
    } while (!head_.compare_exchange_weak(head, node, NORIA_RELEASE, NORIA_RELAXED));
    return true;
  }

  // Owner, before close(). True where take() would give something; stale is harmless: it is asked
  // again before the next chunk.
  // ORDER: relaxed, only a hint.
  [[nodiscard]] bool maybe_filled() const noexcept { return head_.load(NORIA_RELAXED) != nullptr; }

  // Owner, before close(): everything pushed so far, newest first.
  // ORDER: acquire, pairs with the release of each push in the list (one release sequence).
  [[nodiscard]] Node* take() noexcept { return head_.exchange(nullptr, NORIA_ACQUIRE); }

  // Owner, once: no push succeeds any more; returns what was pushed before.
  [[nodiscard]] Node* close() noexcept {
#ifdef NORIA_PLANT_FREE_LIST
    // The planted bug: a push between the two is lost, and the slab never ends (F1).
    Node* list = head_.load(NORIA_ACQUIRE);  // ORDER: acquire, as below.
    head_.store(closed(), NORIA_RELEASE);    // ORDER: release, as good as any here.
    return list;
#else
    // ORDER: acquire, pairs with the release of each push in the list.
    return head_.exchange(closed(), NORIA_ACQUIRE);
#endif
  }

  // Owner, once, after close(): `n` slots are still out or have left since. True: end the slab.
  [[nodiscard]] bool settle(std::int64_t n) noexcept {
    // ORDER: acq_rel, gives what the owner wrote to the last leave(), and sees what all earlier
    // leaves wrote (F3).
    return left_.fetch_add(n, NORIA_ACQ_REL) + n == 0;
  }

  // Any thread, for a slot freed after close(). True: end the slab. False: touch nothing of it.
  [[nodiscard]] bool leave() noexcept {
    // ORDER: acq_rel, as in settle().
    return left_.fetch_sub(1, NORIA_ACQ_REL) == 1;
  }

 private:
  static Node* closed() noexcept { return reinterpret_cast<Node*>(std::uintptr_t{1}); }

  Atomic<Node*> head_{nullptr};
  Atomic<std::int64_t> left_{0};
};

}  // namespace noria
