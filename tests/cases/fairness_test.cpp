// P5 where queues meet: what had spilled over from a ring, what comes from outside, and what stands behind a stuck poll.
#include <criterion/criterion.h>

#include <deque>

#include "support/runtime_fixture.hpp"

using namespace noria::test;

namespace {

// Two tasks that a foreign thread wakes in turn, each during the poll of the other: the inject queue is never empty at a look.
class OutsidePair {
 public:
  explicit OutsidePair(Lane& lane) : lane_(lane), thread_([this] { wake_in_turn(); }) {
    for (int me : {1, 0}) {
      tasks_[me] = spawn(lane.rt, [this, me](const noria_cx* cx) -> int32_t { return poll(me, cx); });
      if (me == 1) lane.until([this] { return known_[1].load(); }, "the second of the pair");
    }
  }
  ~OutsidePair() {
    end_ = true;
    thread_.join();
    for (int me : {0, 1}) {
      NORIA_OK_CALL(noria_waker_wake(&wakers_[me]));
      lane_.join(tasks_[me]);
    }
  }

 private:
  int32_t poll(int me, const noria_cx* cx) {
    if (!known_[me]) {
      NORIA_OK_CALL(noria_waker_clone(cx->waker, &wakers_[me]));
      known_[me] = true;
      if (me == 1) return NORIA_PENDING;
    }
    wanted_ = 1 - me;
    while (wanted_ >= 0 && !end_) std::this_thread::yield();
    return end_ ? NORIA_READY : NORIA_PENDING;
  }
  void wake_in_turn() {
    while (!end_) {
      int me = wanted_;
      if (me < 0 || !known_[me]) {
        std::this_thread::yield();
        continue;
      }
      NORIA_OK_CALL(noria_waker_wake_by_ref(&wakers_[me]));
      wanted_ = -1;
    }
  }

  Lane& lane_;
  std::atomic<bool> end_{false};
  std::atomic<int> wanted_{-1};
  std::atomic<bool> known_[2]{};
  noria_waker wakers_[2]{};
  noria_task* tasks_[2]{};
  std::thread thread_;
};

struct Yielders {
  Yielders(Lane& lane, std::size_t count, std::size_t stay) : lane_(lane), polls_(stay) {
    for (std::size_t i = 0; i < count; ++i) {
      tasks_.push_back(spawn(lane.rt, [this, i](const noria_cx* cx) -> int32_t {
        if (i < polls_.size()) ++polls_[i];
        if (end_ || (few_ && i >= polls_.size())) return NORIA_READY;
        return noria_yield(cx);
      }));
    }
  }
  ~Yielders() {
    end_ = true;
    for (noria_task* task : tasks_) lane_.join(task);
  }
  // Those that stay are alone from now on.
  void thin_out() { few_ = true; }
  // Each of those that stay is polled again.
  void each_goes_on(const char* what) {
    std::vector<std::uint64_t> seen(polls_.begin(), polls_.end());
    Watchdog watchdog(what);
    for (std::size_t i = 0; i < seen.size(); ++i) {
      while (polls_[i] == seen[i]) std::this_thread::yield();
    }
  }

 private:
  Lane& lane_;
  std::atomic<bool> end_{false}, few_{false};
  std::deque<std::atomic<std::uint64_t>> polls_;
  std::vector<noria_task*> tasks_;
};

}  // namespace

// 6,000 fill the ring, the longer one behind it and the shard; then what comes into the shard is younger than the ring.
Test(Fairness, P5_what_comes_from_outside_does_not_go_before_the_ring_for_ever) {
  on_runtimes(kOne, [](Lane& lane) {
    Yielders yielders(lane, 6000, 200);
    yielders.each_goes_on("all of them");
    OutsidePair pair(lane);
    yielders.thin_out();
    for (int i = 0; i < 5; ++i) yielders.each_goes_on("P5: the ring, behind what comes from outside");
  });
}

Test(Fairness, P5_a_look_at_the_inject_queue_before_each_poll_leaves_a_turn_to_the_ring) {
  noria_runtime_options options{};
  options.inject_interval = 1;
  on_runtimes(
      kOne,
      [](Lane& lane) {
        Yielders yielders(lane, 20, 20);
        OutsidePair pair(lane);
        for (int i = 0; i < 5; ++i) yielders.each_goes_on("P5: the ring, with inject_interval 1");
      },
      options);
}

// The other worker always has something to do, so that no sentry watches.
Test(Fairness, P5_queue_behind_a_stuck_poll_beside_a_busy_worker) {
  on_runtimes(kTwo, [](Lane& lane) {
    Yielders yielders(lane, 20, 20);
    for (int i = 0; i < rounds(5, 100); ++i) {
      lane.join(spawn(lane.rt, [&](const noria_cx*) -> int32_t {
        Latch ran(300);
        for (int t = 0; t < 300; ++t)
          spawn_detached(lane.rt, [&](const noria_cx*) -> int32_t { return ran.count_down(), NORIA_READY; });
        ran.wait("P5: the queue of a stuck worker beside a busy one");
        return NORIA_READY;
      }));
    }
    yielders.each_goes_on("the yielders");
  });
}
