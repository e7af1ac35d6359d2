// Permits: first come, first served; what is granted and not reported comes back.
#include <criterion/criterion.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include "support/clone_waker.hpp"
#include "support/runtime_fixture.hpp"

using namespace noria::test;

namespace {

noria_semaphore* make(noria_runtime* rt, std::uint64_t permits) {
  noria_semaphore* semaphore = nullptr;
  assert_ok(noria_semaphore_new(rt, permits, &semaphore), "semaphore_new");
  return semaphore;
}

std::uint64_t available(noria_semaphore* semaphore) {
  std::uint64_t count = 0;
  assert_ok(noria_semaphore_available(semaphore, &count), "available");
  return count;
}

noria_future* acquire(noria_semaphore* semaphore, std::uint64_t count) {
  noria_future* future = nullptr;
  assert_ok(noria_semaphore_acquire(semaphore, count, &future), "acquire");
  return future;
}

bool ready(noria_future* future) {
  ForeignWaker nobody;
  bool yes = noria_future_on_ready(future, nobody.waker()) == NORIA_READY;
  // Takes the waker back: the last wins.
  if (!yes) {
    static const noria_waker_vtable vtable = {[](const noria_waker* waker, noria_waker* out) { *out = *waker; },
                                              [](noria_waker*) {}, [](const noria_waker*) {}, [](noria_waker*) {}};
    noria_waker none = {&vtable, nullptr, nullptr};
    (void)noria_future_on_ready(future, &none);
  }
  return yes;
}

}  // namespace

Test(Semaphore, Permits_are_taken_and_given_back) {
  on_each_runtime([](Lane& lane) {
    noria_semaphore* semaphore = make(lane.rt, 3);
    NORIA_OK_CALL(noria_semaphore_try_acquire(semaphore, 2));
    NORIA_STATUS(noria_semaphore_try_acquire(semaphore, 2), -EAGAIN);
    cr_assert_eq(available(semaphore), 1);
    NORIA_OK_CALL(noria_semaphore_release(semaphore, 2));
    cr_assert_eq(available(semaphore), 3);
    NORIA_OK_CALL(noria_semaphore_release(semaphore, 5));
    cr_assert_eq(available(semaphore), 8, "permits may be added");
    NORIA_OK_CALL(noria_semaphore_try_acquire(semaphore, 0));
    NORIA_OK_CALL(noria_semaphore_drop(semaphore));
  });
}

Test(Semaphore, Permits_beyond_the_largest_number_overflow) {
  on_each_runtime([](Lane& lane) {
    constexpr std::uint64_t kMost = UINT64_MAX >> 2;
    noria_semaphore* semaphore = make(lane.rt, kMost);
    NORIA_STATUS(noria_semaphore_release(semaphore, 1), -EOVERFLOW);
    NORIA_STATUS(noria_semaphore_release(semaphore, UINT64_MAX), -EOVERFLOW);
    NORIA_OK_CALL(noria_semaphore_try_acquire(semaphore, kMost - 1));
    noria_future* future = acquire(semaphore, 2);
    NORIA_STATUS(noria_semaphore_release(semaphore, kMost), -EOVERFLOW);
    NORIA_OK_CALL(noria_future_drop(future));
    NORIA_OK_CALL(noria_semaphore_drop(semaphore));
  });
}

Test(Semaphore, Waiters_are_served_in_their_order_and_nobody_overtakes) {
  on_each_runtime([](Lane& lane) {
    noria_semaphore* semaphore = make(lane.rt, 0);
    noria_future* large = acquire(semaphore, 3);
    noria_future* small = acquire(semaphore, 1);
    NORIA_OK_CALL(noria_semaphore_release(semaphore, 2));
    cr_assert(!ready(large));
    cr_assert(!ready(small), "one permit would do, but it came later");
    NORIA_STATUS(noria_semaphore_try_acquire(semaphore, 1), -EAGAIN);
    NORIA_OK_CALL(noria_semaphore_release(semaphore, 1));
    cr_assert(ready(large));
    cr_assert(!ready(small));
    NORIA_OK_CALL(noria_semaphore_release(semaphore, 1));
    cr_assert(ready(small));
    cr_assert_eq(lane.await(large), NORIA_OK);
    cr_assert_eq(lane.await(small), NORIA_OK);
    cr_assert_eq(available(semaphore), 0);
    NORIA_OK_CALL(noria_semaphore_drop(semaphore));
  });
}

