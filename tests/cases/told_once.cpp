// What a future has told its owner is the owner's, whichever way it was asked: nothing is given back or told twice.
#include <criterion/criterion.h>

#include <cerrno>

#include "support/runtime_fixture.hpp"

using namespace noria::test;

namespace {

noria_future* timeout(noria_runtime* rt, noria_future* inner) {
  noria_future* future = nullptr;
  assert_ok(noria_timeout(rt, inner, NORIA_FOREVER, &future), "timeout");
  return future;
}

std::uint64_t available(noria_semaphore* semaphore) {
  std::uint64_t count = 0;
  assert_ok(noria_semaphore_available(semaphore, &count), "available");
  return count;
}

}  // namespace

Test(ToldOnce, Permit_behind_a_timeout_is_the_takers) {
  on_each_runtime([](Lane& lane) {
    for (int height = 0; height < 3; ++height) {
      noria_semaphore* semaphore = nullptr;
      noria_future* future = nullptr;
      NORIA_OK_CALL(noria_semaphore_new(lane.rt, 1, &semaphore));
      NORIA_OK_CALL(noria_semaphore_acquire(semaphore, 1, &future));
      for (int i = 0; i < height; ++i) future = timeout(lane.rt, future);
      NORIA_OK_CALL(lane.await(future));
      cr_assert_eq(available(semaphore), 0, "the permit is the taker's, behind %d time-outs too", height);
      NORIA_OK_CALL(noria_semaphore_release(semaphore, 1));
      NORIA_OK_CALL(noria_semaphore_acquire(semaphore, 1, &future));
      for (int i = 0; i < height; ++i) future = timeout(lane.rt, future);
      NORIA_OK_CALL(noria_future_drop(future));
      cr_assert_eq(available(semaphore), 1, "a grant that was not told comes back");
      NORIA_OK_CALL(noria_semaphore_drop(semaphore));
    }
  });
}

// Not when the wheel lets go of the timer, for which an idle runtime has no reason to wake up.
Test(ToldOnce, Permit_of_a_timeout_that_is_dropped_comes_back_at_once) {
  on_each_runtime([](Lane& lane) {
    noria_semaphore* semaphore = nullptr;
    noria_future* future = nullptr;
    NORIA_OK_CALL(noria_semaphore_new(lane.rt, 0, &semaphore));
    NORIA_OK_CALL(noria_semaphore_acquire(semaphore, 1, &future));
    NORIA_OK_CALL(noria_timeout(lane.rt, future, 3600 * kSecond, &future));
    NORIA_OK_CALL(noria_semaphore_release(semaphore, 1));
    NORIA_OK_CALL(noria_future_drop(future));
    cr_assert_eq(available(semaphore), 1);
    NORIA_OK_CALL(noria_semaphore_drop(semaphore));
  });
}

Test(ToldOnce, Notification_behind_a_timeout_is_told_once) {
  on_each_runtime([](Lane& lane) {
    noria_notify* notify = nullptr;
    noria_future *first = nullptr, *second = nullptr;
    NORIA_OK_CALL(noria_notify_new(lane.rt, &notify));
    NORIA_OK_CALL(noria_notify_wait(notify, &first));
    NORIA_OK_CALL(noria_notify_wait(notify, &second));
    first = timeout(lane.rt, first);
    NORIA_OK_CALL(noria_notify_one(notify));
    NORIA_OK_CALL(lane.await(first));
    NORIA_STATUS(noria_future_result(second, nullptr, 0), -EAGAIN);
    NORIA_OK_CALL(noria_future_drop(second));
    NORIA_OK_CALL(noria_notify_drop(notify));
  });
}

Test(ToldOnce, Permit_of_a_joined_future_goes_with_its_own_result) {
  on_each_runtime([](Lane& lane) {
    noria_semaphore* semaphore = nullptr;
    noria_future *futures[2] = {}, *all = nullptr;
    NORIA_OK_CALL(noria_semaphore_new(lane.rt, 2, &semaphore));
    for (noria_future*& each : futures) NORIA_OK_CALL(noria_semaphore_acquire(semaphore, 1, &each));
    NORIA_OK_CALL(noria_join_all(lane.rt, futures, 2, &all));
    NORIA_OK_CALL(noria_future_result(all, nullptr, 0));
    NORIA_OK_CALL(noria_join_all_result(all, 1, nullptr, 0));
    NORIA_OK_CALL(noria_future_drop(all));
    cr_assert_eq(available(semaphore), 1, "one was told, the other comes back");
    NORIA_OK_CALL(noria_semaphore_drop(semaphore));
  });
}

Test(ToldOnce, Joined_futures_behind_a_timeout_tell_what_each_has_done) {
  on_each_runtime([](Lane& lane) {
    noria_semaphore* semaphore = nullptr;
    noria_future *futures[2] = {}, *all = nullptr;
    NORIA_OK_CALL(noria_semaphore_new(lane.rt, 1, &semaphore));
    for (noria_future*& each : futures) NORIA_OK_CALL(noria_semaphore_acquire(semaphore, 1, &each));
    NORIA_OK_CALL(noria_join_all(lane.rt, futures, 2, &all));
    NORIA_OK_CALL(noria_timeout(lane.rt, all, kMilli, &all));
    NORIA_OK_CALL(lane.run([&](const noria_cx* cx) { return noria_future_poll(all, cx); }));
    NORIA_STATUS(noria_future_result(all, nullptr, 0), -ETIMEDOUT);
    NORIA_OK_CALL(noria_join_all_result(all, 0, nullptr, 0));
    NORIA_STATUS(noria_join_all_result(all, 1, nullptr, 0), -ECANCELED);
    NORIA_OK_CALL(noria_future_drop(all));
    cr_assert_eq(available(semaphore), 0, "the one that was told is the taker's");
    NORIA_OK_CALL(noria_semaphore_drop(semaphore));
  });
}

Test(ToldOnce, Tick_whose_instant_is_not_wanted_does_not_come_again) {
  on_each_runtime([](Lane& lane) {
    NORIA_OK_CALL(noria_clock_pause(lane.rt));
    for (bool within_timeout : {false, true}) {
      noria_interval* interval = nullptr;
      noria_future *first = nullptr, *second = nullptr;
      std::uint64_t begin = 0, instant = 0;
      NORIA_OK_CALL(noria_now(lane.rt, &begin));
      NORIA_OK_CALL(noria_interval_new(lane.rt, begin + kSecond, kSecond, NORIA_MISSED_BURST, &interval));
      NORIA_OK_CALL(noria_interval_tick(interval, &first));
      if (within_timeout) first = timeout(lane.rt, first);
      NORIA_OK_CALL(lane.run([&](const noria_cx* cx) { return noria_future_poll(first, cx); }));
      NORIA_OK_CALL(noria_future_result(first, nullptr, 0));
      NORIA_OK_CALL(noria_interval_tick(interval, &second));
      NORIA_OK_CALL(lane.await(second, &instant, sizeof instant));
      cr_assert_eq(instant, begin + 2 * kSecond);
      NORIA_OK_CALL(noria_future_drop(first));
      NORIA_OK_CALL(noria_interval_drop(interval));
    }
  });
}
