// Live counts and the allocator door: counts survive threads, exit order and fork.
#include "base/live.hpp"

#include <criterion/criterion.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <latch>
#include <thread>
#include <vector>

#include "base/allocator.hpp"
#include "sync/mutex.hpp"

using namespace noria;

namespace {

std::int64_t live(Live kind) { return live_sum()[static_cast<std::size_t>(kind)]; }

int g_hook_calls = 0;

}  // namespace

Test(live, Counts_of_running_and_ended_threads_are_summed) {
  constexpr int kThreads = 8;
  std::latch counted(kThreads), go(1);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 1000; ++i) live_add(Live::kTasks, 2);
      live_add(Live::kWakers, t);
      counted.count_down();
      go.wait();
      for (int i = 0; i < 1000; ++i) live_add(Live::kTasks, -1);
    });
  }
  counted.wait();
  cr_assert_eq(live(Live::kTasks), kThreads * 2000);
  cr_assert_eq(live(Live::kWakers), kThreads * (kThreads - 1) / 2);
  go.count_down();
  for (auto& thread : threads) thread.join();
  cr_assert_eq(live(Live::kTasks), kThreads * 1000);
  cr_assert_eq(live(Live::kDescriptors), 0);
}

Test(live, Count_in_thread_exit_destructor_is_not_lost) {
  struct Late {
    ~Late() { live_add(Live::kTimers, 1); }
  };
  static pthread_key_t key;
  pthread_key_create(&key, [](void*) { live_add(Live::kTimers, 10); });
  std::thread([] {
    thread_local Late late;
    (void)&late;
    pthread_setspecific(key, &key);
    live_add(Live::kTimers, 100);
  }).join();
  std::thread([] {
    thread_local Late late;  // the first count of this thread comes after its function
    (void)&late;
  }).join();
  cr_assert_eq(live(Live::kTimers), 112);
}

Test(live, Child_of_fork_keeps_the_sum_and_can_count) {
  std::latch counted(1), go(1);
  std::thread other([&] {
    live_add(Live::kFutures, 5);
    counted.count_down();
    go.wait();
  });
  live_add(Live::kFutures, 7);
  counted.wait();
  pid_t pid = fork();
  if (pid == 0) {
    bool kept = live(Live::kFutures) == 12;
    std::thread([] { live_add(Live::kFutures, 1); }).join();
    live_add(Live::kFutures, 1);
    _exit(kept && live(Live::kFutures) == 14 ? 0 : 1);
  }
  int status = 0;
  cr_assert_eq(waitpid(pid, &status, 0), pid);
  cr_assert_eq(status, 0);
  go.count_down();
  other.join();
  cr_assert_eq(live(Live::kFutures), 12);
}

Test(allocator, Hooks_are_used_until_the_end_and_fixed_by_the_first_block) {
  AllocatorHooks hooks{[](std::size_t size, std::size_t align, void* data) -> void* {
                         ++*static_cast<int*>(data);
                         return size == 13 ? nullptr : std::aligned_alloc(align, (size + align - 1) / align * align);
                       },
                       [](void* p, std::size_t, std::size_t, void* data) {
                         ++*static_cast<int*>(data);
                         std::free(p);
                       },
                       &g_hook_calls};
  AllocatorHooks incomplete{hooks.alloc, nullptr, nullptr};
  cr_assert_eq(set_allocator(incomplete), -EINVAL);
  cr_assert_eq(set_allocator(hooks), 0);
  void* p = raw_alloc(100, 64);
  cr_assert_not_null(p);
  cr_assert_eq(live(Live::kAllocations), 1);
  cr_assert_eq(set_allocator(hooks), -EBUSY);
  cr_assert_null(raw_alloc(13, 16), "out of memory is told");
  cr_assert_eq(live(Live::kAllocations), 1);
  raw_free(p, 100, 64);
  raw_free(nullptr, 1, 1);
  cr_assert_eq(live(Live::kAllocations), 0);
  cr_assert_eq(g_hook_calls, 3);
}

Test(allocator, Size_that_wraps_gives_null) {
  cr_assert_null(raw_alloc(SIZE_MAX - 3, 4096));
  cr_assert_eq(live(Live::kAllocations), 0);
}

Test(mutex, Contended_lock_excludes_and_loses_no_waiter) {
  sync::Mutex mutex;
  std::uint64_t sum = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20000; ++i) {
        sync::MutexLock lock(mutex);
        ++sum;
        if (i % 512 == 0) std::this_thread::yield();  // others run into the held lock and sleep
      }
    });
  }
  for (auto& thread : threads) thread.join();
  cr_assert_eq(sum, 80000);
  cr_assert(mutex.try_lock());
  cr_assert_not(mutex.try_lock());
  mutex.unlock();
}
