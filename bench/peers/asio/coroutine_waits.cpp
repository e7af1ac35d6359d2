// coroutine_waits.cpp: coroutines that wait: for a wake by a foreign thread, for an hour, for a job.
#include "common/memory.hpp"
#include "common/wake.hpp"
#include "coroutine_rounds.hpp"

namespace {

Task sleep_and_see(Channel& wake, peer::Sleeper& sleeper) {
  for (std::uint64_t left = sleeper.latency_ns.size(); left > 0; left--) {
    co_await wake.async_receive(asio::deferred);
    sleeper.saw();
  }
}

/// Wakes a coroutine run.ops times; what each took.
std::vector<std::uint64_t> wakes(peer::Run& run) {
  asio::io_context& context = the_loop(run.workers).context;
  Channel wake(context, 1);
  peer::Sleeper sleeper(run.ops);
  asio::co_spawn(context, sleep_and_see(wake, sleeper), asio::detached);
  sleeper.wake_all(run, [&wake] { BENCH_CHECK(wake.try_send(asio::error_code())); });
  return sleeper.latency_ns;
}

Task burn(const std::atomic<bool>& stop, std::atomic<std::uint64_t>& left) {
  // ORDER: relaxed, a late view means one more turn.
  while (!stop.load(std::memory_order_relaxed)) {
    bench_burn_ns(peer::kBurnNs);
    co_await asio::post(asio::deferred);
  }
  // ORDER: release, pairs with the acquire of who waits for all of them.
  left.fetch_sub(1, std::memory_order_release);
}

Task sleep_an_hour(Rounds& r) {
  asio::steady_timer timer(r.context, std::chrono::hours(1));
  r.pass();
  co_await timer.async_wait(asio::deferred);
}

asio::awaitable<std::uint64_t> one() { co_return 1; }

Task sequence(Rounds& r, asio::thread_pool& pool, std::uint64_t jobs) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < jobs; i++) sum += co_await asio::co_spawn(pool, one(), asio::use_awaitable);
  BENCH_CHECK(sum == jobs);
  r.pass();
}

}  // namespace

void wake_latency(peer::Run& run) {
  asio::io_context& context = the_loop(run.workers).context;
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> left{run.option("--load", 0)};
  for (std::uint64_t i = run.option("--load", 0); i > 0; i--) asio::co_spawn(context, burn(stop, left), asio::detached);
  std::vector<std::uint64_t> latency_ns = wakes(run);
  stop.store(true);
  // ORDER: acquire, pairs with the release of the burners.
  while (left.load(std::memory_order_acquire) > 0) std::this_thread::yield();
  peer::report_latency(run, latency_ns);
}

void light_load(peer::Run& run) {
  peer::report_light_load(run, [&run] { wakes(run); });
}

/// Coroutines that each wait for a timer of an hour; a thousand are spawned at a time.
void idle_task_bytes(peer::Run& run) {
  peer::Memory before{};
  run.batch = std::min<std::uint64_t>(run.batch, 1000);
  BENCH_CHECK(run.ops % run.batch == 0);
  std::uint64_t made = 0;
  Rounds::run_all(run, run.batch, [&](Rounds& r) {
    if (made == 0) before = peer::Memory::now();
    for (std::uint64_t i = 0; i < r.passes; i++) r.spawn(sleep_an_hour(r));
    made += r.passes;
  });
  before.report_growth(run);
  run.wall_ns = run.cpu_ns = 0;
}

/// Jobs on Asio's thread pool, of the size that it has by default: coroutines there that are awaited here.
void blocking_seq(peer::Run& run) {
  asio::thread_pool& pool = the_pool();
  peer::Run all = run;  // one round of all operations
  all.batch = all.ops;
  const std::uint64_t jobs = run.ops / run.batch;
  Rounds::run_all(all, run.batch, [&](Rounds& r) {
    for (std::uint64_t i = 0; i < r.passes; i++) r.spawn(sequence(r, pool, jobs));
  });
  run.wall_ns = all.wall_ns;
  run.cpu_ns = all.cpu_ns;
}
