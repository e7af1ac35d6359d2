// One pointer from one side to the other: every end in every order, on one thread and on two.
#include <criterion/criterion.h>

#include <cerrno>
#include <thread>
#include <vector>

#include "support/clone_waker.hpp"
#include "support/runtime_fixture.hpp"

using namespace noria::test;

namespace {

int g_discards = 0;
void discard(void* value) { g_discards += *static_cast<int*>(value); }

struct Ends {
  noria_oneshot_sender* tx = nullptr;
  noria_oneshot_receiver* rx = nullptr;
  explicit Ends(noria_runtime* rt) { assert_ok(noria_oneshot_new(rt, discard, &tx, &rx), "oneshot_new"); }
};

}  // namespace

Test(Oneshot, Value_sent_before_receive_is_received_once) {
  on_each_runtime([](Lane& lane) {
    Ends ends(lane.rt);
    int value = 1;
    void* got = nullptr;
    cr_assert_eq(noria_oneshot_try_receive(ends.rx, &got), -EAGAIN);
    cr_assert_eq(noria_oneshot_send(ends.tx, &value), NORIA_OK);
    cr_assert_eq(noria_oneshot_try_receive(ends.rx, &got), NORIA_OK);
    cr_assert_eq(got, &value);
    cr_assert_eq(noria_oneshot_try_receive(ends.rx, &got), -NORIA_ECONSUMED);
    cr_assert_eq(noria_oneshot_receiver_drop(ends.rx), NORIA_OK);
    cr_assert_eq(g_discards, 0);
  });
}

Test(Oneshot, Receiver_that_waits_is_woken_by_send_and_by_drop) {
  on_each_runtime([](Lane& lane) {
    for (bool send : {true, false}) {
      Ends ends(lane.rt);
      int value = 1;
      noria_task* task = spawn(lane.rt, [tx = ends.tx, send, &value](const noria_cx*) -> int32_t {
        return send ? noria_oneshot_send(tx, &value) : noria_oneshot_sender_drop(tx);
      });
      void* got = nullptr;
      int32_t status = lane.run([&](const noria_cx* cx) { return noria_oneshot_poll_receive(ends.rx, cx, &got); });
      cr_assert_eq(status, send ? NORIA_OK : -NORIA_ECLOSED);
      cr_assert_eq(got, send ? &value : nullptr);
      lane.join(task);
      cr_assert_eq(noria_oneshot_receiver_drop(ends.rx), NORIA_OK);
    }
  });
}

Test(Oneshot, Value_of_a_receiver_that_is_gone_stays_the_senders) {
  on_each_runtime([](Lane& lane) {
    for (bool close_only : {false, true}) {
      g_discards = 0;
      Ends ends(lane.rt);
      int value = 1;
      cr_assert_eq(close_only ? noria_oneshot_close(ends.rx) : noria_oneshot_receiver_drop(ends.rx), NORIA_OK);
      cr_assert_eq(noria_oneshot_send(ends.tx, &value), -NORIA_ECLOSED);
      cr_assert_eq(g_discards, 0);
      if (!close_only) continue;
      void* got = nullptr;
      cr_assert_eq(noria_oneshot_try_receive(ends.rx, &got), -NORIA_ECLOSED, "a refused value is not received");
      cr_assert_eq(noria_oneshot_receiver_drop(ends.rx), NORIA_OK);
      cr_assert_eq(g_discards, 0);
    }
  });
}

Test(Oneshot, Value_that_nobody_took_is_discarded_once) {
  on_each_runtime([](Lane& lane) {
    g_discards = 0;
    int value = 1;
    Ends ends(lane.rt);
    cr_assert_eq(noria_oneshot_send(ends.tx, &value), NORIA_OK);
    cr_assert_eq(noria_oneshot_receiver_drop(ends.rx), NORIA_OK);
    cr_assert_eq(g_discards, 1);
  });
}

