// Faults that others had in their schedulers, tasks and wakers, one by one: see the names. What each shows is that a
// run of the whole kind ends; the watchdog tells when it does not.
#include <criterion/criterion.h>

#include <random>
#include <vector>

#include "support/runtime_fixture.hpp"
#include "sync/ring.hpp"

using namespace noria::test;

namespace {

struct Metrics : noria_metrics {
  explicit Metrics(noria_runtime* rt) : noria_metrics{} {
    size = sizeof(noria_metrics);
    NORIA_OK_CALL(noria_runtime_metrics(rt, this));
  }
};

int32_t ready(void*, const noria_cx*) { return NORIA_READY; }
const noria_task_vtable kReady = {sizeof(noria_task_vtable), 0, ready, nullptr, nullptr, "ready"};

noria_runtime* make(std::uint32_t workers) {
  noria_runtime_options options = lane_options(Lane{"", workers});
  noria_runtime* rt = nullptr;
  NORIA_OK_CALL(noria_runtime_new(&options, &rt));
  return rt;
}

}  // namespace

// One task at a time, spawned as the worker parks after the one before. No timer, no event would hide a lost wake.
Test(Sched, sched_idle_check) {
  noria_runtime_options options{};
  options.enable_time = NORIA_NONE;
  options.enable_io = NORIA_NONE;
  on_runtimes(
      kMulti,
      [](Lane& lane) {
        std::minstd_rand random(static_cast<unsigned>(test_seed()));
        std::atomic<int> ran{0};
        for (int i = 1; i <= rounds(5000, 300000); ++i) {
          Watchdog watchdog("sched_idle_check");
          auto count = [&ran](const noria_cx*) -> int32_t {
            ++ran;
            ran.notify_one();
            return NORIA_READY;
          };
          if (i % 2 == 0) {
            spawn_detached(lane.rt, count);
          } else {
            std::thread([&] { spawn_detached(lane.rt, count); }).join();
          }
          for (int seen = ran; seen < i; seen = ran) ran.wait(seen);
          for (unsigned spin = random() % 50; spin > 0; --spin) std::this_thread::yield();
        }
      },
      options);
}

// Owner and thieves of a ring of 4 at the edge of 32 bits; a thief's own ring is stolen from as well.
Test(Sched, sched_ring_wrap_and_sched_double_pop) {
  struct Item {
    std::atomic<int> taken{0};
  };
  using Ring = noria::sync::Ring<Item, 4>;
  constexpr int kItems = 20000;
  auto mine = std::make_unique<Ring>(0xFFFFFF00u), first = std::make_unique<Ring>(0xFFFFFFFEu),
       second = std::make_unique<Ring>();
  auto older = std::make_unique<noria::sync::Ring<Item, 8>>(0xFFFFFFFFu);
  std::vector<Item> items(kItems);
  std::atomic<int> taken{0};
  auto take = [&](Item* item) {
    NORIA_CHECK(item->taken.fetch_add(1) == 0, "an item was taken twice");
    ++taken;
  };
  auto thief = [&](Ring& from, Ring& other, Ring& own) {
    while (taken < kItems) {
      std::uint32_t moved = 0;
      Item* item = from.steal_into(own, moved);
      if (item == nullptr) item = other.steal_into(own, moved);
      if (item == nullptr) continue;
      take(item);
      while (Item* more = own.pop()) take(more);
    }
  };
  Watchdog watchdog("sched_ring_wrap");
  std::thread one([&] { thief(*mine, *second, *first); });
  std::thread two([&] { thief(*first, *mine, *second); });
  for (Item& item : items) {
    while (mine->push(&item) == 0) {
      mine->move_half(*older);
      while (Item* popped = older->pop()) take(popped);
    }
    if (Item* popped = mine->pop()) take(popped);  // against the thieves for the last one
  }
  while (Item* popped = mine->pop()) take(popped);
  one.join();
  two.join();
  for (Item& item : items) cr_assert_eq(item.taken, 1);
}

Test(Sched, sched_lost_blocking) {
  for (int i = 0; i < rounds(300, 100000); ++i) {
    Watchdog watchdog("sched_lost_blocking");
    noria_runtime* rt = make(1);
    noria_future* job = nullptr;
    NORIA_OK_CALL(noria_spawn_blocking(
        rt, [](void*) { return 5; }, nullptr, nullptr, &job));
    NORIA_OK_CALL(noria_future_wait(job, NORIA_FOREVER));
    int32_t answer = 0;
    NORIA_OK_CALL(noria_future_result(job, &answer, sizeof answer));
    cr_assert_eq(answer, 5);
    NORIA_OK_CALL(noria_future_drop(job));
    NORIA_OK_CALL(noria_runtime_free(rt));
  }
  await_nothing_alive("sched_lost_blocking");
}

