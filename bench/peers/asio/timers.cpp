// timers.cpp: workloads of timers in callbacks.
#include "common/memory.hpp"
#include "rounds.hpp"

/// Timers are armed with a handler each, then all are destroyed, which completes each handler as cancelled: that is the pass.
void timer_churn(peer::Run& run) {
  std::uint64_t random = 88172645463325252u;
  std::vector<asio::steady_timer> timers;
  timers.reserve(run.batch);
  Rounds(run, run.batch, [&](Rounds& r) {
    for (std::uint64_t i = 0; i < r.passes; i++) {
      timers.emplace_back(r.context, std::chrono::milliseconds(1000 + bench_random(&random) % 599000));
      timers.back().async_wait([&r](asio::error_code error) {
        BENCH_CHECK(!error || error == asio::error::operation_aborted);  // or due, on a machine that stood still
        r.pass();
      });
    }
    timers.clear();
  }).wait();
}

namespace {

/// Armed timers whose waits end as cancelled when they are armed anew or destroyed.
struct Resetting {
  Rounds* rounds = nullptr;
  std::uint64_t random = 88172645463325252u;
  std::vector<asio::steady_timer> timers;

  void arm(asio::steady_timer& timer) {
    timer.expires_after(std::chrono::milliseconds(1000 + bench_random(&random) % 599000));
    timer.async_wait([this](asio::error_code error) {
      BENCH_CHECK(error == asio::error::operation_aborted);
      rounds->pass();
    });
  }
};

}  // namespace

/// To move a deadline is to cancel the wait for it and to wait anew: each pass is a wait that was cancelled.
void timer_reset(peer::Run& run) {
  Resetting all;
  for (std::uint64_t i = 0; i < run.batch; i++) all.timers.emplace_back(the_loop(run.workers).context);
  for (asio::steady_timer& timer : all.timers) all.arm(timer);
  Rounds measured(run, run.batch, [&all](Rounds&) {
    for (asio::steady_timer& timer : all.timers) all.arm(timer);
  });
  all.rounds = &measured;
  measured.wait();
  peer::Run once = run;
  once.ops = once.batch;
  Rounds last(once, run.batch, [&all](Rounds&) { all.timers.clear(); });
  all.rounds = &last;
  last.wait();
}

/// Timers of an hour or two, with a handler that waits for each.
void timer_bytes(peer::Run& run) {
  std::uint64_t random = 88172645463325252u;
  std::vector<asio::steady_timer> timers;
  run.batch = run.ops;
  Rounds(run, run.ops, [&](Rounds& r) {
    const peer::Memory before = peer::Memory::now();
    timers.reserve(r.passes);
    for (std::uint64_t i = 0; i < r.passes; i++) {
      timers.emplace_back(r.context, std::chrono::milliseconds(3600000 + bench_random(&random) % 3600000));
      timers.back().async_wait([&r](asio::error_code error) {
        BENCH_CHECK(error == asio::error::operation_aborted);
        r.pass();
      });
    }
    before.report_growth(r.run);
    timers.clear();
  }).wait();
  run.wall_ns = run.cpu_ns = 0;
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
