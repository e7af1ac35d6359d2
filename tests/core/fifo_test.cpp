// The buffer of an inject shard: order through growth, where there is no memory, and beyond its limit; what it gives back.
#include <criterion/criterion.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "base/allocator.hpp"
#include "support/check.hpp"
#include "task/fifo.hpp"

using namespace noria;
using task::Fifo;
using task::Task;

namespace {

bool g_no_memory = false;
std::size_t g_bytes = 0;

void watch_memory() {
  AllocatorHooks hooks{[](std::size_t size, std::size_t align, void*) -> void* {
                         if (g_no_memory) return nullptr;
                         g_bytes += size;
                         return std::aligned_alloc(align, (size + align - 1) / align * align);
                       },
                       [](void* p, std::size_t size, std::size_t, void*) {
                         if (p != nullptr) g_bytes -= size;
                         std::free(p);
                       },
                       nullptr};
  cr_assert_eq(set_allocator(hooks), 0);
}

// Pushes and pops pieces of random length; what comes out must be what a deque says.
struct Compared {
  Fifo fifo;
  std::deque<Task*> expected;
  std::unique_ptr<Task[]> tasks;
  std::vector<Task*> unused;

  explicit Compared(std::size_t count) : tasks(new Task[count]) {
    for (std::size_t i = 0; i < count; ++i) unused.push_back(&tasks[i]);
  }

  void push(std::size_t count) {
    std::vector<Task*> piece;
    for (; count > 0 && !unused.empty(); --count) {
      piece.push_back(unused.back());
      unused.pop_back();
    }
    fifo.push(piece);
    expected.insert(expected.end(), piece.begin(), piece.end());
    cr_assert_eq(fifo.size(), expected.size());
  }

  void pop(std::size_t most) {
    std::vector<Task*> out(most);
    std::size_t count = fifo.pop(out);
    cr_assert_eq(count, std::min(most, expected.size()));
    for (std::size_t i = 0; i < count; ++i) {
      cr_assert_eq(out[i], expected.front(), "in order");
      expected.pop_front();
      unused.push_back(out[i]);
    }
    cr_assert_eq(fifo.size(), expected.size());
  }
};

Test(Fifo, Order_is_kept_through_growth_and_where_memory_comes_and_goes) {
  watch_memory();
  std::mt19937_64 random(test::test_seed());
  {
    Compared compared(20000);
    for (int i = 0; i < 20000; ++i) {
      g_no_memory = random() % 4 == 0;
      bool grows = i / 2000 % 2 == 0;
      if (random() % 8 < (grows ? 5 : 3)) {
        compared.push(random() % 200);
      } else {
        compared.pop(1 + random() % 200);
      }
    }
    compared.pop(20000);
  }
  cr_assert_eq(g_bytes, 0);
}

Test(Fifo, Beyond_its_limit_it_goes_on_in_order) {
  watch_memory();
  Compared compared(600'000);
  for (int round = 0; round < 2; ++round) {
    while (!compared.unused.empty()) compared.push(1000);
    cr_assert_lt(g_bytes, 3u << 20, "a limit of the memory that is set aside");
    while (!compared.expected.empty()) compared.pop(1000);
  }
}

Test(Fifo, What_was_grown_for_a_burst_is_given_back) {
  watch_memory();
  Compared compared(100'000);
  compared.push(100'000);
  cr_assert_geq(g_bytes, 100'000 * sizeof(Task*));
  while (!compared.expected.empty()) compared.pop(128);
  cr_assert_leq(g_bytes, 256u << 10);
  compared.push(1000);
  while (!compared.expected.empty()) compared.pop(128);
  cr_assert_neq(g_bytes, 0, "what is usual is kept");
}

}  // namespace
