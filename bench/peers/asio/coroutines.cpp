// coroutines.cpp: asio-coroutines-bench WORKLOAD [--workers N] [--ops N] [--batch N] [--warmup N]
// asio-coroutines-bench (echo | service) [--workers N]
//
// The workloads of bench/micro on Asio in coroutines: a task is a coroutine that is given to co_spawn. co_spawn runs it up to
// its first wait before it returns; so that a task is queued, as in every other contender, each begins with a post.
#include "common/remote.hpp"
#include "coroutine_rounds.hpp"

namespace {

Task pass(Rounds& r) {
  co_await asio::post(asio::deferred);
  r.pass();
}

void spawn_many(peer::Run& run) {
  Rounds::run_all(run, run.batch, [](Rounds& r) {
    for (std::uint64_t i = 0; i < r.passes; i++) r.spawn(pass(r));
  });
}

template <typename Pass>
Task pass_remote(Pass pass) {
  pass();
  co_return;
}

/// From a thread that is no worker co_spawn queues of itself.
void spawn_remote(peer::Run& run) {
  peer::spawn_remote(run, [&context = the_loop(run.workers).context](auto pass) {
    asio::co_spawn(context, pass_remote(pass), asio::detached);
  });
}

Task yielder(Rounds& r, std::uint64_t yields) {
  co_await asio::post(asio::deferred);
  for (std::uint64_t i = 0; i < yields; i++) co_await asio::defer(asio::deferred);
  r.pass();
}

void yield_many(peer::Run& run) {
  Rounds::run_all(run, 1000, [](Rounds& r) {
    for (std::uint64_t i = 0; i < r.passes; i++) r.spawn(yielder(r, r.run.batch / r.passes));
  });
}

struct Pair {
  explicit Pair(asio::io_context& context) : ping(context, 1), answer(context, 1) {}

  Channel ping;
  Channel answer;
};

/// Shares the pair, since the first may end while the second is still inside of the channel.
Task pong(std::shared_ptr<Pair> pair) {
  co_await asio::post(asio::deferred);
  co_await pair->ping.async_receive(asio::deferred);
  BENCH_CHECK(pair->answer.try_send(asio::error_code()));
}

Task ping(Rounds& r) {
  co_await asio::post(asio::deferred);
  auto pair = std::make_shared<Pair>(r.context);
  r.spawn(pong(pair));
  BENCH_CHECK(pair->ping.try_send(asio::error_code()));
  co_await pair->answer.async_receive(asio::deferred);
  r.pass();
}

void ping_pong(peer::Run& run) {
  Rounds::run_all(run, run.batch, [](Rounds& r) {
    for (std::uint64_t i = 0; i < r.passes; i++) r.spawn(ping(r));
  });
}

Task chain(Rounds& r, std::uint64_t left) {
  co_await asio::post(asio::deferred);
  if (left == 1) {
    r.pass();
  } else {
    r.spawn(chain(r, left - 1));
  }
}

void chained_spawn(peer::Run& run) {
  Rounds::run_all(run, 1, [](Rounds& r) { r.spawn(chain(r, r.run.batch)); });
}

struct Fire {
  std::chrono::steady_clock::time_point origin;
  std::vector<std::uint64_t> lateness_ns;
  peer::Semaphore finished;
  Gate gate;
};

Task firing(Fire& all, std::uint64_t index) {
  const auto deadline = all.origin + std::chrono::nanoseconds(kFireLeadNs + index * kFireStepNs);
  asio::steady_timer timer(co_await asio::this_coro::executor, deadline);
  co_await timer.async_wait(asio::deferred);
  const auto late = std::chrono::steady_clock::now() - deadline;
  BENCH_CHECK(late.count() >= 0);
  all.lateness_ns[index] = static_cast<std::uint64_t>(late.count());
  if (all.gate.pass()) all.finished.release();
}

Task fire_all(Fire& all, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; i++) {
    asio::co_spawn(co_await asio::this_coro::executor, firing(all, i * kFireStride % count), asio::detached);
  }
}

/// A coroutine a timer; deadlines 10 us apart in a second that begins half a second after the start, armed in shuffled
/// order. CPU is taken over that second.
void timer_fire(peer::Run& run) {
  BENCH_CHECK(run.ops % kFireStride != 0);  // the stride must visit every index
  Fire all;
  all.lateness_ns.resize(run.ops);
  all.gate.shut(run.ops);
  all.origin = std::chrono::steady_clock::now();
  asio::co_spawn(the_loop(run.workers).context, fire_all(all, run.ops), asio::detached);
  std::this_thread::sleep_until(all.origin + std::chrono::nanoseconds(kFireLeadNs));
  run.cpu_ns = bench_cpu_ns();
  all.finished.acquire();
  run.cpu_ns = bench_cpu_ns() - run.cpu_ns;
  peer::report_lateness(run, all.lateness_ns);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "echo") == 0) {
    serve_coroutines(static_cast<unsigned>(bench_argument(argc, argv, "--workers", 1)),
                     bench_argument(argc, argv, "--buffer", 32 * 1024));
    return 0;
  }
  if (argc > 1 && std::strcmp(argv[1], "service") == 0) {
    serve_service(static_cast<unsigned>(bench_argument(argc, argv, "--workers", 1)));
    return 0;
  }
  return peer::run_main(argc, argv, "asio_coro",
                        {{"spawn_many", 1000000, 10000, spawn_many},
                         {"spawn_remote", 1000000, 10000, spawn_remote},
                         {"yield_many", 1000000, 1000000, yield_many},
                         {"ping_pong", 200000, 1000, ping_pong},
                         {"chained_spawn", 1000000, 1000000, chained_spawn},
                         {"unbalanced_producer", 100000, 10000, unbalanced_producer},
                         {"uneven_tree", 1, 1, uneven_tree, true},
                         {"wake_latency", 1000, 1000, wake_latency},
                         {"light_load", 1000, 1000, light_load},
                         {"timer_fire", 100000, 100000, timer_fire},
                         {"blocking_seq", 10000, 1, blocking_seq},
                         {"idle_task_bytes", 100000, 1000, idle_task_bytes, true}});
}
