// echo_callbacks.cpp: net/noria_echo.c on Asio in callbacks: a buffer a connection: read, write all, again.
#include "echo.hpp"

namespace {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  explicit Connection(asio::ip::tcp::socket socket) : socket_(std::move(socket)) {
    socket_.set_option(asio::ip::tcp::no_delay(true));
  }

  // ORDER: relaxed, a statistic that is read when the connections are gone.
  ~Connection() { total_bytes.fetch_add(bytes_, std::memory_order_relaxed); }

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void read() {
    socket_.async_read_some(asio::buffer(buffer_),
                            [self = shared_from_this()](asio::error_code error, std::size_t count) {
                              if (!error) self->write(count);
                            });
  }

 private:
  void write(std::size_t count) {
    bytes_ += count;
    asio::async_write(socket_, asio::buffer(buffer_, count),
                      [self = shared_from_this()](asio::error_code error, std::size_t) {
                        if (!error) self->read();
                      });
  }

  asio::ip::tcp::socket socket_;
  std::uint64_t bytes_ = 0;
  std::vector<char> buffer_ = std::vector<char>(buffer_bytes);
};

void accept_next(asio::ip::tcp::acceptor& acceptor) {
  acceptor.async_accept([&acceptor](asio::error_code error, asio::ip::tcp::socket socket) {
    BENCH_CHECK(!error);
    // ORDER: relaxed, a statistic.
    total_connections.fetch_add(1, std::memory_order_relaxed);
    std::make_shared<Connection>(std::move(socket))->read();
    accept_next(acceptor);
  });
}

}  // namespace

void serve_callbacks(unsigned workers, std::size_t buffer) { serve(workers, buffer, "asio", accept_next); }
