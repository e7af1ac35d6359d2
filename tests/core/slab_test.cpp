// Slab memory: local and remote frees, walks, and the end of a slab whose owner has left (P11).
#include "base/slab.hpp"

#include <criterion/criterion.h>

#include <atomic>
#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "base/live.hpp"

using namespace noria;

namespace {

std::int64_t allocations() { return live_sum()[static_cast<std::size_t>(Live::kAllocations)]; }

void count_end(void* data) { static_cast<std::atomic<int>*>(data)->fetch_add(1); }

std::atomic<std::uint64_t>& life(void* p) { return static_cast<FreeSlot*>(p)->life; }

// A slab whose end is counted; the test's thread owns it.
struct Owned {
  std::atomic<int> ends{0};
  Slab* slab = Slab::create(count_end, &ends);
  Owned() { Slab::set_current(slab); }
  void* alloc(std::size_t size = 100, SlotKind kind = SlotKind::kTask, std::size_t align = 8) {
    return slab->alloc(kind, size, align);
  }
};

}  // namespace

Test(slab, Slot_of_any_size_and_alignment_is_aligned_and_writable) {
  Owned o;
  std::vector<void*> slots;
  for (std::size_t align = 1; align <= kMaxSlotAlign; align *= 2) {
    for (std::size_t size : {0u, 1u, 16u, 63u, 64u, 65u, 120u, 121u, 129u, 300u, 500u, 700u, 1024u, 1025u, 70000u}) {
      void* p = o.alloc(size, SlotKind::kOther, align);
      cr_assert_not_null(p);
      cr_assert_eq(reinterpret_cast<std::uintptr_t>(p) % align, 0);
      cr_assert_eq(life(p).load(), 0);
      std::memset(p, 0xff, size < 16 ? 16 : size);
      slots.push_back(p);
    }
  }
  std::set<void*> distinct(slots.begin(), slots.end());
  cr_assert_eq(distinct.size(), slots.size());
  cr_assert_null(o.alloc(64, SlotKind::kOther, kMaxSlotAlign * 2));
  cr_assert_null(o.alloc(SIZE_MAX));
  for (void* p : slots) Slab::free(p);
  o.slab->orphan();
  cr_assert_eq(o.ends.load(), 1);
  cr_assert_eq(allocations(), 0);
}

Test(slab, Local_free_is_reused_first_and_chunks_are_bounded) {
  Owned o;
  void* a = o.alloc();
  Slab::free(a);
  cr_assert_eq(o.alloc(), a);
  Slab::free(a);
  // 200,000 slots of 256 bytes are about 790 chunks; once free, no more than the bound stay.
  std::vector<void*> slots;
  for (int i = 0; i < 200000; ++i) slots.push_back(o.alloc(200));
  std::int64_t most = allocations();
  cr_assert_geq(most, 700);
  for (void* p : slots) Slab::free(p);
  cr_assert_leq(allocations(), static_cast<std::int64_t>(Slab::kMaxEmpty) + 4);
  // Kept chunks serve any kind and size before new memory is asked for.
  std::int64_t kept = allocations();
  for (int i = 0; i < 60 * 63; ++i) slots[static_cast<std::size_t>(i)] = o.alloc(1024, SlotKind::kFuture);
  cr_assert_leq(allocations(), kept + 1);
  for (int i = 0; i < 60 * 63; ++i) Slab::free(slots[static_cast<std::size_t>(i)]);
  o.slab->orphan();
  cr_assert_eq(o.ends.load(), 1);
  cr_assert_eq(allocations(), 0);
}

Test(slab, Random_sizes_and_order_never_overlap) {
  Owned o;
  unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  struct Item {
    unsigned char* p;
    std::size_t size;
    unsigned char mark;
  };
  std::vector<Item> items;
  for (int i = 0; i < 200000; ++i) {
    if (items.empty() || random() % 100 < 52) {
      std::size_t size = 16 + random() % (random() % 50 == 0 ? 5000 : 1000);
      auto kind = static_cast<SlotKind>(random() % 3);
      auto* p = static_cast<unsigned char*>(o.alloc(size, kind));
      cr_assert_not_null(p);
      auto mark = static_cast<unsigned char>(1 + random() % 255);
      std::memset(p, mark, size);
      items.push_back({p, size, mark});
    } else {
      std::size_t k = random() % items.size();
      Item item = items[k];
      cr_assert(item.p[0] == item.mark && item.p[item.size - 1] == item.mark && item.p[item.size / 2] == item.mark,
                "seed %u", seed);
      items[k] = items.back();
      items.pop_back();
      if (random() % 4 == 0) {  // as if from another thread
        Slab::set_current(nullptr);
        Slab::free(item.p);
        Slab::set_current(o.slab);
      } else {
        Slab::free(item.p);
      }
    }
  }
  for (Item& item : items) Slab::free(item.p);
  o.slab->orphan();
  cr_assert_eq(o.ends.load(), 1);
  cr_assert_eq(allocations(), 0);
}

