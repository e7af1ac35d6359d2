// The ready ring at capacity 4, with indices that begin below 2^32 and pass it: its owner, who overflows into a second ring, and two thieves,
// one of which steals from that second ring and from the ring that the other steals into (the cases ring-wrap and double-pop). Built twice: as it is, and with NORIA_PLANT_RING,
// where a thief may see the tail before the slot and the bug must be found.
#include "sync/ring.hpp"

#include <cstdio>
#include <cstdlib>

namespace {

constexpr int kItems = 6;

struct Item {
  rl::var<int> content;  // written by the owner before the push: who takes the item must see it
  rl::var<int> taken;
};

using Ring = noria::sync::Ring<Item, 4>;
using Older = noria::sync::Ring<Item, 8>;

struct RingModel : rl::test_suite<RingModel, 3> {
  Item items[kItems];
  Ring mine{0xFFFFFFFE};
  Older older{0xFFFFFFFF};
  Ring first{0xFFFFFFFD};
  Ring second{0xFFFFFFFF};

  void before() {
    for (Item& item : items) {
      VAR(item.content) = 0;
      VAR(item.taken) = 0;
    }
  }

  void take(Item* item) {
    RL_ASSERT(item != nullptr);
    RL_ASSERT(VAR(item->content) == 1);
    VAR(item->taken) = VAR(item->taken) + 1;  // two takers at once are a data race
  }

  void own() {
    VAR(items[0].content) = 1;
    VAR(items[1].content) = 1;
    Item* pair[] = {&items[0], &items[1]};
    RL_ASSERT(mine.push_many(pair) == 2);
    for (int i = 2; i < kItems; ++i) {
      VAR(items[i].content) = 1;
      if (mine.push(&items[i])) continue;
      std::uint32_t halves = mine.move_half(older);
      RL_ASSERT(halves == 0 || halves == Ring::kHalf);
      RL_ASSERT(mine.push(&items[i]) != 0);
    }
    if (Item* item = older.pop()) take(item);
    if (Item* item = mine.pop()) take(item);
  }

  template <typename From>
  void steal(From& from, Ring& to) {
    std::uint32_t moved = 0;
    Item* item = from.steal_into(to, moved);
    RL_ASSERT((item != nullptr) == (moved != 0));
    RL_ASSERT(moved <= 4);
    if (item != nullptr) take(item);
  }

  template <typename Any>
  void drain(Any& ring) {
    while (Item* item = ring.pop()) take(item);
  }

  void thread(unsigned index) {
    if (index == 0) return own();
    if (index == 1) {
      steal(mine, first);
      drain(first);
      steal(mine, first);
      return;
    }
    steal(first, second);
    drain(second);
    steal(older, second);
  }

  void after() {
    drain(mine);
    drain(older);
    drain(first);
    drain(second);
    for (Item& item : items) RL_ASSERT(VAR(item.taken) == 1);
  }
};

}  // namespace

int main() {
  rl::test_params params;
  params.search_type = rl::sched_random;
  params.iteration_count = 200000;
#ifdef NORIA_PLANT_RING
  rl::simulate<RingModel>(params);
  bool found = params.test_result != rl::test_result_success;
  std::printf("the planted bug was %sfound\n", found ? "" : "not ");
  return found ? 0 : 1;
#else
  return rl::simulate<RingModel>(params) ? 0 : 1;
#endif
}