Test(Semaphore, Head_that_is_dropped_lets_the_next_be_served) {
  on_each_runtime([](Lane& lane) {
    noria_semaphore* semaphore = make(lane.rt, 1);
    noria_future* large = acquire(semaphore, 3);
    noria_future* small = acquire(semaphore, 1);
    cr_assert(!ready(small));
    NORIA_OK_CALL(noria_future_drop(large));
    cr_assert(ready(small));
    cr_assert_eq(lane.await(small), NORIA_OK);
    noria_waiter waiter{};
    ForeignWaker waker;
    NORIA_STATUS(noria_semaphore_poll_acquire(semaphore, 5, waker.cx(), &waiter), NORIA_PENDING);
    small = acquire(semaphore, 1);
    NORIA_OK_CALL(noria_semaphore_release(semaphore, 1));
    cr_assert(!ready(small));
    NORIA_OK_CALL(noria_waiter_drop(&waiter));
    cr_assert(ready(small));
    cr_assert_eq(lane.await(small), NORIA_OK);
    NORIA_OK_CALL(noria_semaphore_drop(semaphore));
  });
}

Test(Semaphore, Grant_that_was_not_reported_comes_back) {
  on_each_runtime([](Lane& lane) {
    noria_semaphore* semaphore = make(lane.rt, 2);
    NORIA_OK_CALL(noria_future_drop(acquire(semaphore, 2)));
    cr_assert_eq(available(semaphore), 2, "of a future that was dropped without its result");
    NORIA_OK_CALL(noria_semaphore_try_acquire(semaphore, 2));
    noria_waiter waiter{};
    ForeignWaker waker;
    NORIA_STATUS(noria_semaphore_poll_acquire(semaphore, 2, waker.cx(), &waiter), NORIA_PENDING);
    noria_future* next = acquire(semaphore, 2);
    NORIA_OK_CALL(noria_semaphore_release(semaphore, 2));
    cr_assert_eq(waker.wakes(), 1);
    cr_assert(!ready(next));
    NORIA_OK_CALL(noria_waiter_drop(&waiter));
    cr_assert(ready(next), "the grant of a waiter that goes passes on");
    cr_assert_eq(lane.await(next), NORIA_OK);
    for (std::uintptr_t word : waiter.words) cr_assert_eq(word, 0);
    cr_assert_eq(available(semaphore), 0);
    NORIA_OK_CALL(noria_semaphore_drop(semaphore));
  });
}

Test(Semaphore, Poll_form_waits_with_the_last_waker_and_is_granted_once) {
  on_each_runtime([](Lane& lane) {
    noria_semaphore* semaphore = make(lane.rt, 0);
    noria_waiter waiter{};
    ForeignWaker first, second;
    NORIA_STATUS(noria_semaphore_poll_acquire(semaphore, 1, first.cx(), &waiter), NORIA_PENDING);
    NORIA_STATUS(noria_semaphore_poll_acquire(semaphore, 1, first.cx(), &waiter), NORIA_PENDING);
    cr_assert_eq(first.clones(), 1, "the same waker is not cloned again");
    NORIA_STATUS(noria_semaphore_poll_acquire(semaphore, 1, second.cx(), &waiter), NORIA_PENDING);
    cr_assert_eq(first.alive(), 0);
    NORIA_OK_CALL(noria_semaphore_release(semaphore, 1));
    cr_assert_eq(first.wakes(), 0);
    cr_assert_eq(second.wakes(), 1);
    NORIA_STATUS(noria_semaphore_poll_acquire(semaphore, 1, second.cx(), &waiter), NORIA_READY);
    NORIA_STATUS(noria_semaphore_poll_acquire(semaphore, 1, second.cx(), &waiter), NORIA_PENDING);
    NORIA_OK_CALL(noria_waiter_drop(&waiter));
    NORIA_OK_CALL(noria_semaphore_drop(semaphore));
  });
}