Test(Oneshot, Value_sent_before_close_is_still_received) {
  on_each_runtime([](Lane& lane) {
    int value = 1;
    void* got = nullptr;
    Ends ends(lane.rt);
    cr_assert_eq(noria_oneshot_send(ends.tx, &value), NORIA_OK);
    cr_assert_eq(noria_oneshot_close(ends.rx), NORIA_OK);
    cr_assert_eq(noria_oneshot_try_receive(ends.rx, &got), NORIA_OK);
    cr_assert_eq(noria_oneshot_receiver_drop(ends.rx), NORIA_OK);
  });
}

Test(Oneshot, Sender_that_waits_is_woken_by_close_and_by_drop) {
  on_each_runtime([](Lane& lane) {
    for (bool close : {true, false}) {
      Ends ends(lane.rt);
      ForeignWaker waker;
      cr_assert_eq(noria_oneshot_poll_closed(ends.tx, waker.cx()), NORIA_PENDING);
      cr_assert_eq(noria_oneshot_poll_closed(ends.tx, waker.cx()), NORIA_PENDING);
      cr_assert_eq(waker.alive(), 1, "the same waker is not cloned again");
      if (close) cr_assert_eq(noria_oneshot_close(ends.rx), NORIA_OK);
      cr_assert_eq(noria_oneshot_receiver_drop(ends.rx), NORIA_OK);
      cr_assert_eq(waker.wakes(), 1);
      cr_assert_eq(waker.alive(), 0);
      cr_assert_eq(noria_oneshot_poll_closed(ends.tx, waker.cx()), NORIA_READY);
      cr_assert_eq(noria_oneshot_sender_drop(ends.tx), NORIA_OK);
    }
  });
}

Test(Oneshot, Wakers_left_behind_are_dropped_by_whichever_end_goes) {
  on_each_runtime([](Lane& lane) {
    ForeignWaker first, second;
    int value = 1;
    void* got = nullptr;
    Ends ends(lane.rt);
    cr_assert_eq(noria_oneshot_poll_receive(ends.rx, first.cx(), &got), NORIA_PENDING);
    cr_assert_eq(noria_oneshot_poll_receive(ends.rx, second.cx(), &got), NORIA_PENDING);
    cr_assert_eq(first.alive(), 0, "the last wins, the first is dropped");
    cr_assert_eq(noria_oneshot_poll_closed(ends.tx, first.cx()), NORIA_PENDING);
    cr_assert_eq(noria_oneshot_send(ends.tx, &value), NORIA_OK);
    cr_assert_eq(second.wakes(), 1);
    cr_assert_eq(first.wakes(), 0);
    cr_assert_eq(noria_oneshot_receiver_drop(ends.rx), NORIA_OK);
    Ends others(lane.rt);
    cr_assert_eq(noria_oneshot_poll_receive(others.rx, first.cx(), &got), NORIA_PENDING);
    cr_assert_eq(noria_oneshot_receiver_drop(others.rx), NORIA_OK);
    cr_assert_eq(noria_oneshot_sender_drop(others.tx), NORIA_OK);
    cr_assert_eq(first.alive() + second.alive(), 0);
    cr_assert_eq(first.wakes(), 0);
  });
}

Test(Oneshot, Send_while_the_receiver_leaves_its_waker_is_seen) {
  on_each_runtime([](Lane& lane) {
    Ends ends(lane.rt);
    int value = 1;
    void* got = nullptr;
    CloneWaker waker([&] { NORIA_OK_CALL(noria_oneshot_send(ends.tx, &value)); });
    NORIA_STATUS(noria_oneshot_poll_receive(ends.rx, waker.cx(), &got), NORIA_READY);
    cr_assert_eq(got, &value, "P1: the wake that came meanwhile is not lost");
    NORIA_OK_CALL(noria_oneshot_receiver_drop(ends.rx));
    Ends others(lane.rt);
    CloneWaker closer([&] { NORIA_OK_CALL(noria_oneshot_close(others.rx)); });
    NORIA_STATUS(noria_oneshot_poll_closed(others.tx, closer.cx()), NORIA_READY);
    NORIA_OK_CALL(noria_oneshot_sender_drop(others.tx));
    NORIA_OK_CALL(noria_oneshot_receiver_drop(others.rx));
  });
}

