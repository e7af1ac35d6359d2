// No memory: every function that creates something says so, takes nothing, and works again when there is some (P10).
#include <criterion/criterion.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <vector>

#include "support/pending.hpp"

using namespace noria::test;

namespace {

std::atomic<bool> g_empty{false};

void use_allocator() {
  noria_allocator allocator{};
  allocator.size = sizeof allocator;
  allocator.alloc = [](std::size_t size, std::size_t align, void*) -> void* {
    if (g_empty) return nullptr;
    return std::aligned_alloc(align, (size + align - 1) / align * align);
  };
  allocator.free = [](void* block, std::size_t, std::size_t, void*) { std::free(block); };
  assert_ok(noria_set_allocator(&allocator), "set_allocator");
}

// Creates without memory until it fails, gives all of it back without memory (P3), and creates once more with some.
template <typename Handle>
void exhaust(const char* what, const std::function<int32_t(Handle**)>& create, int32_t (*drop)(Handle*)) {
  constexpr std::size_t kMost = 500'000;
  std::vector<Handle*> made;
  made.reserve(kMost);
  g_empty = true;
  int32_t status = NORIA_OK;
  while (status == NORIA_OK && made.size() < kMost) {
    Handle* handle = nullptr;
    status = create(&handle);
    if (status == NORIA_OK) made.push_back(handle);
  }
  NORIA_CHECK(status == -ENOMEM, "%s: %s after %zu", what, noria_error_name(status), made.size());
  for (Handle* handle : made) NORIA_OK_CALL(drop(handle));
  g_empty = false;
  Handle* handle = nullptr;
  NORIA_STATUS(create(&handle), NORIA_OK);
  NORIA_OK_CALL(drop(handle));
}

}  // namespace