Test(Semaphore, Close_ends_who_waits_and_who_comes_later) {
  on_each_runtime([](Lane& lane) {
    noria_semaphore* semaphore = make(lane.rt, 0);
    noria_waiter waiter{};
    ForeignWaker waker;
    NORIA_STATUS(noria_semaphore_poll_acquire(semaphore, 1, waker.cx(), &waiter), NORIA_PENDING);
    std::vector<noria_future*> futures;
    for (int i = 0; i < 100; ++i) futures.push_back(acquire(semaphore, 1));
    NORIA_OK_CALL(noria_semaphore_close(semaphore));
    cr_assert_eq(waker.wakes(), 1);
    NORIA_STATUS(noria_semaphore_poll_acquire(semaphore, 1, waker.cx(), &waiter), -NORIA_ECLOSED);
    for (noria_future* future : futures) cr_assert_eq(lane.await(future), -NORIA_ECLOSED);
    NORIA_STATUS(noria_semaphore_try_acquire(semaphore, 1), -NORIA_ECLOSED);
    NORIA_STATUS(noria_semaphore_poll_acquire(semaphore, 1, waker.cx(), &waiter), -NORIA_ECLOSED);
    cr_assert_eq(lane.await(acquire(semaphore, 1)), -NORIA_ECLOSED);
    NORIA_OK_CALL(noria_semaphore_release(semaphore, 1));
    cr_assert_eq(available(semaphore), 1, "releasing goes on");
    NORIA_OK_CALL(noria_semaphore_drop(semaphore));
  });
}

Test(Semaphore, Futures_outlive_the_handle) {
  on_each_runtime([](Lane& lane) {
    noria_semaphore* semaphore = make(lane.rt, 1);
    noria_future* granted = acquire(semaphore, 1);
    noria_future* waits = acquire(semaphore, 1);
    NORIA_OK_CALL(noria_semaphore_drop(semaphore));
    cr_assert_eq(lane.await(waits), -NORIA_ECLOSED);
    NORIA_OK_CALL(noria_future_drop(granted));
  });
}

Test(Semaphore, Cancelled_future_gets_nothing) {
  on_each_runtime([](Lane& lane) {
    noria_semaphore* semaphore = make(lane.rt, 0);
    noria_future* future = acquire(semaphore, 1);
    NORIA_OK_CALL(noria_future_cancel(future));
    NORIA_OK_CALL(noria_future_cancel(future));
    cr_assert_eq(lane.await(future), -ECANCELED);
    NORIA_OK_CALL(noria_semaphore_release(semaphore, 1));
    cr_assert_eq(available(semaphore), 1);
    future = acquire(semaphore, 1);
    NORIA_OK_CALL(noria_future_cancel(future));
    cr_assert_eq(lane.await(future), NORIA_OK, "too late: it was ready");
    NORIA_OK_CALL(noria_semaphore_drop(semaphore));
  });
}

Test(Semaphore, Release_of_many_serves_more_than_one_batch) {
  on_each_runtime([](Lane& lane) {
    noria_semaphore* semaphore = make(lane.rt, 0);
    std::vector<noria_future*> futures;
    for (int i = 0; i < 200; ++i) futures.push_back(acquire(semaphore, 1));
    for (int i = 1; i < 200; i += 2) NORIA_OK_CALL(noria_future_cancel(futures[static_cast<std::size_t>(i)]));
    NORIA_OK_CALL(noria_semaphore_release(semaphore, 100));
    for (std::size_t i = 0; i < 200; ++i) cr_assert_eq(lane.await(futures[i]), i % 2 == 0 ? NORIA_OK : -ECANCELED);
    cr_assert_eq(available(semaphore), 0);
    NORIA_OK_CALL(noria_semaphore_drop(semaphore));
  });
}