Test(Oneshot, Receive_future_brings_the_value_or_the_end) {
  on_each_runtime([](Lane& lane) {
    int value = 1;
    void* got = nullptr;
    for (bool before : {true, false}) {
      Ends ends(lane.rt);
      noria_future* future = nullptr;
      if (before) cr_assert_eq(noria_oneshot_send(ends.tx, &value), NORIA_OK);
      cr_assert_eq(noria_oneshot_receive(ends.rx, &future), NORIA_OK);
      if (!before) {
        cr_assert_eq(noria_future_result(future, &got, sizeof got), -EAGAIN);
        cr_assert_eq(noria_oneshot_send(ends.tx, &value), NORIA_OK);
      }
      cr_assert_eq(lane.await(future, &got, sizeof got), NORIA_OK);
      cr_assert_eq(got, &value);
      cr_assert_eq(noria_oneshot_receive(ends.rx, &future), NORIA_OK);
      cr_assert_eq(lane.await(future, &got, sizeof got), -NORIA_ECONSUMED);
      cr_assert_eq(noria_oneshot_receiver_drop(ends.rx), NORIA_OK);
    }
    Ends ends(lane.rt);
    noria_future* future = nullptr;
    cr_assert_eq(noria_oneshot_receive(ends.rx, &future), NORIA_OK);
    cr_assert_eq(noria_oneshot_sender_drop(ends.tx), NORIA_OK);
    cr_assert_eq(lane.await(future, &got, sizeof got), -NORIA_ECLOSED);
    cr_assert_eq(noria_oneshot_receiver_drop(ends.rx), NORIA_OK);
  });
}

Test(Oneshot, Receive_future_that_is_dropped_keeps_the_value) {
  on_each_runtime([](Lane& lane) {
    int value = 1;
    void* got = nullptr;
    for (bool sent : {true, false}) {
      Ends ends(lane.rt);
      noria_future* future = nullptr;
      if (sent) cr_assert_eq(noria_oneshot_send(ends.tx, &value), NORIA_OK);
      cr_assert_eq(noria_oneshot_receive(ends.rx, &future), NORIA_OK);
      cr_assert_eq(noria_future_drop(future), NORIA_OK);
      if (!sent) cr_assert_eq(noria_oneshot_send(ends.tx, &value), NORIA_OK);
      cr_assert_eq(noria_oneshot_try_receive(ends.rx, &got), NORIA_OK, "P8: what was not passed on is kept");
      cr_assert_eq(noria_oneshot_receiver_drop(ends.rx), NORIA_OK);
    }
  });
}

Test(Oneshot, Receive_future_ends_when_its_receiver_goes_and_when_it_is_cancelled) {
  on_each_runtime([](Lane& lane) {
    for (int how = 0; how < 3; ++how) {
      Ends ends(lane.rt);
      noria_future* future = nullptr;
      cr_assert_eq(noria_oneshot_receive(ends.rx, &future), NORIA_OK);
      if (how == 0) cr_assert_eq(noria_future_cancel(future), NORIA_OK);
      if (how == 1) cr_assert_eq(noria_oneshot_close(ends.rx), NORIA_OK);
      cr_assert_eq(noria_oneshot_receiver_drop(ends.rx), NORIA_OK);
      void* got = nullptr;
      cr_assert_eq(lane.await(future, &got, sizeof got), how == 0 ? -ECANCELED : -NORIA_ECLOSED);
      cr_assert_eq(noria_oneshot_sender_drop(ends.tx), NORIA_OK);
    }
  });
}

Test(Oneshot, Send_and_drop_on_two_threads_pass_or_return_each_value) {
  on_each_runtime([](Lane& lane) {
    g_discards = 0;
    int one = 1, taken = 0, returned = 0;
    constexpr int kRounds = 2000;
    for (int round = 0; round < kRounds; ++round) {
      Ends ends(lane.rt);
      std::thread sender([&] {
        if (noria_oneshot_send(ends.tx, &one) != NORIA_OK) ++returned;
      });
      void* got = nullptr;
      ForeignWaker waker;
      int32_t status = noria_oneshot_poll_receive(ends.rx, waker.cx(), &got);
      if (status == NORIA_READY) ++taken;
      if (round % 2 == 0) cr_assert_eq(noria_oneshot_close(ends.rx), NORIA_OK);
      cr_assert_eq(noria_oneshot_receiver_drop(ends.rx), NORIA_OK);
      sender.join();
      cr_assert_eq(waker.alive(), 0);
    }
    cr_assert_eq(taken + returned + g_discards, kRounds);
  });
}

