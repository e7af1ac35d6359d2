// echo.hpp: the frame of both echo servers: a port, SIGTERM, and what was served.
#pragma once

#include <csignal>

#include "loop.hpp"

inline std::size_t buffer_bytes = 32 * 1024;  // of a connection

inline std::atomic<std::uint64_t> total_bytes, total_connections;

/// Listens on a free port of loopback, prints it, calls `accept(acceptor)`, serves until SIGTERM, then prints what it did.
template <typename Accept>
void serve(unsigned workers, std::size_t buffer, const char* contender, Accept accept) {
  buffer_bytes = buffer;
  bench_raise_files();
  asio::io_context context(static_cast<int>(workers));
  asio::ip::tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
  asio::signal_set terminate(context, SIGTERM);
  terminate.async_wait([&](asio::error_code, int) { context.stop(); });
  std::printf("port %u\n", acceptor.local_endpoint().port());
  std::fflush(stdout);
  accept(acceptor);
  std::vector<std::thread> others;
  for (unsigned i = 1; i < workers; i++) others.emplace_back([&] { context.run(); });
  context.run();
  for (std::thread& thread : others) thread.join();
  bench_json_open("echo", contender, workers);
  bench_json_number("connections", static_cast<double>(total_connections.load()));
  bench_json_number("bytes", static_cast<double>(total_bytes.load()));
  bench_json_number("cpu_ns", static_cast<double>(bench_cpu_ns()));
  bench_json_close();
}
