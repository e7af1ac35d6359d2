// Slabs under threads: remote frees, walks and the owner's leaving at once. A plain program, so that
// it runs under every sanitizer. NORIA_LONG=1 runs fifty times as many rounds.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "base/assert.hpp"
#include "base/live.hpp"
#include "base/slab.hpp"
#include "support/check.hpp"

using namespace noria;

namespace {

// An object as the engine has them: a life word that is a reference count, and something to guard.
struct Object {
  LifeWord life;
  std::uint64_t content[6];
};

// Raises the count unless it is zero: how a walker pins what it found.
bool pin(Object* object) {
  // ORDER: test's own count: acquire and release as in any reference count.
  std::uint64_t count = object->life.word().load(NORIA_RELAXED);
  do {
    if (count == 0) return false;
  } while (!object->life.word().compare_exchange_weak(count, count + 1, NORIA_ACQ_REL, NORIA_RELAXED));
  return true;
}

void release(Object* object) {
  // ORDER: acq_rel, the last one sees what the others did; Slab::free stores the zero.
  std::uint64_t count = object->life.word().fetch_sub(1, NORIA_ACQ_REL);
  if (count != 1) return;
  for (auto& word : object->content) word = 0xdead;
  Slab::free(object);
}

Object* make(Slab* slab, std::size_t extra) {
  void* room = slab->alloc(SlotKind::kTask, sizeof(Object) + extra, alignof(Object));
  NORIA_ASSERT(room != nullptr, "test: memory");
  auto* object = new (room) Object;
  for (auto& word : object->content) word = 7;
  // ORDER: release, publishes the object to walkers.
  object->life.word().store(1, NORIA_RELEASE);
  return object;
}

std::atomic<int> g_ends{0};

// One owner hands objects to two threads, which release them at any time, also after the owner has
// left; a walker looks on until then.
void one_round(std::size_t count) {
  Slab* slab = Slab::create([](void*) { g_ends.fetch_add(1); }, nullptr);
  std::vector<std::atomic<Object*>> box(count);
  std::atomic<bool> walking{true};
  auto eat = [&](std::size_t first) {
    for (std::size_t i = first; i < count; i += 2) {
      Object* object = nullptr;
      while ((object = box[i].load(std::memory_order_acquire)) == nullptr) std::this_thread::yield();
      NORIA_ASSERT(object->content[0] == 7, "test: an object that was handed over is whole");
      release(object);
    }
  };
  std::thread a(eat, 0), b(eat, 1);
  std::thread walker([&] {
    while (walking.load()) {
      slab->for_each_live(SlotKind::kTask, [](void* p) {
        auto* object = static_cast<Object*>(p);
        if (!pin(object)) return;
        NORIA_ASSERT(object->content[5] == 7, "test: a pinned object is whole");
        release(object);
      });
    }
  });
  Slab::set_current(slab);
  for (std::size_t i = 0; i < count; ++i) {
    Object* own = make(slab, i % 7 * 100);
    Object* given = make(slab, i % 50 == 0 ? 4000 : i % 3 * 200);
    box[i].store(given, std::memory_order_release);
    release(own);
  }
  Slab::set_current(nullptr);
  walking.store(false);
  walker.join();
  slab->orphan();
  a.join();
  b.join();
}

}  // namespace

int main() {
  int n = 0;
  for (int i = 0; i < test::rounds(20, 1000); ++i, ++n) one_round(2000);
  for (int i = 0; i < test::rounds(400, 20000); ++i, ++n) one_round(static_cast<std::size_t>(1 + i % 8));
  NORIA_ASSERT(g_ends.load() == n, "test: every slab ends once");
  std::int64_t left = live_sum()[static_cast<std::size_t>(Live::kAllocations)];
  NORIA_ASSERT(left == 0, "test: all memory went back (P11)");
  std::printf("%d slabs\n", n);
  return 0;
}