namespace {

// Its drop does everything that a drop may do: under an engine lock it would hang.
struct Meddler {
  noria_runtime* rt = nullptr;
  noria_task* other = nullptr;   // pending
  noria_waker* waker = nullptr;  // of a task
  std::atomic<int>* drops = nullptr;
  bool shut = false;

  explicit Meddler(std::atomic<int>* counter) : drops(counter) {}
  Meddler(Meddler&& from) noexcept
      : rt(from.rt), other(from.other), waker(from.waker), drops(std::exchange(from.drops, nullptr)), shut(from.shut) {}
  ~Meddler() {
    if (drops == nullptr) return;
    if (waker != nullptr) NORIA_OK_CALL(noria_waker_wake_by_ref(waker));
    int32_t status = noria_spawn(rt, &kReady, nullptr, nullptr);
    NORIA_CHECK(status == NORIA_OK || status == -NORIA_ESHUTDOWN, "spawn: %s", noria_error_name(status));
    if (other != nullptr) {
      ForeignWaker foreign;
      noria_future* join = nullptr;
      NORIA_OK_CALL(noria_task_join(other, &join));
      NORIA_CHECK(noria_future_poll(join, foreign.cx()) >= 0, "poll of a join");
      NORIA_OK_CALL(noria_future_drop(join));
      NORIA_OK_CALL(noria_task_abort(other));
    }
    if (shut) {
      status = noria_runtime_shutdown(rt, 0, nullptr);
      NORIA_CHECK(status == NORIA_PENDING, "shutdown from a drop: %s", noria_error_name(status));
    }
    ++*drops;
  }
  int32_t operator()(const noria_cx*) { return NORIA_PENDING; }
};

}  // namespace

Test(Sched, sched_drop_under_lock) {
  for (std::uint32_t workers : {0u, 1u, 2u}) {
    for (int how = 0; how < 4;
         ++how) {  // aborted, aborted from outside of a worker, in a shutdown, one that shuts down
      Watchdog watchdog("sched_drop_under_lock");
      Lane lane{"", workers};
      lane.rt = make(workers);
      std::atomic<int> drops{0};
      KeptWaker kept;
      std::atomic<bool> waits{false};
      noria_task* woken = spawn(lane.rt, [&](const noria_cx* cx) -> int32_t {
        if (!kept.kept()) kept.keep(cx);
        waits = true;
        return NORIA_PENDING;
      });
      lane.until([&] { return waits.load(); }, "the task that is woken");
      noria_waker raw = *kept.raw();
      noria_task* other = spawn(lane.rt, [](const noria_cx*) -> int32_t { return NORIA_PENDING; });
      constexpr int kMeddlers = 20;
      std::vector<noria_task*> tasks;
      for (int i = 0; i < kMeddlers; ++i) {
        Meddler meddler(&drops);
        meddler.rt = lane.rt;
        meddler.other = other;
        meddler.waker = &raw;
        meddler.shut = how == 3;
        tasks.push_back(spawn(lane.rt, std::move(meddler)));
      }
      auto abort_all = [&] {
        for (noria_task* task : tasks) NORIA_OK_CALL(noria_task_abort(task));
      };
      if (how == 0) lane.inside(abort_all);
      if (how == 1) abort_all();
      if (how == 3) NORIA_OK_CALL(noria_task_abort(tasks[0]));
      if (how < 2) lane.until([&] { return drops == kMeddlers; }, "the drops");
      if (how == 3 && workers != 0)
        lane.until([&] { return drops == kMeddlers; }, "the drops of a shutdown from inside");
      int32_t status = noria_runtime_shutdown(lane.rt, 8 * kSecond, nullptr);
      NORIA_STATUS(status, NORIA_OK);
      NORIA_CHECK(drops == kMeddlers, "%d drops", drops.load());
      kept.drop();
      for (noria_task* task : tasks) NORIA_OK_CALL(noria_task_detach(task));
      NORIA_OK_CALL(noria_task_detach(woken));
      NORIA_OK_CALL(noria_task_detach(other));
      NORIA_OK_CALL(noria_runtime_release(lane.rt));
      await_nothing_alive("sched_drop_under_lock");
    }
  }
}

