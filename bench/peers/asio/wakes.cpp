// wakes.cpp: a handler that a foreign thread posts, in callbacks.
#include "common/wake.hpp"
#include "rounds.hpp"

namespace {

struct Burner {
  asio::io_context* context;
  const std::atomic<bool>* stop;
  std::atomic<std::uint64_t>* left;

  void operator()() const {
    // ORDER: relaxed, a late view means one more turn.
    if (stop->load(std::memory_order_relaxed)) {
      // ORDER: release, pairs with the acquire of who waits for all of them.
      left->fetch_sub(1, std::memory_order_release);
      return;
    }
    bench_burn_ns(peer::kBurnNs);
    asio::post(*context, *this);
  }
};

}  // namespace

void wake_latency(peer::Run& run) {
  asio::io_context& context = the_loop(run.workers).context;
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> left{run.option("--load", 0)};
  for (std::uint64_t i = run.option("--load", 0); i > 0; i--) asio::post(context, Burner{&context, &stop, &left});
  peer::Sleeper sleeper(run.ops);
  sleeper.wake_all(run, [&] { asio::post(context, [&sleeper] { sleeper.saw(); }); });
  stop.store(true);
  // ORDER: acquire, pairs with the release of the burners.
  while (left.load(std::memory_order_acquire) > 0) std::this_thread::yield();
  peer::report_latency(run, sleeper.latency_ns);
}

void light_load(peer::Run& run) {
  asio::io_context& context = the_loop(run.workers).context;
  peer::Sleeper sleeper(run.ops);
  peer::report_light_load(run,
                          [&] { sleeper.wake_all(run, [&] { asio::post(context, [&sleeper] { sleeper.saw(); }); }); });
}
