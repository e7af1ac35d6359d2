// The join cell beside the task's word: a task that completes, a handle that polls for it with one waker and then another, and somebody who asks
// for the same completion through the flag alone, in random schedules. Built three times: as it is; with NORIA_PLANT_JOIN 1, where the
// cell is published without its waker; and 2, where who finds the flag set looks at the word without changing it.
// What must hold: a handle whose last answer was PENDING is woken through the waker that it left last; every waker is woken or dropped
// once; who is told READY sees the outcome (W3 of waker.hpp).
#include <cstdio>
#include <memory>

#include "noria/waker.h"
#include "task/state.hpp"

// Relacy's variables hold numbers and pointers: that of a waker watches the pointer in it.
template <>
class rl::var<noria_waker> {
 public:
  struct Access {
    operator noria_waker() const {
      (void)static_cast<void*>(of.data_(info));
      return of.raw_;
    }
    Access& operator=(const noria_waker& waker) {
      of.data_(info) = waker.data;
      of.raw_ = waker;
      return *this;
    }
    var& of;
    debug_info info;
  };
  Access operator()(debug_info_param info) { return {*this, info}; }

 private:
  var<void*> data_;
  noria_waker raw_{};
};

#undef delete  // relacy's macro stands in the way of deleted functions
#include "task/waker.hpp"

namespace {

using noria::task::StateWord;
using noria::task::ToComplete;
using noria::task::WakerCell;

struct Told {
  rl::atomic<int> wakes;
  rl::atomic<int> live;  // clones that are neither woken nor dropped
};

Told* told(const noria_waker* waker) { return static_cast<Told*>(waker->data); }

const noria_waker_vtable kVtable = {
    [](const noria_waker* waker, noria_waker* out) {
      told(waker)->live.fetch_add(1, rl::mo_relaxed, $);
      *out = *waker;
    },
    [](noria_waker* waker) {
      told(waker)->wakes.fetch_add(1, rl::mo_relaxed, $);
      told(waker)->live.fetch_sub(1, rl::mo_relaxed, $);
    },
    [](const noria_waker* waker) { told(waker)->wakes.fetch_add(1, rl::mo_relaxed, $); },
    [](noria_waker* waker) { told(waker)->live.fetch_sub(1, rl::mo_relaxed, $); },
};

struct JoinModel : rl::test_suite<JoinModel, 3> {
  StateWord word;
  union {
    WakerCell cell;  // from before() to after()
  };
  Told tellers[2];
  rl::var<int> outcome;
  int left_last;  // index of the waker of the last PENDING, -1: it was READY; the handle's thread, then after()

  JoinModel() {}
  ~JoinModel() {}

  void before() {
    word.init(StateWord::kRunning | StateWord::kJoinInterest, 3);  // itself, the handle, who asks besides
    std::construct_at(&cell);
    for (Told& one : tellers) {
      one.wakes.store(0, rl::mo_relaxed, $);
      one.live.store(0, rl::mo_relaxed, $);
    }
    VAR(outcome) = 0;
    left_last = -1;
  }

  bool ask() {
#if defined(NORIA_PLANT_JOIN) && NORIA_PLANT_JOIN == 2
    std::uint64_t now = word.load();
    if ((now & StateWord::kJoinWaker) != 0) return (now & StateWord::kComplete) != 0;
#endif
    return word.ask_for_completion();
  }

  // --- task.cpp
  bool poll_join(const noria_waker& waker) {
    if ((word.load() & StateWord::kComplete) == 0) {
      if (cell.set_ahead(waker)) {
        if (!ask()) return false;
        cell.clear();
      }
    }
    RL_ASSERT(VAR(outcome) == 1);
    return true;
  }

  void complete() {
    VAR(outcome) = 1;
    bool kept = false;
    ToComplete done = word.to_complete(false, kept);
    if (done.notify) cell.complete();
  }

  void thread(unsigned index) {
    if (index == 0) return complete();
    if (index == 1) {
      (void)word.ask_for_completion();
      return;
    }
    for (int i = 0; i < 2; ++i) {
      noria_waker waker{&kVtable, &tellers[i], nullptr};
      if (poll_join(waker)) {
        left_last = -1;
        return;
      }
      left_last = i;
    }
  }

  void after() {
    if (left_last >= 0) RL_ASSERT(tellers[left_last].wakes.load(rl::mo_relaxed, $) == 1);
    std::destroy_at(&cell);
    for (Told& one : tellers) {
      RL_ASSERT(one.live.load(rl::mo_relaxed, $) == 0);
      RL_ASSERT(one.wakes.load(rl::mo_relaxed, $) <= 1);
    }
  }
};

}  // namespace

int main() {
  rl::test_params params;
  params.search_type = rl::sched_random;
  params.iteration_count = 200000;
#ifdef NORIA_PLANT_JOIN
  rl::simulate<JoinModel>(params);
  bool found = params.test_result != rl::test_result_success;
  std::printf("the planted bug was %sfound\n", found ? "" : "not ");
  return found ? 0 : 1;
#else
  return rl::simulate<JoinModel>(params) ? 0 : 1;
#endif
}
