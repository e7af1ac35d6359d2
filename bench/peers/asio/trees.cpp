// trees.cpp: handlers that post handlers, in callbacks.
#include "common/tree.hpp"
#include "rounds.hpp"

void unbalanced_producer(peer::Run& run) {
  const std::uint64_t work = run.option("--work", 400);
  Rounds(run, run.batch, [work](Rounds& r) {
    for (std::uint64_t i = 0; i < r.passes; i++) {
      asio::post(r.context, [&r, i, work] {
        BENCH_CHECK(bench_work(i, work) != 0);  // keeps the work from being left out
        r.pass();
      });
    }
  }).wait();
}

namespace {

struct Node {
  Rounds* rounds;
  std::uint64_t id;

  void operator()() const {
    const std::uint64_t hash = bench_work(id, peer::kNodeHashes);
    for (std::uint64_t i = 0; i < peer::children_of(hash); i++) asio::post(rounds->context, Node{rounds, hash + i});
    rounds->pass();
  }
};

void tree_run(peer::Run& run, std::uint64_t roots, std::uint64_t seed) {
  run.ops = run.batch = peer::tree_nodes(roots, seed);
  Rounds(run, run.ops, [=](Rounds& r) {
    for (std::uint64_t i = 0; i < roots; i++) asio::post(r.context, Node{&r, peer::root_id(seed, i)});
  }).wait();
}

}  // namespace

void uneven_tree(peer::Run& run) {
  const std::uint64_t roots = run.option("--roots", 4000), seed = run.option("--seed", 1);
  tree_run(run, roots / 10, seed);  // a warm-up
  tree_run(run, roots, seed);
}
