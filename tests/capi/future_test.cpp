// A6, the one noun: polling, being told, waiting, results, cancelling and dropping, whatever the operation is.
#include <criterion/criterion.h>

#include <cerrno>
#include <thread>

#include "support/clone_waker.hpp"
#include "support/pending.hpp"

using namespace noria::test;

Test(Future, A6_last_waker_wins_and_is_woken_once) {
  on_each_runtime([](Lane& lane) {
    Pending pending(lane.rt);
    ForeignWaker first, second;
    NORIA_STATUS(noria_future_poll(pending.future, first.cx()), NORIA_PENDING);
    NORIA_STATUS(noria_future_poll(pending.future, first.cx()), NORIA_PENDING);
    cr_assert_eq(first.clones(), 1, "the same waker is not cloned again");
    NORIA_STATUS(noria_future_on_ready(pending.future, second.waker()), NORIA_PENDING);
    cr_assert_eq(first.alive(), 0);
    pending.complete();
    cr_assert_eq(first.wakes(), 0);
    cr_assert_eq(second.wakes(), 1);
    NORIA_STATUS(noria_future_on_ready(pending.future, first.waker()), NORIA_READY);
    NORIA_STATUS(noria_future_poll(pending.future, first.cx()), NORIA_READY);
    cr_assert_eq(first.wakes(), 0, "on_ready never wakes inline");
    NORIA_OK_CALL(noria_future_drop(pending.future));
  });
}

Test(Future, A6_result_passes_once) {
  on_each_runtime([](Lane& lane) {
    Pending pending(lane.rt);
    int value = 0;
    void* got = nullptr;
    NORIA_STATUS(noria_future_result(pending.future, &got, sizeof got), -EAGAIN);
    pending.complete(&value);
    NORIA_STATUS(noria_future_result(pending.future, &got, 1), -EINVAL);
    NORIA_STATUS(noria_future_result(pending.future, nullptr, sizeof got), -EINVAL);
    NORIA_STATUS(noria_future_result(pending.future, &got, 0), -EINVAL);
    NORIA_OK_CALL(noria_future_result(pending.future, &got, sizeof got));
    cr_assert_eq(got, &value);
    NORIA_STATUS(noria_future_result(pending.future, &got, sizeof got), -NORIA_ECONSUMED);
    NORIA_STATUS(noria_future_result(pending.future, nullptr, 0), -NORIA_ECONSUMED);
    NORIA_OK_CALL(noria_future_drop(pending.future));
  });
}

Test(Future, Drop_of_a_pending_future_drops_its_waker) {
  on_each_runtime([](Lane& lane) {
    Pending pending(lane.rt);
    ForeignWaker waker;
    NORIA_STATUS(noria_future_poll(pending.future, waker.cx()), NORIA_PENDING);
    NORIA_OK_CALL(noria_future_drop(pending.future));
    pending.complete();
    cr_assert_eq(waker.alive(), 0);
  });
}

Test(Future, Cancel_wakes_the_owner_from_any_thread_and_is_too_late_when_ready) {
  on_each_runtime([](Lane& lane) {
    Pending pending(lane.rt), done(lane.rt);
    ForeignWaker waker;
    NORIA_STATUS(noria_future_poll(pending.future, waker.cx()), NORIA_PENDING);
    std::thread([&] { NORIA_OK_CALL(noria_future_cancel(pending.future)); }).join();
    cr_assert_eq(waker.wakes(), 1);
    cr_assert_eq(lane.await(pending.future), -ECANCELED);
    done.complete();
    NORIA_OK_CALL(noria_future_cancel(done.future));
    cr_assert_eq(lane.await(done.future), NORIA_OK);
  });
}