Test(Sched, sched_last_handle_inside) {
  for (int round = 0; round < rounds(20, 1000); ++round) {
    for (std::uint32_t workers : {1u, 2u, 4u}) {
      Watchdog watchdog("sched_last_handle_inside");
      {  // a task
        noria_runtime* rt = make(workers);
        spawn_detached(rt,
                       [rt](const noria_cx*) -> int32_t { return noria_runtime_free(rt) < 0 ? -EIO : NORIA_READY; });
      }
      await_nothing_alive("freed from a task");
      {  // a task's drop
        noria_runtime* rt = make(workers);
        noria_task* task = spawn(rt, [guard = std::shared_ptr<void>(nullptr, [rt](void*) {
                                        NORIA_OK_CALL(noria_runtime_free(rt));
                                      })](const noria_cx*) -> int32_t { return NORIA_PENDING; });
        NORIA_OK_CALL(noria_task_abort(task));
        NORIA_OK_CALL(noria_task_detach(task));
      }
      await_nothing_alive("freed from a drop");
      {  // a blocking job
        noria_runtime* rt = make(workers);
        NORIA_OK_CALL(noria_spawn_blocking(
            rt, [](void* arg) { return noria_runtime_free(static_cast<noria_runtime*>(arg)); }, nullptr, rt, nullptr));
      }
      await_nothing_alive("freed from a job");
      {  // the callback of a timer
        noria_runtime* rt = make(workers);
        noria_future* sleep = nullptr;
        NORIA_OK_CALL(noria_sleep(rt, kMilli, &sleep));
        noria_delivery delivery{};
        delivery.size = sizeof delivery;
        delivery.callback = [](void* arg, noria_future*) {
          NORIA_OK_CALL(noria_runtime_free(static_cast<noria_runtime*>(arg)));
        };
        delivery.arg = rt;
        delivery.rt = rt;
        NORIA_OK_CALL(noria_future_deliver(sleep, &delivery));
      }
      await_nothing_alive("freed from a timer's callback");
      {  // a foreign waker
        noria_runtime* rt = make(workers);
        Latch freed;
        ForeignWaker foreign([&] {
          NORIA_OK_CALL(noria_runtime_free(rt));
          freed.count_down();
        });
        noria_future* sleep = nullptr;
        NORIA_OK_CALL(noria_sleep(rt, kMilli, &sleep));
        if (noria_future_on_ready(sleep, foreign.waker()) == NORIA_READY)
          NORIA_OK_CALL(noria_runtime_free(rt));
        else
          freed.wait("a foreign waker that frees the runtime");
        NORIA_OK_CALL(noria_future_drop(sleep));
        await_nothing_alive("freed from a foreign waker");
      }
    }
  }
}

Test(Sched, sched_lifo_starve) {
  on_each_runtime([](Lane& lane) {
    std::atomic<bool> end{false};
    std::atomic<std::uint64_t> polls{0};
    // Two that wake each other through the LIFO slot for as long as the third has not run. They start on one worker.
    KeptWaker kept[2];
    auto player = [&](int self) {
      return [&, self](const noria_cx* cx) -> int32_t {
        ++polls;
        if (!kept[self].kept()) kept[self].keep(cx);
        bool over = end;
        if (kept[1 - self].kept()) kept[1 - self].wake_by_ref();
        return over ? NORIA_READY : NORIA_PENDING;
      };
    };
    noria_strand* strand = nullptr;
    NORIA_OK_CALL(noria_strand_new(lane.rt, &strand));
    noria_task* ping = spawn_on(strand, player(0));
    noria_task* pong = spawn_on(strand, player(1));
    std::vector<noria_task*> third;
    lane.inside([&] {
      for (int i = 0; i < 8; ++i)
        third.push_back(spawn(lane.rt, [](const noria_cx* cx) mutable -> int32_t { return (void)cx, NORIA_READY; }));
    });
    for (noria_task* task : third) cr_assert_eq(lane.join(task).kind, NORIA_JOIN_DONE);
    end = true;
    kept[0].wake_by_ref();
    kept[1].wake_by_ref();
    lane.join(ping);
    lane.join(pong);
    NORIA_OK_CALL(noria_strand_drop(strand));
  });
}

