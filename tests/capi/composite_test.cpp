// Futures over futures: select borrows, join_all and time-out consume; towers of any height do not use the stack.
#include <criterion/criterion.h>

#include <cerrno>
#include <memory>
#include <thread>
#include <vector>

#include "support/pending.hpp"

using namespace noria::test;

namespace {

noria_future* select(noria_runtime* rt, std::vector<noria_future*> futures) {
  noria_future* future = nullptr;
  assert_ok(noria_select(rt, futures.data(), futures.size(), &future), "select");
  return future;
}

noria_future* join_all(noria_runtime* rt, std::vector<noria_future*> futures) {
  noria_future* future = nullptr;
  assert_ok(noria_join_all(rt, futures.data(), futures.size(), &future), "join_all");
  return future;
}

noria_future* timeout(noria_runtime* rt, noria_future* inner, std::uint64_t timeout_ns) {
  noria_future* future = nullptr;
  assert_ok(noria_timeout(rt, inner, timeout_ns, &future), "timeout");
  return future;
}

std::size_t await_index(Lane& lane, noria_future* future) {
  std::size_t index = SIZE_MAX;
  NORIA_OK_CALL(lane.await(future, &index, sizeof index));
  return index;
}

}  // namespace

Test(Select, First_to_be_ready_is_told_and_losers_stay_pending) {
  on_each_runtime([](Lane& lane) {
    Pending a(lane.rt), b(lane.rt), c(lane.rt);
    noria_future* first = select(lane.rt, {a.future, b.future, c.future});
    b.complete();
    cr_assert_eq(await_index(lane, first), 1);
    NORIA_STATUS(noria_future_result(a.future, nullptr, 0), -EAGAIN);
    noria_future* second = select(lane.rt, {a.future, c.future});
    c.fail();
    cr_assert_eq(await_index(lane, second), 1, "a failure is an end too");
    a.complete();
    for (Pending* each : {&a, &b, &c}) NORIA_OK_CALL(noria_future_drop(each->future));
  });
}

Test(Select, Lowest_of_several_is_told) {
  on_each_runtime([](Lane& lane) {
    Pending a(lane.rt), b(lane.rt), c(lane.rt);
    noria_future* late = select(lane.rt, {a.future, b.future, c.future});
    c.complete();
    b.complete();
    cr_assert_eq(await_index(lane, late), 1, "both were ready when it was asked");
    cr_assert_eq(await_index(lane, select(lane.rt, {a.future, b.future, c.future})), 1);
    for (Pending* each : {&a, &b, &c}) NORIA_OK_CALL(noria_future_drop(each->future));
  });
}

Test(Select, Dropped_or_cancelled_leaves_its_futures_alone) {
  on_each_runtime([](Lane& lane) {
    Pending a(lane.rt), b(lane.rt);
    NORIA_OK_CALL(noria_future_drop(select(lane.rt, {a.future, b.future})));
    noria_future* cancelled = select(lane.rt, {a.future, b.future});
    NORIA_OK_CALL(noria_future_cancel(cancelled));
    cr_assert_eq(lane.await(cancelled), -ECANCELED);
    a.complete();
    cr_assert_eq(lane.await(a.future), NORIA_OK);
    NORIA_OK_CALL(noria_future_drop(b.future));
  });
}

Test(Select, Losers_that_go_before_the_select_are_not_touched) {
  on_each_runtime([](Lane& lane) {
    Pending a(lane.rt);
    auto b = std::make_unique<Pending>(lane.rt);
    noria_future* future = select(lane.rt, {a.future, b->future});
    a.complete();
    NORIA_OK_CALL(noria_future_drop(b->future));
    b.reset();
    cr_assert_eq(await_index(lane, future), 0);
    NORIA_OK_CALL(noria_future_drop(a.future));
  });
}

