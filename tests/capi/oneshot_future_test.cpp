// The future forms of a oneshot: each side is one future's at a time, and nothing overtakes it.
#include <criterion/criterion.h>

#include <cerrno>
#include <thread>

#include "support/runtime_fixture.hpp"

using namespace noria::test;

namespace {

int g_discards = 0;

struct Ends {
  noria_oneshot_sender* tx = nullptr;
  noria_oneshot_receiver* rx = nullptr;
  explicit Ends(noria_runtime* rt) {
    assert_ok(noria_oneshot_new(
                  rt, [](void*) { ++g_discards; }, &tx, &rx),
              "oneshot_new");
  }

  noria_future* receive() {
    noria_future* future = nullptr;
    assert_ok(noria_oneshot_receive(rx, &future), "receive");
    return future;
  }
  noria_future* closed() {
    noria_future* future = nullptr;
    assert_ok(noria_oneshot_closed(tx, &future), "closed");
    return future;
  }
};

void check_receiver_is_busy(noria_oneshot_receiver* rx) {
  ForeignWaker waker;
  noria_future* other = nullptr;
  void* got = nullptr;
  NORIA_STATUS(noria_oneshot_receive(rx, &other), -EBUSY);
  NORIA_STATUS(noria_oneshot_poll_receive(rx, waker.cx(), &got), -EBUSY);
  NORIA_STATUS(noria_oneshot_try_receive(rx, &got), -EBUSY);
}

}  // namespace

Test(OneshotFuture, Receive_is_not_overtaken_while_it_waits_and_until_its_result_is_taken) {
  on_each_runtime([](Lane& lane) {
    Ends ends(lane.rt);
    int value = 1;
    void* got = nullptr;
    noria_future* future = ends.receive();
    check_receiver_is_busy(ends.rx);
    NORIA_OK_CALL(noria_oneshot_send(ends.tx, &value));
    check_receiver_is_busy(ends.rx);
    NORIA_OK_CALL(lane.run([&](const noria_cx* cx) { return noria_future_poll(future, cx); }));
    NORIA_OK_CALL(noria_future_result(future, &got, sizeof got));
    cr_assert_eq(got, &value);
    NORIA_STATUS(noria_oneshot_try_receive(ends.rx, &got), -NORIA_ECONSUMED);
    NORIA_OK_CALL(noria_future_drop(future));
    NORIA_OK_CALL(noria_oneshot_receiver_drop(ends.rx));
  });
}

Test(OneshotFuture, Receive_that_was_dropped_cancelled_or_not_wanted_leaves_the_value_to_the_next) {
  on_each_runtime([](Lane& lane) {
    for (int how = 0; how < 4; ++how) {
      for (bool sent : {false, true}) {
        Ends ends(lane.rt);
        int value = 1;
        void* got = nullptr;
        if (sent) NORIA_OK_CALL(noria_oneshot_send(ends.tx, &value));
        noria_future* first = ends.receive();
        if (how == 0) NORIA_OK_CALL(noria_future_drop(first));
        if (how == 1 && !sent) NORIA_OK_CALL(noria_future_cancel(first));
        if (how == 1 && sent) NORIA_OK_CALL(noria_future_result(first, nullptr, 0));
        if (how == 2) std::thread([&] { NORIA_OK_CALL(noria_future_drop(first)); }).join();
        if (how == 3) {
          noria_future* late = nullptr;
          NORIA_OK_CALL(noria_timeout(lane.rt, first, sent ? NORIA_FOREVER : 0, &late));
          NORIA_OK_CALL(noria_future_drop(late));
        }
        noria_future* second = ends.receive();
        if (!sent) NORIA_OK_CALL(noria_oneshot_send(ends.tx, &value));
        NORIA_OK_CALL(lane.await(second, &got, sizeof got));
        cr_assert_eq(got, &value, "way %d", how);
        if (how == 1) NORIA_OK_CALL(noria_future_drop(first));
        NORIA_OK_CALL(noria_oneshot_receiver_drop(ends.rx));
      }
    }
  });
}