// On one worker, without a strand: at most three polls in a row come from the LIFO slot while the ring has tasks (P5).
Test(Sched, sched_lifo_starve_three_in_a_row) {
  on_runtimes(kOne | kCurrent, [](Lane& lane) {
    KeptWaker kept[2];
    int in_a_row = 0, most = 0;
    bool end = false;
    noria_task* pair[2];
    noria_task* third = nullptr;
    lane.inside([&] {
      for (int self = 0; self < 2; ++self) {
        pair[self] = spawn(lane.rt, [&, self](const noria_cx* cx) -> int32_t {
          most = ++in_a_row > most ? in_a_row : most;
          if (!kept[self].kept()) kept[self].keep(cx);
          if (kept[1 - self].kept()) kept[1 - self].wake_by_ref();
          return end ? NORIA_READY : NORIA_PENDING;
        });
      }
      third = spawn(lane.rt, [&, polls = 0](const noria_cx* cx) mutable -> int32_t {
        in_a_row = 0;
        if (++polls < 1000) return noria_yield(cx);
        end = true;
        for (KeptWaker& waker : kept) waker.wake_by_ref();
        return NORIA_READY;
      });
    });
    lane.join(third);
    lane.join(pair[0]);
    lane.join(pair[1]);
    NORIA_CHECK(most <= 3 + 2, "P5: %d polls in a row from the LIFO slot",
                most);  // and two that were queued at the start
  });
}

// Two branches that are always ready: the first is always chosen, and when the budget ends at it the second is not tried.
Test(Sched, sched_budget_lie) {
  on_each_runtime([](Lane& lane) {
    noria_task* done = spawn(lane.rt, [](const noria_cx*) -> int32_t { return NORIA_READY; });
    lane.wait_for(done);
    noria_future* branches[2];
    for (noria_future*& branch : branches) NORIA_OK_CALL(noria_task_join(done, &branch));
    int chosen[2] = {0, 0}, ends = 0;
    lane.join(spawn(lane.rt, [&](const noria_cx* cx) -> int32_t {
      while (chosen[0] < 1000) {
        std::size_t index = 9;
        int32_t status = noria_select_poll(branches, 2, cx, &index);
        if (status == NORIA_PENDING) {
          NORIA_STATUS(noria_budget_spent(), 1);
          ++ends;
          return NORIA_PENDING;
        }
        NORIA_OK_CALL(status);
        ++chosen[index];
      }
      return NORIA_READY;
    }));
    cr_assert_eq(chosen[1], 0);
    cr_assert_geq(ends, 7);
    for (noria_future* branch : branches) NORIA_OK_CALL(noria_future_drop(branch));
    NORIA_OK_CALL(noria_task_detach(done));
  });
}

Test(Sched, sched_waker_race) {
  on_each_runtime([](Lane& lane) {
    for (int i = 0; i < rounds(150, 20000); ++i) {
      KeptWaker kept[3];
      std::atomic<bool> ready{false}, end{false};
      noria_task* task = spawn(lane.rt, [&](const noria_cx* cx) -> int32_t {
        if (!ready) {
          for (KeptWaker& waker : kept) waker.keep(cx);
          ready = true;
        }
        return end ? NORIA_READY : NORIA_PENDING;
      });
      lane.until([&] { return ready.load(); }, "the first poll");
      noria_future* join = nullptr;
      NORIA_OK_CALL(noria_task_join(task, &join));
      std::atomic<int> here{0};
      auto at_once = [&](auto action) {
        return std::thread([&here, action] {
          ++here;
          while (here < 5) std::this_thread::yield();
          action();
        });
      };
      std::thread threads[] = {
          at_once([&] { kept[0].wake(); }),
          at_once([&] { kept[1].drop(); }),
          at_once([&] {
            NORIA_OK_CALL(noria_task_abort(task));
            NORIA_OK_CALL(noria_task_detach(task));
          }),
          at_once([&] { end = true, kept[2].wake(); }),
          at_once([&] { NORIA_OK_CALL(noria_future_drop(join)); }),
      };
      for (std::thread& thread : threads) thread.join();
      lane.until([&] { return Metrics(lane.rt).live_tasks == 0; }, "the end of the task");
    }
  });
}