Test(Select, Poll_form_tells_the_first_that_is_ready) {
  on_each_runtime([](Lane& lane) {
    Pending a(lane.rt), b(lane.rt);
    noria_future* futures[] = {a.future, b.future};
    ForeignWaker waker;
    std::size_t index = 9;
    NORIA_STATUS(noria_select_poll(futures, 2, waker.cx(), &index), NORIA_PENDING);
    b.complete();
    cr_assert_eq(waker.wakes(), 1);
    NORIA_STATUS(noria_select_poll(futures, 2, waker.cx(), &index), NORIA_READY);
    cr_assert_eq(index, 1);
    a.complete();
    NORIA_STATUS(noria_select_poll(futures, 2, waker.cx(), &index), NORIA_READY);
    cr_assert_eq(index, 0);
    NORIA_OK_CALL(noria_future_drop(a.future));
    NORIA_OK_CALL(noria_future_drop(b.future));
  });
}

// budget-lie: the end of the budget must not look like "not ready", so that a later branch is picked.
Test(Select, A10_poll_form_does_not_try_later_ones_when_the_budget_ends) {
  on_each_runtime([](Lane& lane) {
    Pending a(lane.rt), b(lane.rt);
    a.complete();
    b.complete();
    noria_future* futures[] = {a.future, b.future};
    lane.join(spawn(lane.rt, [&, polls = 0](const noria_cx* cx) mutable -> int32_t {
      if (polls++ > 0) return NORIA_READY;
      std::size_t index = 0;
      while (noria_select_poll(futures, 2, cx, &index) == NORIA_READY)
        NORIA_CHECK(index == 0, "the first is always ready, and index %zu was told", index);
      return NORIA_PENDING;
    }));
    NORIA_OK_CALL(noria_future_drop(a.future));
    NORIA_OK_CALL(noria_future_drop(b.future));
  });
}

Test(JoinAll, Ready_with_the_last_and_each_result_is_told_once) {
  on_each_runtime([](Lane& lane) {
    Pending a(lane.rt), b(lane.rt), c(lane.rt);
    int value = 0;
    void* got = nullptr;
    noria_future* all = join_all(lane.rt, {a.future, b.future, c.future});
    NORIA_STATUS(noria_join_all_result(all, 0, &got, sizeof got), -EAGAIN);
    c.complete(&value);
    a.fail();
    NORIA_STATUS(noria_future_result(all, nullptr, 0), -EAGAIN);
    b.complete();
    NORIA_OK_CALL(lane.run([&](const noria_cx* cx) { return noria_future_poll(all, cx); }));
    NORIA_OK_CALL(noria_future_result(all, nullptr, 0));
    NORIA_STATUS(noria_join_all_result(all, 0, &got, sizeof got), -NORIA_ECLOSED);
    NORIA_OK_CALL(noria_join_all_result(all, 2, &got, sizeof got));
    cr_assert_eq(got, &value);
    NORIA_STATUS(noria_join_all_result(all, 2, &got, sizeof got), -NORIA_ECONSUMED);
    NORIA_STATUS(noria_join_all_result(all, 3, &got, sizeof got), -EINVAL);
    NORIA_OK_CALL(noria_future_drop(all));
  });
}

Test(JoinAll, Nothing_and_what_is_ready_already_are_ready_at_once) {
  on_each_runtime([](Lane& lane) {
    Pending a(lane.rt);
    a.complete();
    noria_future* none = nullptr;
    NORIA_OK_CALL(noria_join_all(lane.rt, nullptr, 0, &none));
    NORIA_OK_CALL(noria_future_result(none, nullptr, 0));
    NORIA_OK_CALL(noria_future_drop(none));
    noria_future* all = join_all(lane.rt, {a.future});
    NORIA_OK_CALL(noria_future_result(all, nullptr, 0));
    NORIA_OK_CALL(noria_future_drop(all));
  });
}

Test(JoinAll, Cancel_and_drop_reach_every_child) {
  on_each_runtime([](Lane& lane) {
    Pending a(lane.rt), b(lane.rt), c(lane.rt);
    a.complete();
    noria_future* all = join_all(lane.rt, {a.future, b.future, c.future});
    NORIA_OK_CALL(noria_future_cancel(all));
    NORIA_OK_CALL(lane.run([&](const noria_cx* cx) { return noria_future_poll(all, cx); }));
    NORIA_STATUS(noria_future_result(all, nullptr, 0), -ECANCELED);
    NORIA_OK_CALL(noria_join_all_result(all, 0, nullptr, 0));
    NORIA_STATUS(noria_join_all_result(all, 1, nullptr, 0), -ECANCELED);
    NORIA_OK_CALL(noria_future_drop(all));
    Pending d(lane.rt), e(lane.rt);
    NORIA_OK_CALL(noria_future_drop(join_all(lane.rt, {d.future, e.future})));
  });
}

