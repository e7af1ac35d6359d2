// noria_set_allocator, and what happens when there is no memory (P10), or none may be asked for (P3).
#include <criterion/criterion.h>

#include <new>
#include <vector>

#include "support/runtime_fixture.hpp"

using namespace noria::test;

namespace {

// Fails at the n-th allocation from when it was armed; counts what it has given.
struct Memory {
  std::atomic<long> left{-1};  // allocations until one fails; negative: never
  std::atomic<long> asked{0};
  std::atomic<long> blocks{0};
  std::atomic<long> bytes{0};
} g_memory;

thread_local bool t_armed = false;  // this thread's allocations are counted and may fail

bool denied() {
  if (!t_armed) return false;
  ++g_memory.asked;
  return g_memory.left >= 0 && g_memory.left-- == 0;
}

void* give(std::size_t size, std::size_t align, void* data) {
  NORIA_CHECK(data == &g_memory, "the allocator's data");
  NORIA_CHECK(align != 0 && (align & (align - 1)) == 0, "alignment %zu", align);
  if (denied()) return nullptr;
  ++g_memory.blocks;
  g_memory.bytes += static_cast<long>(size);
  return std::aligned_alloc(align < 16 ? 16 : align, (size + (align < 16 ? 15 : align - 1)) /
                                                         (align < 16 ? 16 : align) * (align < 16 ? 16 : align));
}

void take_back(void* block, std::size_t size, std::size_t, void* data) {
  NORIA_CHECK(data == &g_memory, "the allocator's data");
  --g_memory.blocks;
  g_memory.bytes -= static_cast<long>(size);
  std::free(block);
}

const noria_allocator kAllocator = {sizeof(noria_allocator), 0, give, take_back, &g_memory};

int32_t pending(void*, const noria_cx*) { return NORIA_PENDING; }
const noria_task_vtable kPending = {sizeof(noria_task_vtable), 0, pending, nullptr, nullptr, "pending"};

noria_runtime_options options_of(std::uint32_t workers) { return lane_options(Lane{"", workers}); }

// Calls `create` with the n-th allocation failing, for every n until it succeeds.
template <typename Create>
int each_failure(const char* what, Create&& create) {
  for (int n = 0; n < 1000; ++n) {
    g_memory.left = n;
    t_armed = true;
    int32_t status = create();
    t_armed = false;
    g_memory.left = -1;
    if (status == NORIA_OK) return n;
    NORIA_CHECK(status == -ENOMEM, "%s without memory: %s", what, noria_error_name(status));
  }
  NORIA_CHECK(false, "%s never succeeds", what);
}

}  // namespace