Test(Future, Cancel_and_completion_at_once_end_it_once) {
  on_each_runtime([](Lane& lane) {
    for (int round = 0; round < rounds(1000, 50'000); ++round) {
      Pending pending(lane.rt);
      ForeignWaker waker;
      NORIA_STATUS(noria_future_poll(pending.future, waker.cx()), NORIA_PENDING);
      std::thread canceller([&] { NORIA_OK_CALL(noria_future_cancel(pending.future)); });
      pending.complete();
      canceller.join();
      cr_assert_eq(waker.wakes(), 1);
      int32_t status = noria_future_result(pending.future, nullptr, 0);
      cr_assert(status == NORIA_OK || status == -ECANCELED);
      NORIA_OK_CALL(noria_future_drop(pending.future));
    }
  });
}

Test(Future, Completion_while_a_waker_is_left_is_seen) {
  on_each_runtime([](Lane& lane) {
    for (bool replaces : {false, true}) {
      Pending polled(lane.rt), told(lane.rt);
      CloneWaker completes_polled([&] { polled.complete(); }), completes_told([&] { told.complete(); });
      ForeignWaker first;
      if (replaces) {
        NORIA_STATUS(noria_future_poll(polled.future, first.cx()), NORIA_PENDING);
        NORIA_STATUS(noria_future_on_ready(told.future, first.waker()), NORIA_PENDING);
      }
      NORIA_STATUS(noria_future_poll(polled.future, completes_polled.cx()), NORIA_READY);
      NORIA_STATUS(noria_future_on_ready(told.future, completes_told.waker()), NORIA_READY);
      NORIA_OK_CALL(noria_future_drop(polled.future));
      NORIA_OK_CALL(noria_future_drop(told.future));
    }
  });
}

Test(Future, Wait_blocks_until_ready_or_until_its_time_has_passed) {
  on_each_runtime([](Lane& lane) {
    Pending pending(lane.rt);
    NORIA_STATUS(noria_future_wait(pending.future, 0), -ETIMEDOUT);
    NORIA_STATUS(noria_future_wait(pending.future, kMilli), -ETIMEDOUT);
    std::thread other([&] { pending.complete(); });
    NORIA_OK_CALL(noria_future_wait(pending.future, NORIA_FOREVER));
    other.join();
    NORIA_OK_CALL(noria_future_wait(pending.future, 0));
    NORIA_OK_CALL(noria_future_drop(pending.future));
  });
}

Test(Future, Wait_that_gives_up_just_as_it_is_woken_is_safe) {
  on_each_runtime([](Lane& lane) {
    for (int round = 0; round < rounds(1000, 50'000); ++round) {
      Pending pending(lane.rt);
      std::thread other([&] { pending.complete(); });
      int32_t status = noria_future_wait(pending.future, static_cast<std::uint64_t>(round % 50) * 2000);
      cr_assert(status == NORIA_OK || status == -ETIMEDOUT);
      other.join();
      NORIA_OK_CALL(noria_future_wait(pending.future, NORIA_FOREVER));
      NORIA_OK_CALL(noria_future_drop(pending.future));
    }
  });
}

Test(Future, Wait_inside_a_poll_is_refused) {
  on_each_runtime([](Lane& lane) {
    Pending pending(lane.rt);
    lane.inside([&] { NORIA_STATUS(noria_future_wait(pending.future, NORIA_FOREVER), -NORIA_ENESTED); });
    int32_t status = lane.run([&](const noria_cx*) { return noria_future_wait(pending.future, NORIA_FOREVER); });
    cr_assert_eq(status, -NORIA_ENESTED);
    NORIA_OK_CALL(noria_future_drop(pending.future));
  });
}

Test(Future, Foreign_waker_may_drop_its_future_inside_the_wake) {
  on_each_runtime([](Lane& lane) {
    Pending pending(lane.rt);
    ForeignWaker waker([&] { NORIA_OK_CALL(noria_future_drop(pending.future)); });
    NORIA_STATUS(noria_future_on_ready(pending.future, waker.waker()), NORIA_PENDING);
    pending.complete();
    cr_assert_eq(waker.wakes(), 1);
  });
}

Test(Future, Ready_futures_take_budget_inside_a_task) {
  on_each_runtime([](Lane& lane) {
    Pending pending(lane.rt);
    pending.complete();
    int ready = 0;
    lane.join(spawn(lane.rt, [&, polls = 0](const noria_cx* cx) mutable -> int32_t {
      if (polls++ > 0) return NORIA_READY;
      while (noria_future_poll(pending.future, cx) == NORIA_READY) ++ready;
      NORIA_CHECK(noria_budget_spent() == 1, "PENDING came from the budget");
      return NORIA_PENDING;  // a wake was arranged
    }));
    cr_assert_eq(ready, 128, "P5: the budget of a poll");
    NORIA_OK_CALL(noria_future_drop(pending.future));
  });
}

Test(Future, Misuse_is_told) {
  on_each_runtime([](Lane& lane) {
    Pending pending(lane.rt);
    ForeignWaker waker;
    noria_waker no_vtable{};
    noria_cx no_waker{};
    noria_cx empty{&no_vtable, {0, 0, 0}};
    NORIA_STATUS(noria_future_poll(nullptr, waker.cx()), -EINVAL);
    NORIA_STATUS(noria_future_poll(pending.future, nullptr), -EINVAL);
    NORIA_STATUS(noria_future_poll(pending.future, &no_waker), -EINVAL);
    NORIA_STATUS(noria_future_poll(pending.future, &empty), -EINVAL);
    NORIA_STATUS(noria_future_on_ready(nullptr, waker.waker()), -EINVAL);
    NORIA_STATUS(noria_future_on_ready(pending.future, nullptr), -EINVAL);
    NORIA_STATUS(noria_future_on_ready(pending.future, &no_vtable), -EINVAL);
    NORIA_STATUS(noria_future_wait(nullptr, 0), -EINVAL);
    NORIA_STATUS(noria_future_result(nullptr, nullptr, 0), -EINVAL);
    NORIA_STATUS(noria_future_cancel(nullptr), -EINVAL);
    NORIA_STATUS(noria_future_drop(nullptr), -EINVAL);
    NORIA_OK_CALL(noria_future_drop(pending.future));
  });
}
