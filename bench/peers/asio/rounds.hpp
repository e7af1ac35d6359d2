// rounds.hpp: the root of the workloads in callbacks.
#pragma once

#include <functional>

#include "loop.hpp"

/// The root: a handler that begins a batch, and is posted again by the last pass of it. The root itself passes too, when it
/// has begun them all: two of its steps never overlap.
class Rounds {
 public:
  Rounds(peer::Run& measured, std::uint64_t count, std::function<void(Rounds&)> begin)
      : run(measured), context(the_loop(measured.workers).context), passes(count), begin_(std::move(begin)) {}

  /// Returns when all rounds are done; measured from inside.
  void wait() {
    asio::post(context, [this] { step(); });
    finished_.acquire();
    run.stop();
  }

  void pass() {
    if (gate_.pass()) asio::post(context, [this] { step(); });
  }

  peer::Run& run;
  asio::io_context& context;
  const std::uint64_t passes;

 private:
  void step() {
    if (done_ == 0) run.start();
    if (done_ >= run.ops) {
      finished_.release();
      return;
    }
    done_ += run.batch;
    gate_.shut(passes + 1);
    begin_(*this);
    pass();
  }

  Gate gate_;
  std::uint64_t done_ = 0;
  std::function<void(Rounds&)> begin_;
  peer::Semaphore finished_;
};

void timer_churn(peer::Run& run);
void timer_reset(peer::Run& run);
void timer_fire(peer::Run& run);
void timer_bytes(peer::Run& run);
void unbalanced_producer(peer::Run& run);
void uneven_tree(peer::Run& run);
void blocking(peer::Run& run);
void blocking_seq(peer::Run& run);
void wake_latency(peer::Run& run);
void light_load(peer::Run& run);
