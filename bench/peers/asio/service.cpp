// service.cpp: service/noria_service.c on Asio in coroutines: burns CPU when a message asks for it, and probes its own timers
// and tasks meanwhile.
#include <csignal>

#include "coroutine_rounds.hpp"

namespace {

enum : std::uint64_t { kMessageBytes = 64, kBurnInline = 1, kBurnOnPool = 2, kSpawned = 8, kMillisecondNs = 1'000'000 };

// ORDER: relaxed throughout, statistics.
std::atomic<std::uint64_t> messages, timer_max_ns, task_max_ns, spawned_max_ns;

/// Delays count from the first message on.
void note(std::atomic<std::uint64_t>& longest, std::uint64_t delay_ns) {
  if (messages.load(std::memory_order_relaxed) == 0) return;
  std::uint64_t seen = longest.load(std::memory_order_relaxed);
  while (delay_ns > seen && !longest.compare_exchange_weak(seen, delay_ns, std::memory_order_relaxed)) {
  }
}

template <typename Executor>
void spawn_probe(const Executor& executor, std::atomic<std::uint64_t>& longest) {
  asio::post(executor, [spawned_ns = bench_now_ns(), &longest] { note(longest, bench_now_ns() - spawned_ns); });
}

Task burn(std::uint64_t duration_ns) {
  bench_burn_ns(duration_ns);
  co_return;
}

Task serve_connection(asio::ip::tcp::socket socket, asio::thread_pool& pool) {
  std::array<unsigned char, kMessageBytes> message;
  socket.set_option(asio::ip::tcp::no_delay(true));
  for (;;) {
    const auto [read_error, got] =
        co_await asio::async_read(socket, asio::buffer(message), asio::as_tuple(asio::deferred));
    if (read_error) break;
    std::uint64_t burn_us = 0;
    for (std::size_t i = 8; i > 4; i--) burn_us = burn_us << 8 | message[i - 1];
    messages.fetch_add(1, std::memory_order_relaxed);
    if (message[0] == kBurnInline) {
      for (std::uint64_t i = 0; i < kSpawned; i++) spawn_probe(socket.get_executor(), spawned_max_ns);
      bench_burn_ns(burn_us * 1000);
    } else if (message[0] == kBurnOnPool) {
      co_await asio::co_spawn(pool, burn(burn_us * 1000), asio::use_awaitable);
    }
    const auto [write_error, sent] =
        co_await asio::async_write(socket, asio::buffer(message), asio::as_tuple(asio::deferred));
    if (write_error) break;
  }
}

Task accept_all(asio::ip::tcp::acceptor& acceptor, asio::thread_pool& pool) {
  for (;;) {
    auto [error, socket] = co_await acceptor.async_accept(asio::as_tuple(asio::deferred));
    BENCH_CHECK(!error);
    asio::co_spawn(acceptor.get_executor(), serve_connection(std::move(socket), pool), asio::detached);
  }
}

Task probe_timers() {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  for (;;) {
    timer.expires_after(std::chrono::nanoseconds(kMillisecondNs));
    co_await timer.async_wait(asio::deferred);
    const auto late = std::chrono::steady_clock::now() - timer.expiry();
    note(timer_max_ns, static_cast<std::uint64_t>(late.count()));
  }
}

void report(unsigned workers) {
  const auto us = [](const std::atomic<std::uint64_t>& ns) { return static_cast<double>(ns.load()) / 1e3; };
  bench_json_open("service", "asio_coro", workers);
  bench_json_number("messages", static_cast<double>(messages.load()));
  bench_json_number("timer_max_us", us(timer_max_ns));
  bench_json_number("task_max_us", us(task_max_ns));
  bench_json_number("spawned_max_us", us(spawned_max_ns));
  bench_json_close();
}

}  // namespace

void serve_service(unsigned workers) {
  asio::io_context context(static_cast<int>(workers));
  asio::thread_pool& pool = the_pool();
  asio::ip::tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
  asio::signal_set terminate(context, SIGTERM);
  terminate.async_wait([&](asio::error_code, int) { context.stop(); });
  std::printf("port %u\n", acceptor.local_endpoint().port());
  std::fflush(stdout);
  asio::co_spawn(context, accept_all(acceptor, pool), asio::detached);
  asio::co_spawn(context, probe_timers(), asio::detached);
  std::thread prober([&context] {
    while (!context.stopped()) {
      std::this_thread::sleep_for(std::chrono::nanoseconds(kMillisecondNs));
      spawn_probe(context.get_executor(), task_max_ns);
    }
  });
  std::vector<std::thread> others;
  for (unsigned i = 1; i < workers; i++) others.emplace_back([&context] { context.run(); });
  context.run();
  for (std::thread& thread : others) thread.join();
  prober.join();
  report(workers);
}
