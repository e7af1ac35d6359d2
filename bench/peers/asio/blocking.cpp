// blocking.cpp: jobs that do nothing on Asio's thread pool, of the size that it has by default.
#include <deque>

#include "rounds.hpp"

/// All at once; each posts its answer to the loop. They are counted as they come: a callback awaits nothing in order.
void blocking(peer::Run& run) {
  asio::thread_pool& pool = the_pool();
  std::atomic<std::uint64_t> sum{0};
  run.batch = run.ops;
  Rounds(run, run.batch, [&](Rounds& r) {
    for (std::uint64_t i = 0; i < r.passes; i++) {
      asio::post(pool, [&r, &sum] {
        const std::uint64_t answer = 1;
        asio::post(r.context, [&r, &sum, answer] {
          // ORDER: relaxed, a sum; the gate publishes it.
          sum.fetch_add(answer, std::memory_order_relaxed);
          r.pass();
        });
      });
    }
  }).wait();
  BENCH_CHECK(sum.load() == run.ops);
}

namespace {

/// A job whose answer starts the next one.
struct Sequence {
  Rounds& rounds;
  asio::thread_pool& pool;
  std::uint64_t left;
  std::uint64_t sum;

  void next() {
    asio::post(pool, [this] {
      const std::uint64_t answer = 1;
      asio::post(rounds.context, [this, answer] { answered(answer); });
    });
  }

  void answered(std::uint64_t answer) {
    sum += answer;
    if (--left > 0) {
      next();
    } else {
      rounds.pass();
    }
  }
};

}  // namespace

void blocking_seq(peer::Run& run) {
  asio::thread_pool& pool = the_pool();
  std::deque<Sequence> sequences;
  peer::Run all = run;  // one round of all operations
  all.batch = all.ops;
  const std::uint64_t jobs = run.ops / run.batch;
  Rounds(all, run.batch, [&](Rounds& r) {
    for (std::uint64_t i = 0; i < r.passes; i++) sequences.emplace_back(Sequence{r, pool, jobs, 0}).next();
  }).wait();
  for (const Sequence& sequence : sequences) BENCH_CHECK(sequence.sum == jobs);
  run.wall_ns = all.wall_ns;
  run.cpu_ns = all.cpu_ns;
}
