// Telling one or all: in their order, once, and nothing is lost when a waiter goes.
#include <criterion/criterion.h>

#include <cerrno>
#include <thread>
#include <vector>

#include "support/clone_waker.hpp"
#include "support/runtime_fixture.hpp"

using namespace noria::test;

namespace {

noria_notify* make(noria_runtime* rt) {
  noria_notify* notify = nullptr;
  assert_ok(noria_notify_new(rt, &notify), "notify_new");
  return notify;
}

noria_future* wait(noria_notify* notify) {
  noria_future* future = nullptr;
  assert_ok(noria_notify_wait(notify, &future), "notify_wait");
  return future;
}

bool ready(noria_future* future) { return noria_future_wait(future, 0) == NORIA_OK; }

}  // namespace

Test(Notify, Notification_that_finds_nobody_is_kept_once) {
  on_each_runtime([](Lane& lane) {
    noria_notify* notify = make(lane.rt);
    NORIA_OK_CALL(noria_notify_one(notify));
    NORIA_OK_CALL(noria_notify_one(notify));
    noria_waiter waiter{};
    ForeignWaker waker;
    NORIA_STATUS(noria_notify_poll_wait(notify, waker.cx(), &waiter), NORIA_READY);
    NORIA_STATUS(noria_notify_poll_wait(notify, waker.cx(), &waiter), NORIA_PENDING);
    NORIA_OK_CALL(noria_waiter_drop(&waiter));
    NORIA_OK_CALL(noria_notify_all(notify));
    NORIA_STATUS(noria_notify_poll_wait(notify, waker.cx(), &waiter), NORIA_PENDING);
    NORIA_OK_CALL(noria_waiter_drop(&waiter));
    cr_assert_eq(waker.alive(), 0);
    NORIA_OK_CALL(noria_notify_drop(notify));
  });
}

Test(Notify, One_wakes_the_longest_waiting) {
  on_each_runtime([](Lane& lane) {
    noria_notify* notify = make(lane.rt);
    noria_future* first = wait(notify);
    noria_future* second = wait(notify);
    NORIA_OK_CALL(noria_notify_one(notify));
    cr_assert(ready(first));
    cr_assert(!ready(second));
    NORIA_OK_CALL(noria_notify_one(notify));
    cr_assert_eq(lane.await(first), NORIA_OK);
    cr_assert_eq(lane.await(second), NORIA_OK);
    noria_future* third = wait(notify);
    cr_assert(!ready(third), "nothing was kept");
    NORIA_OK_CALL(noria_future_drop(third));
    NORIA_OK_CALL(noria_notify_drop(notify));
  });
}

Test(Notify, All_wakes_everyone_who_waits_and_nobody_who_comes_later) {
  on_each_runtime([](Lane& lane) {
    noria_notify* notify = make(lane.rt);
    std::vector<noria_future*> futures;
    for (int i = 0; i < 100; ++i) futures.push_back(wait(notify));
    noria_waiter waiter{};
    noria_future* later = nullptr;
    ForeignWaker waker([&] {
      if (later == nullptr) later = wait(notify);
    });
    NORIA_STATUS(noria_notify_poll_wait(notify, waker.cx(), &waiter), NORIA_PENDING);
    for (int i = 0; i < 100; ++i) futures.push_back(wait(notify));
    NORIA_OK_CALL(noria_notify_all(notify));
    for (noria_future* future : futures) cr_assert_eq(lane.await(future), NORIA_OK);
    NORIA_STATUS(noria_notify_poll_wait(notify, waker.cx(), &waiter), NORIA_READY);
    cr_assert(!ready(later), "it came while everyone was told");
    NORIA_OK_CALL(noria_notify_one(notify));
    cr_assert_eq(lane.await(later), NORIA_OK);
    NORIA_OK_CALL(noria_notify_drop(notify));
  });
}

Test(Notify, Notification_of_a_waiter_that_goes_passes_on) {
  on_each_runtime([](Lane& lane) {
    noria_notify* notify = make(lane.rt);
    noria_future* first = wait(notify);
    noria_future* second = wait(notify);
    NORIA_OK_CALL(noria_notify_one(notify));
    NORIA_OK_CALL(noria_future_drop(first));
    cr_assert(ready(second));
    NORIA_OK_CALL(noria_future_drop(second));
    noria_waiter waiter{};
    ForeignWaker waker;
    NORIA_STATUS(noria_notify_poll_wait(notify, waker.cx(), &waiter), NORIA_READY);
    NORIA_STATUS(noria_notify_poll_wait(notify, waker.cx(), &waiter), NORIA_PENDING);
    NORIA_OK_CALL(noria_notify_one(notify));
    NORIA_OK_CALL(noria_waiter_drop(&waiter));
    cr_assert_eq(lane.await(wait(notify)), NORIA_OK, "P8: it is kept for the next");
    // One that was told together with all the others has nothing to pass on.
    first = wait(notify);
    NORIA_OK_CALL(noria_notify_all(notify));
    NORIA_OK_CALL(noria_future_drop(first));
    first = wait(notify);
    cr_assert(!ready(first));
    NORIA_OK_CALL(noria_future_drop(first));
    NORIA_OK_CALL(noria_notify_drop(notify));
  });
}