Test(JoinAll, Many_children_completed_on_several_threads_end_it_once) {
  on_each_runtime([](Lane& lane) {
    for (int round = 0; round < 20; ++round) {
      std::vector<std::unique_ptr<Pending>> pending;
      std::vector<noria_future*> futures;
      for (int i = 0; i < 1000; ++i) {
        pending.push_back(std::make_unique<Pending>(lane.rt));
        futures.push_back(pending.back()->future);
      }
      noria_future* all = join_all(lane.rt, futures);
      ForeignWaker waker;
      NORIA_STATUS(noria_future_on_ready(all, waker.waker()), NORIA_PENDING);
      std::thread other([&] {
        for (std::size_t i = 0; i < 1000; i += 2) pending[i]->complete();
      });
      for (std::size_t i = 1; i < 1000; i += 2) pending[i]->complete();
      other.join();
      cr_assert_eq(waker.wakes(), 1);
      NORIA_OK_CALL(noria_future_drop(all));
    }
  });
}

Test(Timeout, Inner_that_is_in_time_gives_its_status_and_result) {
  on_each_runtime([](Lane& lane) {
    Pending a(lane.rt), b(lane.rt), c(lane.rt);
    int value = 0;
    void* got = nullptr;
    noria_future* future = timeout(lane.rt, a.future, 3600 * kSecond);
    a.complete(&value);
    NORIA_STATUS(noria_future_result(future, &got, 1), -EINVAL);
    cr_assert_eq(lane.await(future, &got, sizeof got), NORIA_OK);
    cr_assert_eq(got, &value);
    future = timeout(lane.rt, b.future, NORIA_FOREVER);
    b.fail();
    cr_assert_eq(lane.await(future, &got, sizeof got), -NORIA_ECLOSED);
    c.complete();
    cr_assert_eq(lane.await(timeout(lane.rt, c.future, 0)), NORIA_OK, "ready before its time was up");
  });
}

Test(Timeout, Inner_that_is_late_is_cancelled) {
  on_each_runtime([](Lane& lane) {
    for (std::uint64_t timeout_ns : {std::uint64_t{0}, std::uint64_t{1}, kMilli, 5 * kMilli}) {
      Pending a(lane.rt);
      std::uint64_t begin = 0, end = 0;
      NORIA_OK_CALL(noria_now(lane.rt, &begin));
      cr_assert_eq(lane.await(timeout(lane.rt, a.future, timeout_ns)), -ETIMEDOUT);
      NORIA_OK_CALL(noria_now(lane.rt, &end));
      cr_assert_geq(end - begin, timeout_ns, "P6: never early");
    }
  });
}

Test(Timeout, Cancel_and_drop_reach_the_inner_one) {
  on_each_runtime([](Lane& lane) {
    Pending a(lane.rt), b(lane.rt);
    noria_future* future = timeout(lane.rt, a.future, 3600 * kSecond);
    NORIA_OK_CALL(noria_future_cancel(future));
    cr_assert_eq(lane.await(future), -ECANCELED);
    NORIA_OK_CALL(noria_future_drop(timeout(lane.rt, b.future, 3600 * kSecond)));
  });
}

