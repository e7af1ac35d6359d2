// A10: the budget of a poll: what takes of it, what gives back, and who is exempt.
#include <criterion/criterion.h>

#include <cerrno>

#include "support/pending.hpp"

using namespace noria::test;

namespace {

// Runs a body as one poll of a task, and lets that be the only one.
template <typename Body>
void in_one_poll(Lane& lane, Body body) {
  lane.join(spawn(lane.rt, [body, polls = 0](const noria_cx* cx) mutable -> int32_t {
    if (polls++ == 0) body(cx);
    return NORIA_READY;
  }));
}

int units_left(const noria_cx* cx) {
  int units = 0;
  while (noria_budget_poll(cx) == NORIA_READY) ++units;
  return units;
}

}  // namespace

Test(Budget, A10_poll_has_128_units_and_its_end_is_pending_flagged_and_woken) {
  on_each_runtime([](Lane& lane) {
    int polls = 0, units[3] = {0, 0, 0};
    lane.join(spawn(lane.rt, [&](const noria_cx* cx) -> int32_t {
      NORIA_STATUS(noria_budget_spent(), 0);
      if (polls == 3) return NORIA_READY;
      units[polls++] = units_left(cx);
      NORIA_STATUS(noria_budget_spent(), 1);
      return NORIA_PENDING;  // the wake was arranged
    }));
    for (int each : units) cr_assert_eq(each, 128);
  });
}

Test(Budget, A10_ready_takes_a_unit_and_pending_gives_it_back) {
  on_each_runtime([](Lane& lane) {
    Pending ready(lane.rt), pending(lane.rt);
    ready.complete();
    in_one_poll(lane, [&](const noria_cx* cx) {
      for (int i = 0; i < 1000; ++i) {
        NORIA_STATUS(noria_future_poll(pending.future, cx), NORIA_PENDING);
        NORIA_STATUS(noria_budget_spent(), 0);
      }
      for (int i = 0; i < 28; ++i) NORIA_STATUS(noria_future_poll(ready.future, cx), NORIA_READY);
      NORIA_CHECK(units_left(cx) == 100, "READY takes one unit, PENDING none");
      NORIA_STATUS(noria_future_poll(ready.future, cx), NORIA_PENDING);
      NORIA_STATUS(noria_budget_spent(), 1);
    });
    for (noria_future* future : {ready.future, pending.future}) NORIA_OK_CALL(noria_future_drop(future));
  });
}

Test(Budget, A10_try_forms_are_exempt) {
  on_each_runtime([](Lane& lane) {
    noria_semaphore* semaphore = nullptr;
    noria_oneshot_sender* tx = nullptr;
    noria_oneshot_receiver* rx = nullptr;
    NORIA_OK_CALL(noria_semaphore_new(lane.rt, 1000, &semaphore));
    NORIA_OK_CALL(noria_oneshot_new(lane.rt, nullptr, &tx, &rx));
    in_one_poll(lane, [&](const noria_cx* cx) {
      void* value = nullptr;
      for (int i = 0; i < 500; ++i) NORIA_OK_CALL(noria_semaphore_try_acquire(semaphore, 1));
      NORIA_CHECK(units_left(cx) == 128, "they take none");
      for (int i = 0; i < 500; ++i) NORIA_OK_CALL(noria_semaphore_try_acquire(semaphore, 1));
      NORIA_STATUS(noria_oneshot_try_receive(rx, &value), -EAGAIN);
    });
    NORIA_OK_CALL(noria_oneshot_sender_drop(tx));
    NORIA_OK_CALL(noria_oneshot_receiver_drop(rx));
    NORIA_OK_CALL(noria_semaphore_drop(semaphore));
  });
}

Test(Budget, A10_threads_outside_are_exempt) {
  on_each_runtime([](Lane& lane) {
    Pending ready(lane.rt);
    ForeignWaker waker;
    ready.complete();
    for (int i = 0; i < 1000; ++i) {
      NORIA_STATUS(noria_future_poll(ready.future, waker.cx()), NORIA_READY);
      NORIA_STATUS(noria_budget_poll(waker.cx()), NORIA_READY);
    }
    NORIA_STATUS(noria_budget_spent(), 0);
    cr_assert_eq(waker.wakes(), 0);
    NORIA_OK_CALL(noria_future_drop(ready.future));
  });
}
