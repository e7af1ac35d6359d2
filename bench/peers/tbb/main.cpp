// main.cpp: tbb-bench WORKLOAD [--workers N] [--ops N] [--batch N] [--warmup N] [...]
//
// The workloads of bench/micro that oneTBB knows, in its task groups and parallel_invoke. The root is the thread that starts a batch and, as a
// worker of the arena, runs tasks itself while it waits.
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_invoke.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <atomic>

#include "common/peer.hpp"
#include "common/tree.hpp"

namespace {

using tbb::task_group;

/// Every task that was started passes it once.
class Count {
 public:
  // ORDER: relaxed, starting the tasks publishes it.
  void expect(std::uint64_t passes) { remaining_.store(passes, std::memory_order_relaxed); }

  // ORDER: acq_rel, as in every other contender, though the group's own counter would publish the work too.
  void pass() { remaining_.fetch_sub(1, std::memory_order_acq_rel); }

  void check() const { BENCH_CHECK(remaining_.load() == 0); }

 private:
  std::atomic<std::uint64_t> remaining_{0};
};

/// Calls begin(group, count) in rounds on a worker of the arena, and waits for the group after each.
template <typename Begin>
void rounds(peer::Run& run, std::uint64_t passes, Begin begin) {
  const tbb::global_control workers(tbb::global_control::max_allowed_parallelism, run.workers);
  tbb::task_arena arena(static_cast<int>(run.workers));
  arena.execute([&] {
    task_group group;
    Count count;
    run.start();
    for (std::uint64_t done = 0; done < run.ops; done += run.batch) {
      count.expect(passes);
      begin(group, count);
      group.wait();
      count.check();
    }
    run.stop();
  });
}

void spawn_many(peer::Run& run) {
  rounds(run, run.batch, [&](task_group& group, Count& count) {
    for (std::uint64_t i = 0; i < run.batch; i++) group.run([&count] { count.pass(); });
  });
}

void unbalanced_producer(peer::Run& run) {
  const std::uint64_t work = run.option("--work", 400);
  rounds(run, run.batch, [&](task_group& group, Count& count) {
    for (std::uint64_t i = 0; i < run.batch; i++) {
      group.run([&count, i, work] {
        BENCH_CHECK(bench_work(i, work) != 0);  // keeps the work from being left out
        count.pass();
      });
    }
  });
}

void chain(task_group& group, Count& count, std::uint64_t left) {
  group.run([&group, &count, left] {
    if (left == 1) {
      count.pass();
    } else {
      chain(group, count, left - 1);
    }
  });
}

void chained_spawn(peer::Run& run) {
  rounds(run, 1, [&](task_group& group, Count& count) { chain(group, count, run.batch); });
}

/// The cheapest fork and join that oneTBB has: half of the cost of a task group a call.
std::uint64_t fib(std::uint64_t n, tbb::task_group_context& context) {
  if (n < 2) return n;
  std::uint64_t one = 0, two = 0;
  tbb::parallel_invoke([&] { two = fib(n - 2, context); }, [&] { one = fib(n - 1, context); }, context);
  return one + two;
}

void fib_run(peer::Run& run, std::uint64_t n) {
  const peer::Fib expected = peer::fib_expected(n);
  std::uint64_t value = 0;
  tbb::task_group_context context;
  run.ops = run.batch = expected.forks;
  rounds(run, 0, [&](task_group&, Count&) { value = fib(n, context); });
  BENCH_CHECK(value == expected.value);
}

void fork_join_fib(peer::Run& run) {
  const std::uint64_t n = run.option("--n", 32);
  fib_run(run, n - 4);  // a warm-up
  fib_run(run, n);
}

void node(task_group& group, Count& count, std::uint64_t id) {
  group.run([&group, &count, id] {
    const std::uint64_t hash = bench_work(id, peer::kNodeHashes);
    for (std::uint64_t i = 0; i < peer::children_of(hash); i++) node(group, count, hash + i);
    count.pass();
  });
}

void tree_run(peer::Run& run, std::uint64_t roots, std::uint64_t seed) {
  run.ops = run.batch = peer::tree_nodes(roots, seed);
  rounds(run, run.ops, [&](task_group& group, Count& count) {
    for (std::uint64_t i = 0; i < roots; i++) node(group, count, peer::root_id(seed, i));
  });
}

void uneven_tree(peer::Run& run) {
  const std::uint64_t roots = run.option("--roots", 4000), seed = run.option("--seed", 1);
  tree_run(run, roots / 10, seed);  // a warm-up
  tree_run(run, roots, seed);
}

}  // namespace

int main(int argc, char** argv) {
  return peer::run_main(argc, argv, "tbb",
                        {{"spawn_many", 1000000, 10000, spawn_many},
                         {"unbalanced_producer", 100000, 10000, unbalanced_producer},
                         {"chained_spawn", 1000000, 1000000, chained_spawn},
                         {"fork_join_fib", 1, 1, fork_join_fib, true},
                         {"uneven_tree", 1, 1, uneven_tree, true}});
}
