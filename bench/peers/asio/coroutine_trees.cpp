// coroutine_trees.cpp: coroutines that spawn coroutines.
#include "common/tree.hpp"
#include "coroutine_rounds.hpp"

namespace {

Task product(Rounds& r, std::uint64_t id, std::uint64_t work) {
  co_await asio::post(asio::deferred);
  BENCH_CHECK(bench_work(id, work) != 0);  // keeps the work from being left out
  r.pass();
}

Task node(Rounds& r, std::uint64_t id) {
  co_await asio::post(asio::deferred);
  const std::uint64_t hash = bench_work(id, peer::kNodeHashes);
  for (std::uint64_t i = 0; i < peer::children_of(hash); i++) r.spawn(node(r, hash + i));
  r.pass();
}

void tree_run(peer::Run& run, std::uint64_t roots, std::uint64_t seed) {
  run.ops = run.batch = peer::tree_nodes(roots, seed);
  Rounds::run_all(run, run.ops, [=](Rounds& r) {
    for (std::uint64_t i = 0; i < roots; i++) r.spawn(node(r, peer::root_id(seed, i)));
  });
}

}  // namespace

void unbalanced_producer(peer::Run& run) {
  const std::uint64_t work = run.option("--work", 400);
  Rounds::run_all(run, run.batch, [work](Rounds& r) {
    for (std::uint64_t i = 0; i < r.passes; i++) r.spawn(product(r, i, work));
  });
}

void uneven_tree(peer::Run& run) {
  const std::uint64_t roots = run.option("--roots", 4000), seed = run.option("--seed", 1);
  tree_run(run, roots / 10, seed);  // a warm-up
  tree_run(run, roots, seed);
}