Test(Semaphore, Release_while_a_waker_is_left_is_seen) {
  on_each_runtime([](Lane& lane) {
    noria_semaphore* semaphore = make(lane.rt, 0);
    noria_waiter waiter{};
    CloneWaker releases([&] { NORIA_OK_CALL(noria_semaphore_release(semaphore, 1)); });
    NORIA_STATUS(noria_semaphore_poll_acquire(semaphore, 1, releases.cx(), &waiter), NORIA_READY);
    // And where it is queued already and changes its waker.
    ForeignWaker first;
    NORIA_STATUS(noria_semaphore_poll_acquire(semaphore, 1, first.cx(), &waiter), NORIA_PENDING);
    NORIA_STATUS(noria_semaphore_poll_acquire(semaphore, 1, releases.cx(), &waiter), NORIA_READY);
    cr_assert_eq(first.wakes(), 1);
    CloneWaker closes([&] { NORIA_OK_CALL(noria_semaphore_close(semaphore)); });
    NORIA_STATUS(noria_semaphore_poll_acquire(semaphore, 1, closes.cx(), &waiter), -NORIA_ECLOSED);
    NORIA_OK_CALL(noria_semaphore_drop(semaphore));
  });
}

Test(Semaphore, Foreign_waker_may_call_back) {
  on_each_runtime([](Lane& lane) {
    noria_semaphore* semaphore = make(lane.rt, 0);
    noria_waiter waiter{};
    noria_future* other = nullptr;
    ForeignWaker waker([&] {
      NORIA_STATUS(noria_semaphore_try_acquire(semaphore, 1), -EAGAIN);
      NORIA_OK_CALL(noria_semaphore_release(semaphore, 1));
      other = acquire(semaphore, 1);
    });
    NORIA_STATUS(noria_semaphore_poll_acquire(semaphore, 1, waker.cx(), &waiter), NORIA_PENDING);
    NORIA_OK_CALL(noria_semaphore_release(semaphore, 1));
    cr_assert_eq(waker.wakes(), 1);
    NORIA_STATUS(noria_semaphore_poll_acquire(semaphore, 1, waker.cx(), &waiter), NORIA_READY);
    cr_assert_eq(lane.await(other), NORIA_OK);
    NORIA_OK_CALL(noria_semaphore_drop(semaphore));
  });
}

Test(Semaphore, Tasks_exclude_each_other) {
  on_each_runtime([](Lane& lane) {
    noria_semaphore* semaphore = make(lane.rt, 1);
    struct Turn {
      noria_semaphore* semaphore;
      int* inside;
      int* total;
      int left = 200;
      bool held = false;
      noria_waiter waiter{};
      int32_t operator()(const noria_cx* cx) {
        while (left > 0) {
          if (!held) {
            int32_t status = noria_semaphore_poll_acquire(semaphore, 1, cx, &waiter);
            if (status != NORIA_READY) return status;
            held = true;
            NORIA_CHECK((*inside)++ == 0, "two tasks hold the one permit");
            return noria_yield(cx);
          }
          --*inside;
          ++*total;
          --left;
          held = false;
          NORIA_OK_CALL(noria_semaphore_release(semaphore, 1));
        }
        return NORIA_READY;
      }
    };
    int inside = 0, total = 0;
    std::vector<noria_task*> tasks;
    for (int i = 0; i < 8; ++i) tasks.push_back(spawn(lane.rt, Turn{semaphore, &inside, &total}));
    for (noria_task* task : tasks) cr_assert_eq(lane.join(task).kind, NORIA_JOIN_DONE);
    cr_assert_eq(total, 1600);
    cr_assert_eq(available(semaphore), 1);
    NORIA_OK_CALL(noria_semaphore_drop(semaphore));
  });
}

