// callbacks.cpp: asio-callbacks-bench WORKLOAD [--workers N] [--ops N] [--batch N] [--warmup N]
// asio-callbacks-bench echo [--workers N]
//
// The workloads of bench/micro on Asio in callbacks: a task is a handler that is posted.
#include <asio/experimental/concurrent_channel.hpp>

#include "common/remote.hpp"
#include "rounds.hpp"

namespace {

using Channel = asio::experimental::concurrent_channel<void(asio::error_code)>;

void spawn_many(peer::Run& run) {
  Rounds(run, run.batch, [](Rounds& r) {
    for (std::uint64_t i = 0; i < r.passes; i++) asio::post(r.context, [&r] { r.pass(); });
  }).wait();
}

/// A handler that puts itself behind the others until it has done so `left` times.
struct Yielder {
  Rounds* rounds;
  std::uint64_t left;

  void operator()() {
    if (left == 0) {
      rounds->pass();
      return;
    }
    left--;
    asio::defer(rounds->context, *this);
  }
};

void yield_many(peer::Run& run) {
  Rounds(run, 1000, [](Rounds& r) {
    for (std::uint64_t i = 0; i < r.passes; i++) asio::post(r.context, Yielder{&r, r.run.batch / r.passes});
  }).wait();
}

struct Pair {
  explicit Pair(asio::io_context& context) : ping(context, 1), answer(context, 1) {}

  Channel ping;
  Channel answer;
};

void ping_pong_one(Rounds& r) {
  auto pair = std::make_shared<Pair>(r.context);
  asio::post(r.context, [pair] {
    pair->ping.async_receive(
        [pair](asio::error_code error) { BENCH_CHECK(!error && pair->answer.try_send(asio::error_code())); });
  });
  BENCH_CHECK(pair->ping.try_send(asio::error_code()));
  pair->answer.async_receive([pair, &r](asio::error_code error) {
    BENCH_CHECK(!error);
    r.pass();
  });
}

void ping_pong(peer::Run& run) {
  Rounds(run, run.batch, [](Rounds& r) {
    for (std::uint64_t i = 0; i < r.passes; i++) asio::post(r.context, [&r] { ping_pong_one(r); });
  }).wait();
}

struct Chain {
  Rounds* rounds;
  std::uint64_t left;

  void operator()() const {
    if (left == 1) {
      rounds->pass();
    } else {
      asio::post(rounds->context, Chain{rounds, left - 1});
    }
  }
};

void chained_spawn(peer::Run& run) {
  Rounds(run, 1, [](Rounds& r) { asio::post(r.context, Chain{&r, r.run.batch}); }).wait();
}

void spawn_remote(peer::Run& run) {
  peer::spawn_remote(run, [&context = the_loop(run.workers).context](auto task) { asio::post(context, task); });
}

/// A loop is made, a handler of it runs, it is gone again; beside none of this program.
void startup(peer::Run& run) {
  std::vector<std::uint64_t> start_ns, end_ns;
  for (std::uint64_t i = 0; i < run.ops; i++) {
    peer::Semaphore ran;
    std::uint64_t begin = bench_now_ns();
    auto loop = std::make_unique<Loop>(run.workers);
    asio::post(loop->context, [&ran] { ran.release(); });
    ran.acquire();
    start_ns.push_back(bench_now_ns() - begin);
    begin = bench_now_ns();
    loop.reset();
    end_ns.push_back(bench_now_ns() - begin);
  }
  run.figures = {{"startup_us", peer::percentile_us(start_ns, 0.5)}, {"shutdown_us", peer::percentile_us(end_ns, 0.5)}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "echo") == 0) {
    serve_callbacks(static_cast<unsigned>(bench_argument(argc, argv, "--workers", 1)),
                    bench_argument(argc, argv, "--buffer", 32 * 1024));
    return 0;
  }
  return peer::run_main(argc, argv, "asio",
                        {{"spawn_many", 1000000, 10000, spawn_many},
                         {"spawn_remote", 1000000, 10000, spawn_remote},
                         {"yield_many", 1000000, 1000000, yield_many},
                         {"ping_pong", 200000, 1000, ping_pong},
                         {"chained_spawn", 1000000, 1000000, chained_spawn},
                         {"unbalanced_producer", 100000, 10000, unbalanced_producer},
                         {"uneven_tree", 1, 1, uneven_tree, true},
                         {"wake_latency", 1000, 1000, wake_latency},
                         {"light_load", 1000, 1000, light_load},
                         {"timer_churn", 1000000, 10000, timer_churn},
                         {"timer_reset", 1000000, 10000, timer_reset},
                         {"timer_fire", 100000, 100000, timer_fire},
                         {"timer_bytes", 100000, 1000, timer_bytes, true},
                         {"blocking", 200000, 200000, blocking},
                         {"blocking_seq", 10000, 1, blocking_seq},
                         {"startup", 100, 1, startup, true}});
}