Test(OneshotFuture, Receive_that_failed_lets_the_receiver_ask_again) {
  on_each_runtime([](Lane& lane) {
    Ends ends(lane.rt);
    void* got = nullptr;
    noria_future* first = ends.receive();
    NORIA_OK_CALL(noria_oneshot_sender_drop(ends.tx));
    NORIA_STATUS(noria_oneshot_try_receive(ends.rx, &got), -NORIA_ECLOSED);
    NORIA_STATUS(lane.await(ends.receive(), &got, sizeof got), -NORIA_ECLOSED);
    NORIA_STATUS(lane.await(first, &got, sizeof got), -NORIA_ECLOSED);
    NORIA_OK_CALL(noria_oneshot_receiver_drop(ends.rx));
  });
}

Test(OneshotFuture, Closed_tells_that_the_receiver_closed_or_went) {
  on_each_runtime([](Lane& lane) {
    for (int how = 0; how < 3; ++how) {
      Ends ends(lane.rt);
      if (how == 2) NORIA_OK_CALL(noria_oneshot_close(ends.rx));
      noria_future* future = ends.closed();
      if (how < 2) NORIA_STATUS(noria_future_result(future, nullptr, 0), -EAGAIN);
      if (how == 0) NORIA_OK_CALL(noria_oneshot_close(ends.rx));
      noria_task* task = spawn(lane.rt, [how, rx = ends.rx](const noria_cx*) -> int32_t {
        return how == 1 ? noria_oneshot_receiver_drop(rx) : NORIA_OK;
      });
      NORIA_OK_CALL(lane.await(future));
      lane.join(task);
      NORIA_STATUS(noria_oneshot_send(ends.tx, &ends), -NORIA_ECLOSED);
      if (how != 1) NORIA_OK_CALL(noria_oneshot_receiver_drop(ends.rx));
    }
  });
}

Test(OneshotFuture, Closed_is_cancelled_when_its_sender_goes_first) {
  on_each_runtime([](Lane& lane) {
    for (int how = 0; how < 3; ++how) {
      g_discards = 0;
      Ends ends(lane.rt);
      int value = 1;
      noria_future* future = ends.closed();
      if (how == 0) NORIA_OK_CALL(noria_future_cancel(future));
      if (how == 1) {
        NORIA_OK_CALL(noria_oneshot_send(ends.tx, &value));
      } else {
        NORIA_OK_CALL(noria_oneshot_sender_drop(ends.tx));
      }
      NORIA_STATUS(lane.await(future), -ECANCELED);
      NORIA_OK_CALL(noria_oneshot_receiver_drop(ends.rx));
      cr_assert_eq(g_discards, how == 1 ? 1 : 0);
    }
  });
}

Test(OneshotFuture, Closed_has_the_sender_to_itself) {
  on_each_runtime([](Lane& lane) {
    Ends ends(lane.rt);
    ForeignWaker waker;
    noria_future *first = ends.closed(), *other = nullptr;
    NORIA_STATUS(noria_oneshot_closed(ends.tx, &other), -EBUSY);
    NORIA_STATUS(noria_oneshot_poll_closed(ends.tx, waker.cx()), -EBUSY);
    NORIA_OK_CALL(noria_future_drop(first));
    NORIA_STATUS(noria_oneshot_poll_closed(ends.tx, waker.cx()), NORIA_PENDING);
    first = ends.closed();
    cr_assert_eq(waker.alive(), 0, "the last wins");
    NORIA_OK_CALL(noria_oneshot_receiver_drop(ends.rx));
    NORIA_OK_CALL(lane.await(first));
    NORIA_OK_CALL(lane.await(ends.closed()));
    NORIA_OK_CALL(noria_oneshot_sender_drop(ends.tx));
    NORIA_STATUS(noria_oneshot_closed(nullptr, &other), -EINVAL);
  });
}

Test(OneshotFuture, Closed_and_receive_with_both_sides_going_at_once_end) {
  on_each_runtime([](Lane& lane) {
    for (int round = 0; round < rounds(1000, 50'000); ++round) {
      Ends ends(lane.rt);
      int value = 1;
      noria_future *closed = ends.closed(), *receive = ends.receive();
      std::thread other([&] {
        if (noria_oneshot_send(ends.tx, &value) != NORIA_OK) value = 2;
      });
      NORIA_OK_CALL(noria_oneshot_receiver_drop(ends.rx));
      other.join();
      void* got = nullptr;
      NORIA_STATUS(lane.await(receive, &got, sizeof got), value == 1 ? NORIA_OK : -NORIA_ECLOSED);
      int32_t status = lane.await(closed);
      cr_assert(status == NORIA_OK || (status == -ECANCELED && value == 1));
    }
  });
}