// The containers of the standard library ask here: they share the fate. (ThreadSanitizer's own operators cannot be replaced.)
#if !NORIA_TEST_TSAN
void* operator new(std::size_t size) {
  void* block = denied() ? nullptr : std::malloc(size);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
#endif

Test(Allocator, Set_before_the_first_use_only) {
  noria_allocator bad = kAllocator;
  bad.alloc = nullptr;
  NORIA_STATUS(noria_set_allocator(&bad), -EINVAL);
  bad = kAllocator;
  bad.size = 2;
  NORIA_STATUS(noria_set_allocator(&bad), -EINVAL);
  NORIA_OK_CALL(noria_set_allocator(&kAllocator));
  noria_runtime* rt = nullptr;
  NORIA_OK_CALL(noria_runtime_new(nullptr, &rt));
  cr_assert_gt(g_memory.blocks, 0);
  NORIA_STATUS(noria_set_allocator(&kAllocator), -EBUSY);
  NORIA_OK_CALL(noria_runtime_free(rt));
  assert_nothing_alive("the user's allocator");
  cr_assert_eq(g_memory.blocks, 0, "%ld blocks left", g_memory.blocks.load());
  cr_assert_eq(g_memory.bytes, 0, "free is told the size that alloc was");
}

Test(Allocator, P10_a_runtime_without_memory_is_told_and_leaks_nothing) {
  NORIA_OK_CALL(noria_set_allocator(&kAllocator));
  for (std::uint32_t workers : {0u, 2u}) {
    noria_runtime_options options = options_of(workers);
    const std::uint32_t cpu[] = {0, 0, 0};
    options.name = "a name that is too long to be kept in place";
    options.affinity = cpu;
    options.affinity_count = workers == 0 ? 0 : 3;
    noria_runtime* rt = nullptr;
    int failures = each_failure("noria_runtime_new", [&] {
      rt = nullptr;
      int32_t status = noria_runtime_new(&options, &rt);
      if (status != NORIA_OK) assert_nothing_alive("a runtime that could not be made");
      return status;
    });
    cr_assert_gt(failures, 3);
    NORIA_OK_CALL(noria_runtime_free(rt));
    assert_nothing_alive("a runtime");
    cr_assert_eq(g_memory.blocks, 0);
  }
}

Test(Allocator, P10_creating_calls_without_memory_are_told_and_leak_nothing) {
  NORIA_OK_CALL(noria_set_allocator(&kAllocator));
  for (std::uint32_t workers : {0u, 2u}) {
    Watchdog watchdog("creating calls without memory");
    noria_runtime_options options = options_of(workers);
    noria_runtime* rt = nullptr;
    NORIA_OK_CALL(noria_runtime_new(&options, &rt));
    void* room = nullptr;
    std::vector<noria_task*> tasks;
    std::vector<noria_future*> futures;
    tasks.reserve(100000);
    futures.reserve(100000);
    // Until the slab must ask for more memory, whatever the kind.
    auto until_denied = [&](const char* what, auto&& create) {
      for (int i = 0; i < 20000; ++i) {
        long asked = g_memory.asked;
        each_failure(what, create);
        if (g_memory.asked - asked > 1) return;
      }
    };
    noria_task* task = nullptr;
    noria_future* future = nullptr;
    noria_strand* strand = nullptr;
    until_denied("noria_task_new", [&] {
      int32_t status = noria_task_new(rt, &kPending, 200, 8, &room, &task);
      if (status == NORIA_OK) NORIA_OK_CALL(noria_task_discard(task));
      return status;
    });
    each_failure("noria_task_new of a large state", [&] {
      int32_t status = noria_task_new(rt, &kPending, 1000000, 8, &room, &task);
      if (status == NORIA_OK) NORIA_OK_CALL(noria_task_discard(task));
      return status;
    });
    until_denied("noria_spawn", [&] {
      int32_t status = noria_spawn(rt, &kPending, nullptr, &task);
      if (status == NORIA_OK) tasks.push_back(task);
      return status;
    });
    until_denied("noria_task_join", [&] {
      int32_t status = noria_task_join(tasks[0], &future);
      if (status == NORIA_OK) futures.push_back(future);
      return status;
    });
    until_denied("noria_sleep", [&] {
      int32_t status = noria_sleep(rt, 1000 * kSecond, &future);
      if (status == NORIA_OK) futures.push_back(future);
      return status;
    });
    each_failure("noria_strand_new", [&] { return noria_strand_new(rt, &strand); });
    each_failure("noria_strand_spawn", [&] { return noria_strand_spawn(strand, &kPending, nullptr, nullptr); });
    each_failure("noria_runtime_enter", [&] { return noria_runtime_enter(rt); });
    NORIA_OK_CALL(noria_runtime_leave(rt));
    auto done = [](const noria_cx*) -> int32_t { return NORIA_READY; };
    each_failure("noria_runtime_block_on",
                 [&] { return noria_runtime_block_on(rt, &kBorrowed<decltype(done)>, &done, nullptr); });
    for (noria_future* each : futures) NORIA_OK_CALL(noria_future_drop(each));
    for (noria_task* each : tasks) NORIA_OK_CALL(noria_task_detach(each));
    NORIA_OK_CALL(noria_strand_drop(strand));
    NORIA_OK_CALL(noria_runtime_shutdown(rt, 5 * kSecond, nullptr));
    NORIA_OK_CALL(noria_runtime_release(rt));
    assert_nothing_alive("creating calls without memory");
    cr_assert_eq(g_memory.blocks, 0);
  }
}

Test(Allocator, P3_wake_cancel_drop_and_shutdown_never_allocate) {
  NORIA_OK_CALL(noria_set_allocator(&kAllocator));
  for (std::uint32_t workers : {0u, 2u}) {
    Watchdog watchdog("calls that may not allocate");
    Lane lane{"", workers};
    noria_runtime_options options = options_of(workers);
    NORIA_OK_CALL(noria_runtime_new(&options, &lane.rt));
    constexpr int kTasks = 600;  // more than a ring holds
    std::vector<KeptWaker> kept(kTasks);
    std::vector<noria_task*> tasks;
    std::vector<noria_future*> futures;
    std::atomic<int> waits{0};
    for (KeptWaker& waker : kept) {
      tasks.push_back(spawn(lane.rt, [&](const noria_cx* cx) -> int32_t {
        if (!waker.kept()) waker.keep(cx), ++waits;
        return NORIA_PENDING;
      }));
      noria_future* future = nullptr;
      NORIA_OK_CALL(noria_task_join(tasks.back(), &future));
      futures.push_back(future);
      NORIA_OK_CALL(noria_sleep(lane.rt, 100 * kSecond, &future));
      futures.push_back(future);
    }
    noria_strand* strand = nullptr;
    NORIA_OK_CALL(noria_strand_new(lane.rt, &strand));
    NORIA_OK_CALL(noria_strand_spawn(strand, &kPending, nullptr, nullptr));
    lane.until([&] { return waits == kTasks; }, "the first polls");
    long before = g_memory.asked;
    t_armed = true;
    g_memory.left = 0;
    for (KeptWaker& waker : kept) waker.wake_by_ref();
    for (int i = 0; i < kTasks; i += 3) NORIA_OK_CALL(noria_task_abort(tasks[static_cast<std::size_t>(i)]));
    for (std::size_t i = 0; i < futures.size(); i += 3) NORIA_OK_CALL(noria_future_cancel(futures[i]));
    for (std::size_t i = 0; i < futures.size(); i += 2) NORIA_OK_CALL(noria_future_drop(futures[i]));
    NORIA_OK_CALL(noria_runtime_shutdown(lane.rt, 5 * kSecond, nullptr));
    for (KeptWaker& waker : kept) waker.wake();
    for (std::size_t i = 1; i < futures.size(); i += 2) NORIA_OK_CALL(noria_future_drop(futures[i]));
    for (noria_task* task : tasks) NORIA_OK_CALL(noria_task_detach(task));
    NORIA_OK_CALL(noria_strand_drop(strand));
    NORIA_OK_CALL(noria_runtime_release(lane.rt));
    t_armed = false;
    g_memory.left = -1;
    cr_assert_eq(g_memory.asked - before, 0, "P3: %ld allocations", g_memory.asked.load() - before);
    assert_nothing_alive("calls that may not allocate");
  }
}