Test(Notify, Cancelled_waiters_are_passed_over) {
  on_each_runtime([](Lane& lane) {
    noria_notify* notify = make(lane.rt);
    std::vector<noria_future*> futures;
    for (int i = 0; i < 100; ++i) futures.push_back(wait(notify));
    for (int i = 0; i < 99; ++i) NORIA_OK_CALL(noria_future_cancel(futures[static_cast<std::size_t>(i)]));
    NORIA_OK_CALL(noria_notify_one(notify));
    for (std::size_t i = 0; i < 100; ++i) cr_assert_eq(lane.await(futures[i]), i == 99 ? NORIA_OK : -ECANCELED);
    NORIA_OK_CALL(noria_notify_drop(notify));
  });
}

Test(Notify, Notification_while_a_waker_is_left_is_seen) {
  on_each_runtime([](Lane& lane) {
    noria_notify* notify = make(lane.rt);
    noria_waiter waiter{};
    CloneWaker tells([&] { NORIA_OK_CALL(noria_notify_one(notify)); });
    NORIA_STATUS(noria_notify_poll_wait(notify, tells.cx(), &waiter), NORIA_READY);
    ForeignWaker first;
    NORIA_STATUS(noria_notify_poll_wait(notify, first.cx(), &waiter), NORIA_PENDING);
    NORIA_STATUS(noria_notify_poll_wait(notify, tells.cx(), &waiter), NORIA_READY);
    NORIA_OK_CALL(noria_notify_drop(notify));
  });
}

Test(Notify, Drop_ends_who_waits) {
  on_each_runtime([](Lane& lane) {
    noria_notify* notify = make(lane.rt);
    noria_future* future = wait(notify);
    noria_future* told = wait(notify);
    NORIA_OK_CALL(noria_future_cancel(future));
    NORIA_OK_CALL(noria_notify_one(notify));
    noria_future* waits = wait(notify);
    NORIA_OK_CALL(noria_notify_drop(notify));
    cr_assert_eq(lane.await(future), -ECANCELED);
    cr_assert_eq(lane.await(waits), -NORIA_ECLOSED);
    NORIA_OK_CALL(noria_future_drop(told));
  });
}

Test(Notify, Tasks_on_all_workers_are_each_told_once) {
  on_each_runtime([](Lane& lane) {
    noria_notify* notify = make(lane.rt);
    std::atomic<int> told{0};
    constexpr int kTasks = 200;
    struct Waits {
      noria_notify* notify;
      std::atomic<int>* told;
      noria_waiter waiter{};
      int32_t operator()(const noria_cx* cx) {
        int32_t status = noria_notify_poll_wait(notify, cx, &waiter);
        if (status != NORIA_READY) return status;
        // Passes the baton on: a chain that breaks if one notification is lost.
        ++*told;
        return noria_notify_one(notify);
      }
    };
    std::vector<noria_task*> tasks;
    for (int i = 0; i < kTasks; ++i) tasks.push_back(spawn(lane.rt, Waits{notify, &told}));
    NORIA_OK_CALL(noria_notify_one(notify));
    for (noria_task* task : tasks) cr_assert_eq(lane.join(task).kind, NORIA_JOIN_DONE);
    cr_assert_eq(told, kTasks);
    NORIA_OK_CALL(noria_notify_drop(notify));
  });
}

Test(Notify, Drop_and_notify_on_two_threads_lose_no_notification) {
  on_each_runtime([](Lane& lane) {
    noria_notify* notify = make(lane.rt);
    for (int round = 0; round < rounds(1000, 100'000); ++round) {
      noria_future* first = wait(notify);
      noria_future* second = wait(notify);
      std::thread dropper([&] { NORIA_OK_CALL(noria_future_drop(first)); });
      NORIA_OK_CALL(noria_notify_one(notify));
      dropper.join();
      cr_assert(ready(second), "the first was dropped without its result");
      NORIA_OK_CALL(noria_future_result(second, nullptr, 0));
      NORIA_OK_CALL(noria_future_drop(second));
    }
    NORIA_OK_CALL(noria_notify_drop(notify));
  });
}

Test(Notify, Misuse_is_told) {
  on_each_runtime([](Lane& lane) {
    noria_notify *notify = make(lane.rt), *none = nullptr;
    noria_future* future = nullptr;
    noria_waiter waiter{};
    ForeignWaker waker;
    NORIA_STATUS(noria_notify_new(lane.rt, nullptr), -EINVAL);
    NORIA_STATUS(noria_notify_new(nullptr, &none), -NORIA_ENOCONTEXT);
    NORIA_STATUS(noria_notify_poll_wait(nullptr, waker.cx(), &waiter), -EINVAL);
    NORIA_STATUS(noria_notify_poll_wait(notify, nullptr, &waiter), -EINVAL);
    NORIA_STATUS(noria_notify_poll_wait(notify, waker.cx(), nullptr), -EINVAL);
    NORIA_STATUS(noria_notify_wait(nullptr, &future), -EINVAL);
    NORIA_STATUS(noria_notify_wait(notify, nullptr), -EINVAL);
    NORIA_STATUS(noria_notify_one(nullptr), -EINVAL);
    NORIA_STATUS(noria_notify_all(nullptr), -EINVAL);
    NORIA_STATUS(noria_notify_drop(nullptr), -EINVAL);
    NORIA_OK_CALL(noria_notify_drop(notify));
  });
}