// Completions and wakes go through queues, not through the stack.
Test(Sched, sched_deep_wake) {
  on_each_runtime([](Lane& lane) {
    // Two million awaits that are ready at once.
    noria_task* done = spawn(lane.rt, [](const noria_cx*) -> int32_t { return NORIA_READY; });
    lane.wait_for(done);
    int awaits = 0, wanted = rounds(200000, 2000000);
    lane.join(spawn(lane.rt, [&](const noria_cx* cx) -> int32_t {
      while (awaits < wanted) {
        if (int32_t status = noria_task_poll_join(done, cx, nullptr); status != NORIA_READY) return status;
        ++awaits;
      }
      return NORIA_READY;
    }));
    NORIA_OK_CALL(noria_task_detach(done));
    // A chain in which the end of each wakes the next.
    std::vector<noria_task*> chain;
    KeptWaker first;
    std::atomic<bool> go{false}, waits{false};
    chain.push_back(spawn(lane.rt, [&](const noria_cx* cx) -> int32_t {
      if (go) return NORIA_READY;
      first.keep(cx);
      waits = true;
      return NORIA_PENDING;
    }));
    for (int i = 0; i < 50000; ++i) {
      noria_task* before = chain.back();
      chain.push_back(spawn(
          lane.rt, [before](const noria_cx* cx) -> int32_t { return noria_task_poll_join(before, cx, nullptr); }));
    }
    lane.until([&] { return waits.load(); }, "the head of the chain");
    go = true;
    first.wake();
    for (auto task = chain.rbegin(); task != chain.rend(); ++task) lane.join(*task);
  });
}

// A ping-pong and one hot task are no reason to wake another worker, and a wake of one task wakes one worker at most.
Test(Sched, sched_over_wake) {
  on_runtimes(kTwo | kFour, [](Lane& lane) {
    lane.inside([] {});
    constexpr int kPolls = 20000;
    Metrics before(lane.rt);
    lane.join(spawn(lane.rt, [polls = 0](const noria_cx* cx) mutable -> int32_t {
      return ++polls < kPolls ? noria_yield(cx) : NORIA_READY;
    }));
    Metrics hot(lane.rt);
    NORIA_CHECK(hot.wakes_sent - before.wakes_sent <= 5, "%llu workers woken for one hot task",
                static_cast<unsigned long long>(hot.wakes_sent - before.wakes_sent));
    KeptWaker kept[2];
    std::atomic<int> turns{0};
    noria_task* pair[2];
    lane.inside([&] {
      for (int self = 0; self < 2; ++self) {
        pair[self] = make_task(lane.rt, [&, self](const noria_cx* cx) -> int32_t {
          if (!kept[self].kept()) kept[self].keep(cx);
          int turn = ++turns;
          if (kept[1 - self].kept()) kept[1 - self].wake_by_ref();
          return turn < kPolls ? NORIA_PENDING : NORIA_READY;
        });
      }
      for (noria_task* task : pair) NORIA_OK_CALL(noria_task_start(task));
    });
    lane.join(pair[0]);
    kept[1].wake_by_ref();
    lane.join(pair[1]);
    Metrics after(lane.rt);
    NORIA_CHECK(after.wakes_sent - hot.wakes_sent <= 20, "%llu workers woken in a ping-pong of %d turns",
                static_cast<unsigned long long>(after.wakes_sent - hot.wakes_sent), kPolls);
    NORIA_CHECK(after.parks - hot.parks <= kPolls / 20, "%llu parks in a ping-pong of %d turns",
                static_cast<unsigned long long>(after.parks - hot.parks), kPolls);
  });
}

Test(Sched, sched_nested_block_on) {
  on_each_runtime([](Lane& lane) {
    lane.inside([&] { NORIA_STATUS(noria_runtime_block_on(lane.rt, &kReady, nullptr, nullptr), -NORIA_ENESTED); });
    lane.run([&](const noria_cx*) -> int32_t {
      NORIA_STATUS(noria_runtime_block_on(lane.rt, &kReady, nullptr, nullptr), -NORIA_ENESTED);
      return NORIA_READY;
    });
  });
}

Test(Sched, sched_throwing_poll) {
  on_each_runtime([](Lane& lane) {
    for (int i = 0; i < 100; ++i) {
      noria_join_result how = lane.join(spawn(lane.rt, [i](const noria_cx* cx) mutable -> int32_t {
        if (i % 2 == 0) throw std::runtime_error("from a poll");
        i = 0;
        return noria_yield(cx);
      }));
      cr_assert(how.kind == NORIA_JOIN_FAILED && how.error == -NORIA_ETHROWN);
    }
    lane.inside([] {});
  });
}
