// Tasks on every kind of runtime: how they are polled, woken and joined.
#include <criterion/criterion.h>

#include "support/runtime_fixture.hpp"

using namespace noria::test;

Test(Task, Task_that_yields_is_polled_again) {
  on_each_runtime([](Lane& lane) {
    int polls = 0;
    noria_task* task = spawn(lane.rt, [&](const noria_cx* cx) -> int32_t {
      if (++polls < 3) return noria_yield(cx);
      return NORIA_READY;
    });
    noria_join_result how = lane.join(task);
    cr_assert_eq(how.kind, NORIA_JOIN_DONE);
    cr_assert_eq(polls, 3);
  });
}

Test(Task, Task_that_answers_an_error_is_joined_as_failed_with_it) {
  on_each_runtime([](Lane& lane) {
    noria_join_result how = lane.join(spawn(lane.rt, [](const noria_cx*) -> int32_t { return -EIO; }));
    cr_assert_eq(how.kind, NORIA_JOIN_FAILED);
    cr_assert_eq(how.error, -EIO);
  });
}

Test(Task, Wake_from_another_thread_leads_to_a_poll) {
  on_each_runtime([](Lane& lane) {
    KeptWaker kept;
    Latch waits;
    std::atomic<bool> woken{false};
    noria_task* task = spawn(lane.rt, [&](const noria_cx* cx) -> int32_t {
      if (woken) return NORIA_READY;
      kept.keep(cx);
      waits.count_down();
      return NORIA_PENDING;
    });
    lane.wait(waits, "the first poll");
    std::thread waker([&] {
      woken = true;
      kept.wake();
    });
    lane.join(task);
    waker.join();
  });
}