Test(slab, Remote_frees_come_back_to_the_owner) {
  Owned o;
  std::vector<void*> slots;
  for (int i = 0; i < 10000; ++i) slots.push_back(o.alloc(200));
  std::int64_t before = allocations();
  for (int round = 0; round < 20; ++round) {
    std::thread other([&] {
      for (void* p : slots) Slab::free(p);
    });
    other.join();
    for (void*& p : slots) p = o.alloc(200);
    cr_assert_leq(allocations(), before + 2, "what others freed is used before new memory");
  }
  std::thread other([&] {
    for (void* p : slots) Slab::free(p);
  });
  other.join();
  cr_assert_eq(o.ends.load(), 0);
  o.slab->collect();
  void* p = o.alloc(200);
  Slab::free(p);
  o.slab->orphan();
  cr_assert_eq(o.ends.load(), 1);
  cr_assert_eq(allocations(), 0);
}

Test(slab, Walk_finds_exactly_the_published_of_its_kind) {
  Owned o;
  std::set<void*> tasks;
  std::vector<void*> others;
  for (int i = 0; i < 1000; ++i) {
    void* p = o.alloc(static_cast<std::size_t>(i) * 3);  // the last ones have chunks of their own
    if (i % 3 == 0) {
      others.push_back(p);  // not published
    } else {
      life(p).store(1);
      tasks.insert(p);
    }
    void* f = o.alloc(64, SlotKind::kFuture);
    life(f).store(1);
    others.push_back(f);
  }
  std::set<void*> seen;
  o.slab->for_each_live(SlotKind::kTask, [&](void* p) { cr_assert(seen.insert(p).second); });
  cr_assert(seen == tasks);
  // A visitor may free what it finds; chunks of one slot stay readable until the walk ends.
  std::size_t visits = 0;
  o.slab->for_each_live(SlotKind::kTask, [&](void* p) {
    ++visits;
    Slab::free(p);
  });
  cr_assert_eq(visits, tasks.size());
  o.slab->for_each_live(SlotKind::kTask, [&](void*) { cr_assert_fail("all were freed"); });
  for (void* p : others) Slab::free(p);
  o.slab->orphan();
  cr_assert_eq(o.ends.load(), 1);
  cr_assert_eq(allocations(), 0);
}

Test(slab, Orphan_with_slots_out_ends_with_the_last_free) {
  Owned o;
  void* small = o.alloc(64);
  void* large = o.alloc(5000);
  void* gone = o.alloc(64);
  Slab::set_current(nullptr);
  Slab::free(gone);  // waits in the remote list
  o.slab->orphan();
  cr_assert_eq(o.ends.load(), 0);
  cr_assert_neq(allocations(), 0);
  std::thread([&] { Slab::free(large); }).join();
  cr_assert_eq(o.ends.load(), 0);
  std::thread([&] { Slab::free(small); }).join();
  cr_assert_eq(o.ends.load(), 1);
  cr_assert_eq(allocations(), 0);
}

Test(slab, Orphan_counts_what_was_taken_in_halfway) {
  Owned o;
  std::vector<void*> slots;
  for (int i = 0; i < 2000; ++i) slots.push_back(o.alloc(64));
  std::thread([&] {
    for (void* p : slots) Slab::free(p);
  }).join();
  // One allocation takes in a part of them; the rest waits with the owner.
  while (slots.size() < 2300) slots.push_back(o.alloc(64));
  for (std::size_t i = 2000; i < slots.size(); ++i) Slab::free(slots[i]);
  o.slab->orphan();
  cr_assert_eq(o.ends.load(), 1);
  cr_assert_eq(allocations(), 0);
}

Test(slab, Chunk_keeps_its_kind_and_place_while_it_is_walked) {
  Owned o;
  std::vector<void*> tasks;
  for (int i = 0; i < 2000; ++i) {
    tasks.push_back(o.alloc(64));
    life(tasks.back()).store(1);
  }
  void* large = o.alloc(5000);
  life(large).store(1);
  std::vector<void*> futures;
  bool all_freed = false;
  std::int64_t at_first = allocations();
  o.slab->for_each_live(SlotKind::kTask, [&](void* p) {
    cr_assert_not(all_freed, "no task is left");
    if (p == large) {
      Slab::free(large);
      cr_assert_eq(allocations(), at_first, "the walk goes on from this chunk");
      return;
    }
    if (p != tasks[0]) return;
    all_freed = true;
    for (void* task : tasks) Slab::free(task);  // this chunk and others become empty
    for (int i = 0; i < 2000; ++i) {
      futures.push_back(o.alloc(100, SlotKind::kFuture));
      life(futures.back()).store(1);
    }
  });
  cr_assert(all_freed);
  for (void* p : futures) Slab::free(p);
  o.slab->orphan();
  cr_assert_eq(o.ends.load(), 1);
  cr_assert_eq(allocations(), 0);
}