Test(NoMemory, Creators_of_handles_say_so_and_work_again, .init = use_allocator) {
  on_each_runtime([](Lane& lane) {
    noria_runtime* rt = lane.rt;
    exhaust<noria_semaphore>(
        "semaphore", [&](auto** out) { return noria_semaphore_new(rt, 1, out); }, noria_semaphore_drop);
    exhaust<noria_notify>(
        "notify", [&](auto** out) { return noria_notify_new(rt, out); }, noria_notify_drop);
    exhaust<noria_timer>(
        "timer", [&](auto** out) { return noria_timer_new(rt, out); }, noria_timer_drop);
    exhaust<noria_interval>(
        "interval", [&](auto** out) { return noria_interval_new(rt, 0, 1, 0, out); }, noria_interval_drop);
    exhaust<noria_buf>(
        "small buffer", [&](auto** out) { return noria_buf_new(rt, 100, out); }, noria_buf_release);
    exhaust<noria_buf>(
        "large buffer", [&](auto** out) { return noria_buf_new(rt, 10'000, out); }, noria_buf_release);
    exhaust<noria_buf>(
        "wrapped buffer", [&](auto** out) { return noria_buf_wrap(rt, &lane, 1, nullptr, nullptr, out); },
        noria_buf_release);
    exhaust<noria_oneshot_receiver>(
        "oneshot",
        [&](auto** out) {
          noria_oneshot_sender* tx = nullptr;
          int32_t status = noria_oneshot_new(rt, nullptr, &tx, out);
          if (status == NORIA_OK) NORIA_OK_CALL(noria_oneshot_sender_drop(tx));
          return status;
        },
        noria_oneshot_receiver_drop);
  });
}

Test(NoMemory, Creators_of_futures_say_so_and_work_again, .init = use_allocator) {
  on_each_runtime([](Lane& lane) {
    noria_runtime* rt = lane.rt;
    noria_semaphore* semaphore = nullptr;
    noria_notify* notify = nullptr;
    noria_timer* timer = nullptr;
    NORIA_OK_CALL(noria_semaphore_new(rt, 0, &semaphore));
    NORIA_OK_CALL(noria_notify_new(rt, &notify));
    NORIA_OK_CALL(noria_timer_new(rt, &timer));
    NORIA_OK_CALL(noria_timer_reset(timer, UINT64_MAX));
    auto futures = [](const char* what, const std::function<int32_t(noria_future**)>& create) {
      exhaust<noria_future>(what, create, noria_future_drop);
    };
    futures("sleep", [&](auto** out) { return noria_sleep(rt, 3600 * kSecond, out); });
    futures("timer wait", [&](auto** out) { return noria_timer_wait(timer, out); });
    futures("acquire", [&](auto** out) { return noria_semaphore_acquire(semaphore, 1, out); });
    futures("notify wait", [&](auto** out) { return noria_notify_wait(notify, out); });
    Pending pending(rt), inner(rt);
    futures("select", [&](auto** out) { return noria_select(rt, &pending.future, 1, out); });
    // A composite that could not be made has taken nothing: the child works afterwards.
    g_empty = true;
    int32_t status = NORIA_OK;
    std::vector<noria_future*> spare;
    while (status == NORIA_OK) {
      noria_future* future = nullptr;
      status = noria_select(rt, &pending.future, 1, &future);
      if (status == NORIA_OK) spare.push_back(future);
    }
    noria_future* big[200];
    for (noria_future*& each : big) each = inner.future;
    noria_future* all = nullptr;
    NORIA_STATUS(noria_join_all(rt, big, 200, &all), -ENOMEM);
    g_empty = false;
    for (noria_future* future : spare) NORIA_OK_CALL(noria_future_drop(future));
    inner.complete();
    NORIA_OK_CALL(lane.await(inner.future));
    NORIA_OK_CALL(noria_future_drop(pending.future));
    NORIA_OK_CALL(noria_timer_drop(timer));
    NORIA_OK_CALL(noria_notify_drop(notify));
    NORIA_OK_CALL(noria_semaphore_drop(semaphore));
  });
}

Test(NoMemory, Wakes_grants_cancels_and_shutdown_need_none, .init = use_allocator) {
  for (Lane lane : {kCurrentThread, kTwoWorkers}) {
    noria_runtime_options options = lane_options(lane);
    assert_ok(noria_runtime_new(&options, &lane.rt), lane.name);
    {
      noria_semaphore* semaphore = nullptr;
      noria_notify* notify = nullptr;
      noria_timer* timer = nullptr;
      NORIA_OK_CALL(noria_semaphore_new(lane.rt, 0, &semaphore));
      NORIA_OK_CALL(noria_notify_new(lane.rt, &notify));
      NORIA_OK_CALL(noria_timer_new(lane.rt, &timer));
      noria_future *futures[100], *told[100], *sleep = nullptr, *limited = nullptr;
      for (noria_future*& future : futures) NORIA_OK_CALL(noria_semaphore_acquire(semaphore, 1, &future));
      for (noria_future*& future : told) NORIA_OK_CALL(noria_notify_wait(notify, &future));
      Pending pending(lane.rt), inner(lane.rt);
      NORIA_OK_CALL(noria_sleep(lane.rt, 3600 * kSecond, &sleep));
      NORIA_OK_CALL(noria_timeout(lane.rt, inner.future, 3600 * kSecond, &limited));
      ForeignWaker foreign;
      noria_waiter waiter{};
      g_empty = true;
      NORIA_STATUS(noria_future_poll(pending.future, foreign.cx()), NORIA_PENDING);
      NORIA_OK_CALL(noria_future_cancel(futures[7]));
      NORIA_STATUS(noria_future_result(futures[7], nullptr, 0), -ECANCELED);
      NORIA_OK_CALL(noria_semaphore_release(semaphore, 50));
      NORIA_STATUS(noria_semaphore_poll_acquire(semaphore, 1, foreign.cx(), &waiter), NORIA_PENDING);
      NORIA_OK_CALL(noria_waiter_drop(&waiter));
      NORIA_OK_CALL(noria_notify_all(notify));
      NORIA_OK_CALL(noria_timer_reset(timer, 1));
      NORIA_OK_CALL(noria_timer_reset(timer, UINT64_MAX));
      NORIA_OK_CALL(noria_timer_cancel(timer));
      NORIA_OK_CALL(noria_future_cancel(limited));
      pending.complete();
      assert_ok(noria_runtime_shutdown(lane.rt, 8 * kSecond, nullptr), "P3: shutdown");
      for (noria_future* future : futures) NORIA_OK_CALL(noria_future_drop(future));
      for (noria_future* future : told) NORIA_OK_CALL(noria_future_drop(future));
      for (noria_future* future : {sleep, limited, pending.future}) NORIA_OK_CALL(noria_future_drop(future));
      NORIA_OK_CALL(noria_timer_drop(timer));
      NORIA_OK_CALL(noria_notify_drop(notify));
      NORIA_OK_CALL(noria_semaphore_drop(semaphore));
    }
    assert_ok(noria_runtime_release(lane.rt), "release");
    g_empty = false;
    await_nothing_alive(lane.name);
  }
}
