// main.cpp: taskflow-bench WORKLOAD [--workers N] [--ops N] [--batch N] [--warmup N] [...]
//
// The workloads of bench/micro that Taskflow knows, in its asynchronous tasks (not its graphs, which are for work that is
// known before it begins).
#include <atomic>
#include <functional>
#include <taskflow/taskflow.hpp>

#include "common/peer.hpp"
#include "common/remote.hpp"
#include "common/tree.hpp"

namespace {

/// The executor of the process: made before the first run, alive through all.
tf::Executor& the_executor(unsigned workers) {
  static tf::Executor executor(workers);
  return executor;
}

/// The root: a task that begins a batch, and is spawned again by the last pass of it. The root itself passes too, when it has
/// begun them all: two of its steps never overlap.
class Rounds {
 public:
  Rounds(peer::Run& measured, std::uint64_t count, std::function<void(Rounds&)> begin)
      : run(measured), executor(the_executor(measured.workers)), passes(count), begin_(std::move(begin)) {}

  /// Returns when all rounds are done; measured from inside.
  void wait() {
    executor.silent_async([this] { step(); });
    executor.wait_for_all();
    BENCH_CHECK(finished_);
  }

  void pass() {
    // ORDER: acq_rel, each pass releases its work to the root.
    if (remaining_.fetch_sub(1, std::memory_order_acq_rel) == 1) executor.silent_async([this] { step(); });
  }

  peer::Run& run;
  tf::Executor& executor;
  const std::uint64_t passes;

 private:
  void step() {
    if (done_ == 0) run.start();
    if (done_ >= run.ops) {
      run.stop();
      finished_ = true;
      return;
    }
    done_ += run.batch;
    // ORDER: relaxed, who will pass is spawned after this, and spawning publishes it.
    remaining_.store(passes + 1, std::memory_order_relaxed);
    begin_(*this);
    pass();
  }

  std::atomic<std::uint64_t> remaining_{0};
  std::uint64_t done_ = 0;
  bool finished_ = false;
  std::function<void(Rounds&)> begin_;
};

void spawn_many(peer::Run& run) {
  Rounds(run, run.batch, [](Rounds& r) {
    for (std::uint64_t i = 0; i < r.passes; i++) r.executor.silent_async([&r] { r.pass(); });
  }).wait();
}

void unbalanced_producer(peer::Run& run) {
  const std::uint64_t work = run.option("--work", 400);
  Rounds(run, run.batch, [work](Rounds& r) {
    for (std::uint64_t i = 0; i < r.passes; i++) {
      r.executor.silent_async([&r, i, work] {
        BENCH_CHECK(bench_work(i, work) != 0);  // keeps the work from being left out
        r.pass();
      });
    }
  }).wait();
}

void chain(Rounds& r, std::uint64_t left) {
  r.executor.silent_async([&r, left] {
    if (left == 1) {
      r.pass();
    } else {
      chain(r, left - 1);
    }
  });
}

void chained_spawn(peer::Run& run) {
  Rounds(run, 1, [](Rounds& r) { chain(r, r.run.batch); }).wait();
}

std::uint64_t fib(std::uint64_t n, tf::Runtime& runtime) {
  if (n < 2) return n;
  std::uint64_t one = 0;
  runtime.silent_async([&one, n](tf::Runtime& own) { one = fib(n - 1, own); });
  const std::uint64_t two = fib(n - 2, runtime);
  runtime.corun_all();
  return one + two;
}

void fib_run(peer::Run& run, std::uint64_t n) {
  const peer::Fib expected = peer::fib_expected(n);
  std::uint64_t value = 0;
  run.ops = run.batch = expected.forks;
  the_executor(run.workers)
      .async([&](tf::Runtime& runtime) {
        run.start();
        value = fib(n, runtime);
        run.stop();
      })
      .get();
  BENCH_CHECK(value == expected.value);
}

void fork_join_fib(peer::Run& run) {
  const std::uint64_t n = run.option("--n", 32);
  fib_run(run, n - 4);  // a warm-up
  fib_run(run, n);
}

void node(Rounds& r, std::uint64_t id) {
  r.executor.silent_async([&r, id] {
    const std::uint64_t hash = bench_work(id, peer::kNodeHashes);
    for (std::uint64_t i = 0; i < peer::children_of(hash); i++) node(r, hash + i);
    r.pass();
  });
}

void tree_run(peer::Run& run, std::uint64_t roots, std::uint64_t seed) {
  run.ops = run.batch = peer::tree_nodes(roots, seed);
  Rounds(run, run.ops, [=](Rounds& r) {
    for (std::uint64_t i = 0; i < roots; i++) node(r, peer::root_id(seed, i));
  }).wait();
}

void uneven_tree(peer::Run& run) {
  const std::uint64_t roots = run.option("--roots", 4000), seed = run.option("--seed", 1);
  tree_run(run, roots / 10, seed);  // a warm-up
  tree_run(run, roots, seed);
}

void spawn_remote(peer::Run& run) {
  peer::spawn_remote(run, [&executor = the_executor(run.workers)](auto task) { executor.silent_async(task); });
}

}  // namespace

int main(int argc, char** argv) {
  return peer::run_main(argc, argv, "taskflow",
                        {{"spawn_many", 1000000, 10000, spawn_many},
                         {"spawn_remote", 1000000, 10000, spawn_remote},
                         {"unbalanced_producer", 100000, 10000, unbalanced_producer},
                         {"chained_spawn", 1000000, 1000000, chained_spawn},
                         {"fork_join_fib", 1, 1, fork_join_fib, true},
                         {"uneven_tree", 1, 1, uneven_tree, true}});
}
