// echo_coroutines.cpp: net/noria_echo.c on Asio in coroutines: a coroutine and a buffer a connection: read, write
// all, again.
#include "echo.hpp"

namespace {

constexpr auto kAwait = asio::as_tuple(asio::deferred);  // errors as values, no coroutine frame an operation

asio::awaitable<void> echo(asio::ip::tcp::socket socket) {
  socket.set_option(asio::ip::tcp::no_delay(true));
  std::vector<char> buffer(buffer_bytes);
  std::uint64_t bytes = 0;
  for (;;) {
    const auto [read_error, count] = co_await socket.async_read_some(asio::buffer(buffer), kAwait);
    if (read_error) break;
    bytes += count;
    const auto [write_error, written] = co_await asio::async_write(socket, asio::buffer(buffer, count), kAwait);
    if (write_error) break;
  }
  // ORDER: relaxed, a statistic that is read when the connections are gone.
  total_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

asio::awaitable<void> accept_all(asio::ip::tcp::acceptor& acceptor) {
  for (;;) {
    auto [error, socket] = co_await acceptor.async_accept(kAwait);
    BENCH_CHECK(!error);
    // ORDER: relaxed, a statistic.
    total_connections.fetch_add(1, std::memory_order_relaxed);
    asio::co_spawn(acceptor.get_executor(), echo(std::move(socket)), asio::detached);
  }
}

}  // namespace

void serve_coroutines(unsigned workers, std::size_t buffer) {
  serve(workers, buffer, "asio_coro", [](asio::ip::tcp::acceptor& acceptor) {
    asio::co_spawn(acceptor.get_executor(), accept_all(acceptor), asio::detached);
  });
}
