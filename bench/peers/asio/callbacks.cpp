// callbacks.cpp: asio-bench WORKLOAD [--workers N] [--ops N] [--batch N] [--warmup N]; asio-bench echo [--workers N]
//
// The workloads of bench/micro on Asio in callbacks: a task is a handler that is posted.
#include <asio/experimental/concurrent_channel.hpp>
#include <functional>

#include "common/remote.hpp"
#include "loop.hpp"

namespace {

using Channel = asio::experimental::concurrent_channel<void(asio::error_code)>;

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

/// Timers are armed with a handler each, then all are destroyed, which completes each handler as cancelled: that is the pass.
void timer_churn(peer::Run& run) {
  std::uint64_t random = 88172645463325252u;
  std::vector<asio::steady_timer> timers;
  timers.reserve(run.batch);
  Rounds(run, run.batch, [&](Rounds& r) {
    for (std::uint64_t i = 0; i < r.passes; i++) {
      timers.emplace_back(r.context, std::chrono::milliseconds(1000 + bench_random(&random) % 599000));
      timers.back().async_wait([&r](asio::error_code error) {
        BENCH_CHECK(error == asio::error::operation_aborted);
        r.pass();
      });
    }
    timers.clear();
  }).wait();
}

/// Jobs that do nothing on Asio's thread pool, of the size that it has by default; each posts its answer to the loop. They
/// are counted as they come: a callback awaits nothing in order.
void blocking(peer::Run& run) {
  asio::thread_pool pool;
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
  pool.join();
}

/// A timer each; deadlines 10 us apart in a second that begins half a second after the start, armed in shuffled order. CPU is
/// taken over that second.
void timer_fire(peer::Run& run) {
  using Clock = std::chrono::steady_clock;
  BENCH_CHECK(run.ops % kFireStride != 0);  // the stride must visit every index
  asio::io_context& context = the_loop(run.workers).context;
  std::vector<std::uint64_t> lateness_ns(run.ops);
  std::vector<asio::steady_timer> timers;
  timers.reserve(run.ops);
  peer::Semaphore finished;
  Gate gate;
  gate.shut(run.ops);
  const auto origin = Clock::now();
  asio::post(context, [&] {
    for (std::uint64_t i = 0; i < run.ops; i++) {
      const std::uint64_t index = i * kFireStride % run.ops;
      const auto deadline = origin + std::chrono::nanoseconds(kFireLeadNs + index * kFireStepNs);
      timers.emplace_back(context, deadline);
      timers.back().async_wait([&, index, deadline](asio::error_code error) {
        const auto late = Clock::now() - deadline;
        BENCH_CHECK(!error && late.count() >= 0);
        lateness_ns[index] = static_cast<std::uint64_t>(late.count());
        if (gate.pass()) finished.release();
      });
    }
  });
  std::this_thread::sleep_until(origin + std::chrono::nanoseconds(kFireLeadNs));
  run.cpu_ns = bench_cpu_ns();
  finished.acquire();
  run.cpu_ns = bench_cpu_ns() - run.cpu_ns;
  peer::report_lateness(run, lateness_ns);
}

void spawn_remote(peer::Run& run) {
  peer::spawn_remote(run, [&context = the_loop(run.workers).context](auto task) { asio::post(context, task); });
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
                         {"timer_churn", 1000000, 10000, timer_churn},
                         {"timer_fire", 100000, 100000, timer_fire},
                         {"blocking", 200000, 200000, blocking}});
}
