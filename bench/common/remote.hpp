// remote.hpp: spawn_remote, as micro/tasks.c: threads that are no workers spawn, and share each batch.
#pragma once

#include <atomic>
#include <deque>
#include <thread>
#include <vector>

#include "common/peer.hpp"

namespace peer {

/// Calls spawn(task) for each task of the workload, on `--spawners` threads at once; each of them sleeps until its part of a
/// batch is done.
template <typename Spawn>
void spawn_remote(Run& run, Spawn spawn) {
  struct Spawner {
    std::atomic<std::uint64_t> remaining{0};
    Semaphore open;
  };
  static std::deque<Spawner> every;  // outlive a task that still leaves its semaphore
  const std::uint64_t spawners = run.option("--spawners", 1), part = run.batch / spawners;
  BENCH_CHECK(spawners > 0 && run.batch % spawners == 0);
  const auto work = [&run, &spawn, part](Spawner& own) {
    for (std::uint64_t done = 0; done < run.ops; done += run.batch) {
      // ORDER: relaxed, spawning publishes it.
      own.remaining.store(part, std::memory_order_relaxed);
      for (std::uint64_t i = 0; i < part; i++) {
        spawn([&own] {
          // ORDER: acq_rel, each releases its work to the last one, whose semaphore publishes it to the spawner.
          if (own.remaining.fetch_sub(1, std::memory_order_acq_rel) == 1) own.open.release();
        });
      }
      own.open.acquire();
    }
  };
  std::vector<std::thread> others;
  Spawner& first = every.emplace_back();
  run.start();
  for (std::uint64_t i = 1; i < spawners; i++) others.emplace_back(work, std::ref(every.emplace_back()));
  work(first);
  for (std::thread& thread : others) thread.join();
  run.stop();
}

}  // namespace peer
