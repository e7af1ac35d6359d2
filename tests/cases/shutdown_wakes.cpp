// A shutdown tells whoever waits outside of the runtime, in every form of waiting for time.
#include <criterion/criterion.h>

#include <thread>

#include "support/runtime_fixture.hpp"

using namespace noria::test;

namespace {

constexpr std::uint64_t kHour = 3600 * kSecond;

enum Kind { kArmed, kCancelled, kNeverArmed, kTick };

struct Waiting {
  noria_timer* timer = nullptr;
  noria_interval* interval = nullptr;

  Waiting(noria_runtime* rt, Kind kind) {
    if (kind == kTick) {
      assert_ok(noria_interval_new(rt, UINT64_MAX - 1, kHour, 0, &interval), "interval_new");
      return;
    }
    assert_ok(noria_timer_new(rt, &timer), "timer_new");
    if (kind == kNeverArmed) return;
    assert_ok(noria_timer_reset(timer, UINT64_MAX - 1), "timer_reset");
    if (kind == kCancelled) assert_ok(noria_timer_cancel(timer), "timer_cancel");
  }
  int32_t poll(const noria_cx* cx) {
    std::uint64_t instant = 0;
    return timer != nullptr ? noria_timer_poll_wait(timer, cx) : noria_interval_poll_tick(interval, cx, &instant);
  }
  void drop() { assert_ok(timer != nullptr ? noria_timer_drop(timer) : noria_interval_drop(interval), "drop"); }
};

}  // namespace

Test(ShutdownWakes, Foreign_poller_of_a_timer_or_interval) {
  for (Lane lane : {kCurrentThread, kTwoWorkers}) {
    for (Kind kind : {kArmed, kCancelled, kNeverArmed, kTick}) {
      noria_runtime_options options = lane_options(lane);
      assert_ok(noria_runtime_new(&options, &lane.rt), lane.name);
      Waiting waiting(lane.rt, kind);
      {
        ForeignWaker waker;
        NORIA_STATUS(waiting.poll(waker.cx()), NORIA_PENDING);
        NORIA_OK_CALL(noria_runtime_shutdown(lane.rt, kSecond, nullptr));
        cr_assert_eq(waker.wakes(), 1, "%s, kind %d", lane.name, kind);
        cr_assert_eq(waker.alive(), 0);
        NORIA_STATUS(waiting.poll(waker.cx()), -NORIA_ESHUTDOWN);
      }
      waiting.drop();
      assert_ok(noria_runtime_release(lane.rt), "release");
      await_nothing_alive(lane.name);
    }
  }
}

Test(ShutdownWakes, Poller_that_comes_while_the_runtime_ends) {
  for (Lane lane : {kCurrentThread, kTwoWorkers}) {
    for (int round = 0; round < rounds(100, 5000); ++round) {
      noria_runtime_options options = lane_options(lane);
      assert_ok(noria_runtime_new(&options, &lane.rt), lane.name);
      Waiting waiting(lane.rt, static_cast<Kind>(round % 4));
      std::thread other([&] { NORIA_OK_CALL(noria_runtime_shutdown(lane.rt, kSecond, nullptr)); });
      {
        ForeignWaker waker;
        int32_t status = NORIA_PENDING;
        for (int polls = 0; status == NORIA_PENDING; ++polls) {
          status = waiting.poll(waker.cx());
          if (status == NORIA_PENDING) waker.wait(polls + 1, "the wake of the shutdown");
        }
        NORIA_STATUS(status, -NORIA_ESHUTDOWN);
        other.join();
      }
      waiting.drop();
      assert_ok(noria_runtime_release(lane.rt), "release");
      await_nothing_alive(lane.name);
    }
  }
}