Test(Timeout, Race_of_expiry_and_completion_ends_it_once) {
  on_each_runtime([](Lane& lane) {
    for (int round = 0; round < rounds(100, 5000); ++round) {
      Pending a(lane.rt);
      noria_future* future = timeout(lane.rt, a.future, kMilli);
      std::thread other([&] {
        std::uint64_t begin = 0, now = 0;
        NORIA_OK_CALL(noria_now(lane.rt, &begin));
        do NORIA_OK_CALL(noria_now(lane.rt, &now));
        while (now - begin < kMilli + static_cast<std::uint64_t>(round % 10) * 50'000);
        a.complete();
      });
      int32_t status = lane.await(future);
      cr_assert(status == NORIA_OK || status == -ETIMEDOUT);
      other.join();
    }
  });
}

// deep-wake: whatever a tower of futures does, it does not do it on the stack.
Test(DeepWake, Tower_of_timeouts_ends_from_below_and_from_above) {
  on_each_runtime([](Lane& lane) {
    constexpr int kHeight = 200'000;
    for (int how = 0; how < 3; ++how) {
      Pending a(lane.rt);
      int value = 0;
      void* got = nullptr;
      noria_future* future = a.future;
      for (int i = 0; i < kHeight; ++i) future = timeout(lane.rt, future, NORIA_FOREVER);
      ForeignWaker waker;
      NORIA_STATUS(noria_future_on_ready(future, waker.waker()), NORIA_PENDING);
      if (how == 0) a.complete(&value);
      if (how == 1) NORIA_OK_CALL(noria_future_cancel(future));
      if (how < 2) {
        cr_assert_eq(waker.wakes(), 1);
        NORIA_STATUS(noria_future_result(future, &got, sizeof got), how == 0 ? NORIA_OK : -ECANCELED);
        if (how == 0) cr_assert_eq(got, &value);
      }
      NORIA_OK_CALL(noria_future_drop(future));
    }
  });
}

Test(DeepWake, Tower_of_joins_and_selects_ends_from_below) {
  on_each_runtime([](Lane& lane) {
    constexpr int kHeight = 100'000;
    Pending a(lane.rt);
    noria_future* future = a.future;
    for (int i = 0; i < kHeight; ++i) future = join_all(lane.rt, {future});
    std::vector<noria_future*> selects = {future};
    for (int i = 0; i < kHeight; ++i) selects.push_back(select(lane.rt, {selects.back()}));
    a.complete();
    NORIA_OK_CALL(noria_future_result(selects.back(), nullptr, 0));
    while (!selects.empty()) {
      NORIA_OK_CALL(noria_future_drop(selects.back()));
      selects.pop_back();
    }
  });
}

Test(DeepWake, Wakers_that_complete_the_next_future_form_a_chain) {
  on_each_runtime([](Lane& lane) {
    // Each select's end is a foreign waker that completes the next pending future; the chain is as long as it is.
    constexpr std::size_t kLength = 1000;
    std::vector<std::unique_ptr<Pending>> pending;
    std::vector<std::unique_ptr<ForeignWaker>> wakers;
    std::vector<noria_future*> selects;
    for (std::size_t i = 0; i < kLength; ++i) pending.push_back(std::make_unique<Pending>(lane.rt));
    for (std::size_t i = 0; i < kLength; ++i) {
      selects.push_back(select(lane.rt, {pending[i]->future}));
      wakers.push_back(std::make_unique<ForeignWaker>([&, i] {
        if (i + 1 < kLength) pending[i + 1]->complete();
      }));
      NORIA_STATUS(noria_future_on_ready(selects[i], wakers[i]->waker()), NORIA_PENDING);
    }
    pending[0]->complete();
    for (std::size_t i = 0; i < kLength; ++i) {
      cr_assert_eq(wakers[i]->wakes(), 1);
      NORIA_OK_CALL(noria_future_drop(selects[i]));
      NORIA_OK_CALL(noria_future_drop(pending[i]->future));
    }
  });
}

Test(Composite, Child_that_completes_while_the_composite_is_dropped_is_safe) {
  on_each_runtime([](Lane& lane) {
    for (int round = 0; round < rounds(600, 50'000); ++round) {
      Pending a(lane.rt), b(lane.rt);
      noria_future* future = nullptr;
      switch (round % 3) {
        case 0:
          future = select(lane.rt, {a.future, b.future});
          break;
        case 1:
          future = join_all(lane.rt, {a.future, b.future});
          break;
        default:
          future = timeout(lane.rt, timeout(lane.rt, a.future, kMilli), kSecond);
      }
      ForeignWaker waker;
      std::int32_t status = noria_future_on_ready(future, waker.waker());
      bool late = round % 3 == 2 && status == NORIA_READY;  // the millisecond was over before
      NORIA_CHECK(status == NORIA_PENDING || late, "told %s", noria_error_name(status));
      std::thread other([&] {
        a.complete();
        b.complete();
      });
      NORIA_OK_CALL(noria_future_drop(future));
      other.join();
      if (round % 3 == 0) NORIA_OK_CALL(noria_future_drop(a.future));
      if (round % 3 != 1) NORIA_OK_CALL(noria_future_drop(b.future));
    }
  });
}

Test(Composite, Misuse_is_told_and_nothing_is_taken) {
  on_each_runtime([](Lane& lane) {
    Pending a(lane.rt);
    ForeignWaker waker;
    noria_future* with_null[] = {a.future, nullptr};
    noria_future* out = nullptr;
    std::size_t index = 0;
    NORIA_STATUS(noria_select(lane.rt, with_null, 0, &out), -EINVAL);
    NORIA_STATUS(noria_select(lane.rt, with_null, 2, &out), -EINVAL);
    NORIA_STATUS(noria_select(lane.rt, nullptr, 1, &out), -EINVAL);
    NORIA_STATUS(noria_select(lane.rt, with_null, 1, nullptr), -EINVAL);
    NORIA_STATUS(noria_select(nullptr, with_null, 1, &out), -NORIA_ENOCONTEXT);
    NORIA_STATUS(noria_select_poll(with_null, 2, waker.cx(), &index), -EINVAL);
    NORIA_STATUS(noria_select_poll(with_null, 0, waker.cx(), &index), -EINVAL);
    NORIA_STATUS(noria_select_poll(with_null, 1, nullptr, &index), -EINVAL);
    NORIA_STATUS(noria_select_poll(with_null, 1, waker.cx(), nullptr), -EINVAL);
    NORIA_STATUS(noria_join_all(lane.rt, with_null, 2, &out), -EINVAL);
    NORIA_STATUS(noria_join_all(lane.rt, with_null, 1, nullptr), -EINVAL);
    NORIA_STATUS(noria_join_all(nullptr, with_null, 1, &out), -NORIA_ENOCONTEXT);
    NORIA_STATUS(noria_join_all_result(nullptr, 0, nullptr, 0), -EINVAL);
    NORIA_STATUS(noria_join_all_result(a.future, 0, nullptr, 0), -EINVAL);
    NORIA_STATUS(noria_timeout(lane.rt, nullptr, 1, &out), -EINVAL);
    NORIA_STATUS(noria_timeout(lane.rt, a.future, 1, nullptr), -EINVAL);
    NORIA_STATUS(noria_timeout(nullptr, a.future, 1, &out), -NORIA_ENOCONTEXT);
    cr_assert_null(out);
    NORIA_OK_CALL(noria_future_drop(a.future));
  });
}

Test(Composite, Shutdown_cancels_composites_and_their_children) {
  for (Lane lane : {kCurrentThread, kTwoWorkers}) {
    noria_runtime_options options = lane_options(lane);
    assert_ok(noria_runtime_new(&options, &lane.rt), lane.name);
    {
      Pending a(lane.rt), b(lane.rt), c(lane.rt);
      noria_future* late = nullptr;
      noria_future* one = select(lane.rt, {a.future});
      noria_future* two = join_all(lane.rt, {b.future});
      noria_future* three = timeout(lane.rt, c.future, 3600 * kSecond);
      assert_ok(noria_runtime_shutdown(lane.rt, kSecond, nullptr), "shutdown");
      NORIA_STATUS(noria_join_all_result(two, 0, nullptr, 0), -ECANCELED);
      NORIA_STATUS(noria_future_result(three, nullptr, 0), -ECANCELED);
      int32_t status = noria_future_result(one, nullptr, 0);
      cr_assert(status == -ECANCELED || status == NORIA_OK, "its child was cancelled, or it was");
      NORIA_STATUS(noria_timeout(lane.rt, a.future, 1, &late), -NORIA_ESHUTDOWN);
      NORIA_STATUS(noria_future_result(a.future, nullptr, 0), -ECANCELED);
      for (noria_future* future : {one, two, three, a.future}) NORIA_OK_CALL(noria_future_drop(future));
    }
    assert_ok(noria_runtime_release(lane.rt), "release");
    await_nothing_alive(lane.name);
  }
}
