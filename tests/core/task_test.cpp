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

// The poll lends its waker to a thread that clones and drops it, and wakes itself meanwhile: neither may undo what the other does to
// the task's word.
Test(Task, P2_wake_of_itself_beside_clones_of_its_waker_on_another_thread_loses_no_reference) {
  on_each_runtime([](Lane& lane) {
    std::atomic<int> polls{0};
    std::atomic<bool> over{false};
    spawn_detached(lane.rt, [&](const noria_cx* cx) -> int32_t {
      std::atomic<bool> end{false};
      std::atomic<int> turns{0};
      std::thread borrower([&] {
        while (!end) {
          noria_waker clone;
          assert_ok(noria_waker_clone(cx->waker, &clone), "waker_clone");
          assert_ok(noria_waker_drop(&clone), "waker_drop");
          ++turns;
        }
      });
      do {
        assert_ok(noria_waker_wake_by_ref(cx->waker), "waker_wake_by_ref");
      } while (turns < rounds(2000, 100'000));
      end = true;
      borrower.join();
      over = ++polls == 5;
      return over ? NORIA_READY : NORIA_PENDING;
    });
    lane.until([&] { return over.load(); }, "the polls");
  });
}
