// A9, a future's end as a plain call: once, where it was asked for, or discard instead.
#include <criterion/criterion.h>

#include <atomic>
#include <cerrno>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/pending.hpp"

using namespace noria::test;

namespace {

struct Receiver {
  std::atomic<int> calls{0}, discards{0};
  std::atomic<int> inside{0};
  std::thread::id thread;
  int32_t status = 1;
  bool throws = false;

  static void callback(void* arg, noria_future* future) {
    auto* self = static_cast<Receiver*>(arg);
    NORIA_CHECK(self->inside++ == 0, "two callbacks overlap");
    self->thread = std::this_thread::get_id();
    self->status = noria_future_result(future, nullptr, 0);
    std::this_thread::yield();
    --self->inside;
    ++self->calls;
    if (self->throws) throw std::runtime_error("callback");
  }
  static void discard(void* arg) { ++static_cast<Receiver*>(arg)->discards; }

  noria_delivery delivery(noria_runtime* rt, std::uint32_t kind = NORIA_DELIVER_WORKER) {
    noria_delivery made{};
    made.size = sizeof made;
    made.kind = kind;
    made.callback = callback;
    made.arg = this;
    made.discard = discard;
    made.rt = rt;
    return made;
  }
};

}  // namespace

Test(Deliver, A9_callback_runs_once_with_the_result_on_a_thread_of_the_runtime) {
  on_each_runtime([](Lane& lane) {
    for (bool before : {true, false}) {
      Pending pending(lane.rt);
      Receiver receiver;
      noria_delivery delivery = receiver.delivery(lane.rt);
      if (before) pending.complete();
      NORIA_OK_CALL(noria_future_deliver(pending.future, &delivery));
      if (lane.current_thread()) cr_assert_eq(receiver.calls, 0, "never inside the call");
      if (!before) pending.complete();
      lane.until([&] { return receiver.calls == 1; }, "the callback");
      cr_assert_eq(receiver.status, NORIA_OK);
      cr_assert_eq(receiver.thread == std::this_thread::get_id(), lane.current_thread());
      cr_assert_eq(receiver.discards, 0);
    }
  });
}

Test(Deliver, A9_callbacks_of_one_strand_do_not_overlap_and_keep_their_order) {
  on_each_runtime([](Lane& lane) {
    noria_strand* strand = nullptr;
    NORIA_OK_CALL(noria_strand_new(lane.rt, &strand));
    constexpr int kCount = 300;
    Receiver receiver;
    noria_delivery delivery = receiver.delivery(nullptr, NORIA_DELIVER_STRAND);
    delivery.strand = strand;
    for (int i = 0; i < kCount; ++i) {
      Pending pending(lane.rt);
      NORIA_OK_CALL(noria_future_deliver(pending.future, &delivery));
      pending.complete();
    }
    lane.until([&] { return receiver.calls == kCount; }, "the callbacks");
    NORIA_OK_CALL(noria_strand_drop(strand));
  });
}

Test(Deliver, A9_turn_kind_stays_on_the_thread) {
  on_each_runtime([](Lane& lane) {
    Pending pending(lane.rt);
    Receiver receiver;
    noria_delivery delivery = receiver.delivery(lane.rt, NORIA_DELIVER_TURN);
    std::thread::id thread;
    if (!lane.current_thread()) {
      NORIA_STATUS(noria_future_deliver(pending.future, &delivery), -NORIA_EWRONGTHREAD);
      cr_assert_eq(receiver.discards, 0, "on an error nothing is called");
    }
    lane.inside([&] {
      thread = std::this_thread::get_id();
      NORIA_OK_CALL(noria_future_deliver(pending.future, &delivery));
    });
    pending.complete();
    lane.until([&] { return receiver.calls == 1; }, "the callback");
    cr_assert_eq(receiver.thread, thread);
  });
}

Test(Deliver, Callback_that_throws_loses_nothing) {
  on_each_runtime([](Lane& lane) {
    Pending pending(lane.rt);
    Receiver receiver;
    receiver.throws = true;
    noria_delivery delivery = receiver.delivery(lane.rt);
    NORIA_OK_CALL(noria_future_deliver(pending.future, &delivery));
    pending.complete();
    lane.until([&] { return receiver.calls == 1; }, "the callback");
  });
}

Test(Deliver, Runtime_that_ends_first_discards) {
  for (Lane lane : {kCurrentThread, kTwoWorkers}) {
    noria_runtime_options options = lane_options(lane);
    assert_ok(noria_runtime_new(&options, &lane.rt), lane.name);
    Receiver receiver;
    {
      Pending pending(lane.rt), late(lane.rt);
      noria_delivery delivery = receiver.delivery(lane.rt);
      NORIA_OK_CALL(noria_future_deliver(pending.future, &delivery));
      assert_ok(noria_runtime_shutdown(lane.rt, kSecond, nullptr), "shutdown");
      cr_assert_eq(receiver.calls, 0);
      cr_assert_eq(receiver.discards, 1);
      NORIA_STATUS(noria_future_deliver(late.future, &delivery), -NORIA_ESHUTDOWN);
      cr_assert_eq(receiver.discards, 1);
      NORIA_OK_CALL(noria_future_drop(late.future));
    }
    assert_ok(noria_runtime_release(lane.rt), "release");
    await_nothing_alive(lane.name);
  }
}

Test(Deliver, Misuse_is_told_and_the_future_stays_the_callers) {
  on_each_runtime([](Lane& lane) {
    Pending pending(lane.rt);
    Receiver receiver;
    noria_delivery delivery = receiver.delivery(lane.rt);
    NORIA_STATUS(noria_future_deliver(nullptr, &delivery), -EINVAL);
    NORIA_STATUS(noria_future_deliver(pending.future, nullptr), -EINVAL);
    delivery.rt = nullptr;
    NORIA_STATUS(noria_future_deliver(pending.future, &delivery), -NORIA_ENOCONTEXT);
    delivery = receiver.delivery(lane.rt, 3);
    NORIA_STATUS(noria_future_deliver(pending.future, &delivery), -EINVAL);
    delivery = receiver.delivery(lane.rt, NORIA_DELIVER_STRAND);
    NORIA_STATUS(noria_future_deliver(pending.future, &delivery), -EINVAL);
    delivery = receiver.delivery(lane.rt);
    delivery.callback = nullptr;
    NORIA_STATUS(noria_future_deliver(pending.future, &delivery), -EINVAL);
    struct Longer {
      noria_delivery known;
      std::uint64_t tail;
    } longer = {receiver.delivery(lane.rt), 1};
    longer.known.size = sizeof longer;
    NORIA_STATUS(noria_future_deliver(pending.future, &longer.known), -E2BIG);
    longer.known.size = 2;
    NORIA_STATUS(noria_future_deliver(pending.future, &longer.known), -EINVAL);
    longer.known.size = sizeof longer;
    longer.tail = 0;
    NORIA_OK_CALL(noria_future_deliver(pending.future, &longer.known));
    pending.complete();
    lane.until([&] { return receiver.calls == 1; }, "A2: a longer struct with a zero tail is taken");
  });
}