Test(Semaphore, Cancel_and_release_on_two_threads_lose_no_permit) {
  on_each_runtime([](Lane& lane) {
    noria_semaphore* semaphore = make(lane.rt, 0);
    for (int round = 0; round < rounds(1000, 100'000); ++round) {
      noria_future* first = acquire(semaphore, 1);
      noria_future* second = acquire(semaphore, 1);
      std::thread canceller([&] { NORIA_OK_CALL(noria_future_cancel(first)); });
      NORIA_OK_CALL(noria_semaphore_release(semaphore, 1));
      canceller.join();
      int32_t one = noria_future_result(first, nullptr, 0);
      int32_t two = noria_future_result(second, nullptr, 0);
      NORIA_CHECK((one == NORIA_OK && two == -EAGAIN) || (one == -ECANCELED && two == NORIA_OK),
                  "one permit, one taker: %d %d", one, two);
      NORIA_OK_CALL(noria_future_drop(first));
      NORIA_OK_CALL(noria_future_drop(second));
      cr_assert_eq(available(semaphore), 0);
    }
    NORIA_OK_CALL(noria_semaphore_drop(semaphore));
  });
}

Test(Semaphore, Misuse_is_told) {
  on_each_runtime([](Lane& lane) {
    constexpr std::uint64_t kMost = UINT64_MAX >> 2;
    noria_semaphore *semaphore = make(lane.rt, 0), *none = nullptr;
    noria_future* future = nullptr;
    noria_waiter waiter{};
    ForeignWaker waker;
    std::uint64_t count = 0;
    NORIA_STATUS(noria_semaphore_new(lane.rt, 1, nullptr), -EINVAL);
    NORIA_STATUS(noria_semaphore_new(lane.rt, kMost + 1, &none), -EINVAL);
    NORIA_STATUS(noria_semaphore_new(nullptr, 1, &none), -NORIA_ENOCONTEXT);
    NORIA_STATUS(noria_semaphore_try_acquire(nullptr, 1), -EINVAL);
    NORIA_STATUS(noria_semaphore_try_acquire(semaphore, kMost + 1), -EINVAL);
    NORIA_STATUS(noria_semaphore_poll_acquire(nullptr, 1, waker.cx(), &waiter), -EINVAL);
    NORIA_STATUS(noria_semaphore_poll_acquire(semaphore, 1, nullptr, &waiter), -EINVAL);
    NORIA_STATUS(noria_semaphore_poll_acquire(semaphore, 1, waker.cx(), nullptr), -EINVAL);
    NORIA_STATUS(noria_semaphore_acquire(nullptr, 1, &future), -EINVAL);
    NORIA_STATUS(noria_semaphore_acquire(semaphore, 1, nullptr), -EINVAL);
    NORIA_STATUS(noria_semaphore_release(nullptr, 1), -EINVAL);
    NORIA_STATUS(noria_semaphore_available(nullptr, &count), -EINVAL);
    NORIA_STATUS(noria_semaphore_available(semaphore, nullptr), -EINVAL);
    NORIA_STATUS(noria_semaphore_close(nullptr), -EINVAL);
    NORIA_STATUS(noria_semaphore_drop(nullptr), -EINVAL);
    NORIA_STATUS(noria_waiter_drop(nullptr), -EINVAL);
    NORIA_OK_CALL(noria_waiter_drop(&waiter));
    // A waiter that stands in one queue is refused by another.
    NORIA_STATUS(noria_semaphore_poll_acquire(semaphore, 1, waker.cx(), &waiter), NORIA_PENDING);
    none = make(lane.rt, 1);
    NORIA_STATUS(noria_semaphore_poll_acquire(none, 1, waker.cx(), &waiter), -EINVAL);
    NORIA_OK_CALL(noria_waiter_drop(&waiter));
    NORIA_OK_CALL(noria_semaphore_drop(none));
    NORIA_OK_CALL(noria_semaphore_drop(semaphore));
  });
}

Test(Semaphore, Shutdown_cancels_who_waits) {
  Lane lane = kTwoWorkers;
  noria_runtime_options options = lane_options(lane);
  assert_ok(noria_runtime_new(&options, &lane.rt), "runtime_new");
  noria_semaphore* semaphore = make(lane.rt, 0);
  noria_future *future = acquire(semaphore, 1), *late = nullptr;
  assert_ok(noria_runtime_shutdown(lane.rt, kSecond, nullptr), "shutdown");
  NORIA_STATUS(noria_future_result(future, nullptr, 0), -ECANCELED);
  NORIA_STATUS(noria_semaphore_acquire(semaphore, 1, &late), -NORIA_ESHUTDOWN);
  NORIA_OK_CALL(noria_semaphore_release(semaphore, 1));
  NORIA_OK_CALL(noria_semaphore_try_acquire(semaphore, 1));
  NORIA_OK_CALL(noria_future_drop(future));
  NORIA_OK_CALL(noria_semaphore_drop(semaphore));
  assert_ok(noria_runtime_release(lane.rt), "release");
  assert_nothing_alive("shutdown");
}