Test(Oneshot, Ping_pong_of_pairs_of_tasks_ends) {
  on_each_runtime([](Lane& lane) {
    struct Pair {
      noria_oneshot_sender* ping = nullptr;
      noria_oneshot_receiver* pong = nullptr;
    };
    constexpr int kPairs = 500;
    int value = 1;
    std::vector<noria_task*> tasks;
    for (int i = 0; i < kPairs; ++i) {
      Ends ping(lane.rt), pong(lane.rt);
      tasks.push_back(spawn(lane.rt, [ping, pong](const noria_cx* cx) -> int32_t {
        void* got = nullptr;
        int32_t status = noria_oneshot_poll_receive(ping.rx, cx, &got);
        if (status != NORIA_READY) return status;
        noria_oneshot_receiver_drop(ping.rx);
        return noria_oneshot_send(pong.tx, got);
      }));
      tasks.push_back(spawn(lane.rt, [ping, pong, sent = false, &value](const noria_cx* cx) mutable -> int32_t {
        if (!sent) {
          sent = true;
          if (noria_oneshot_send(ping.tx, &value) != NORIA_OK) return -EPIPE;
        }
        void* got = nullptr;
        int32_t status = noria_oneshot_poll_receive(pong.rx, cx, &got);
        if (status == NORIA_READY) noria_oneshot_receiver_drop(pong.rx);
        return status;
      }));
    }
    for (noria_task* task : tasks) cr_assert_eq(lane.join(task).kind, NORIA_JOIN_DONE);
  });
}

Test(Oneshot, Misuse_is_told) {
  on_each_runtime([](Lane& lane) {
    Ends ends(lane.rt);
    void* got;
    ForeignWaker waker;
    cr_assert_eq(noria_oneshot_new(lane.rt, discard, nullptr, &ends.rx), -EINVAL);
    cr_assert_eq(noria_oneshot_new(lane.rt, discard, &ends.tx, nullptr), -EINVAL);
    cr_assert_eq(noria_oneshot_new(nullptr, discard, &ends.tx, &ends.rx), -NORIA_ENOCONTEXT);
    cr_assert_eq(noria_oneshot_send(nullptr, nullptr), -EINVAL);
    cr_assert_eq(noria_oneshot_poll_closed(nullptr, waker.cx()), -EINVAL);
    cr_assert_eq(noria_oneshot_poll_closed(ends.tx, nullptr), -EINVAL);
    cr_assert_eq(noria_oneshot_sender_drop(nullptr), -EINVAL);
    cr_assert_eq(noria_oneshot_poll_receive(nullptr, waker.cx(), &got), -EINVAL);
    cr_assert_eq(noria_oneshot_poll_receive(ends.rx, nullptr, &got), -EINVAL);
    cr_assert_eq(noria_oneshot_poll_receive(ends.rx, waker.cx(), nullptr), -EINVAL);
    cr_assert_eq(noria_oneshot_receive(ends.rx, nullptr), -EINVAL);
    cr_assert_eq(noria_oneshot_receive(nullptr, nullptr), -EINVAL);
    cr_assert_eq(noria_oneshot_try_receive(ends.rx, nullptr), -EINVAL);
    cr_assert_eq(noria_oneshot_try_receive(nullptr, &got), -EINVAL);
    cr_assert_eq(noria_oneshot_close(nullptr), -EINVAL);
    cr_assert_eq(noria_oneshot_receiver_drop(nullptr), -EINVAL);
    cr_assert_eq(noria_oneshot_sender_drop(ends.tx), NORIA_OK);
    cr_assert_eq(noria_oneshot_receiver_drop(ends.rx), NORIA_OK);
  });
}
