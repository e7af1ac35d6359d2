// coroutine_rounds.hpp: the root of the workloads in coroutines.
#pragma once

#include <asio/experimental/concurrent_channel.hpp>
#include <deque>
#include <functional>

#include "loop.hpp"

using Channel = asio::experimental::concurrent_channel<void(asio::error_code)>;
using Task = asio::awaitable<void>;

/// The root: a coroutine that begins a batch and waits until the last pass of it.
/// Lifetime: to the end of the process, for whoever passed last may still be inside of the channel when the root has gone on.
class Rounds {
 public:
  static void run_all(peer::Run& run, std::uint64_t passes, std::function<void(Rounds&)> begin) {
    static auto& every = *new std::deque<Rounds>;  // never destroyed, hence not after the loop either
    every.emplace_back(run, passes, std::move(begin)).wait();
  }

  Rounds(peer::Run& measured, std::uint64_t count, std::function<void(Rounds&)> begin)
      : run(measured),
        context(the_loop(measured.workers).context),
        passes(count),
        begin_(std::move(begin)),
        open_(context, 1) {}

  void pass() {
    if (gate_.pass()) BENCH_CHECK(open_.try_send(asio::error_code()));
  }

  void spawn(Task task) { asio::co_spawn(context, std::move(task), asio::detached); }

  peer::Run& run;
  asio::io_context& context;
  const std::uint64_t passes;

 private:
  /// Returns when all rounds are done; measured from inside.
  void wait() {
    asio::co_spawn(context, root(), asio::detached);
    finished_.acquire();
  }

  Task root() {
    run.start();
    for (std::uint64_t done = 0; done < run.ops; done += run.batch) {
      gate_.shut(passes);
      begin_(*this);
      co_await open_.async_receive(asio::deferred);
    }
    run.stop();
    finished_.release();
  }

  Gate gate_;
  std::function<void(Rounds&)> begin_;
  Channel open_;
  peer::Semaphore finished_;
};

void unbalanced_producer(peer::Run& run);
void uneven_tree(peer::Run& run);
void wake_latency(peer::Run& run);
void light_load(peer::Run& run);
void blocking_seq(peer::Run& run);
void idle_task_bytes(peer::Run& run);
void serve_service(unsigned workers);
