// Reads, writes and copies that are dropped in the middle of the system call that moves their bytes: what comes after them waits until
// that call's bytes have their place (P8, the gate of op_queue.hpp).
//
// The linker leads the engine's calls of recv, send and splice here (--wrap), and the test acts inside of one of them.
#include <sys/socket.h>

#include <atomic>
#include <functional>

#include "support/tcp.hpp"

using namespace noria::test;

namespace {

using Act = std::function<void()>;

// Each acts once, on whatever thread makes the call.
std::atomic<Act*> g_after_recv{nullptr};    // bytes were received, and are in nobody's hands yet
std::atomic<Act*> g_before_send{nullptr};   // bytes are about to be sent
std::atomic<Act*> g_after_fill{nullptr};    // bytes went from a socket into a copy's pipe
std::atomic<Act*> g_before_flush{nullptr};  // bytes are about to go from a copy's pipe to a socket

// A copy that goes through a block of memory, or through a pipe.
noria_future* start_copy(Lane& lane, Link& client, Link& server, bool by_pipe) {
  noria_future* copy = nullptr;
  assert_ok(noria_copy(client.b, server.a, nullptr, &copy), "copy");
  if (by_pipe) until_by_pipe(lane, client.a, server.b);
  return copy;
}

template <typename Body>
void in_each_mode(Body body) {
  on_each_runtime([&](Lane& lane) {
    for (bool by_pipe : {false, true}) body(lane, by_pipe);
  });
}

void act(std::atomic<Act*>& once) {
  if (Act* what = once.exchange(nullptr)) (*what)();
}

bool is_socket(int fd) {
  int type = 0;
  socklen_t size = sizeof type;
  return ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0;
}

int32_t try_write(noria_tcp* tcp, const char* text) {
  size_t count = 0;
  return noria_tcp_try_write(tcp, text, std::strlen(text), &count);
}

}  // namespace

extern "C" {
ssize_t __real_recv(int fd, void* room, size_t size, int flags);
ssize_t __real_send(int fd, const void* bytes, size_t size, int flags);
ssize_t __real_splice(int in, off64_t* in_at, int out, off64_t* out_at, size_t size, unsigned flags);

ssize_t __wrap_recv(int fd, void* room, size_t size, int flags) {
  ssize_t n = __real_recv(fd, room, size, flags);
  int error = errno;
  if (n > 0) act(g_after_recv);
  errno = error;
  return n;
}

ssize_t __wrap_send(int fd, const void* bytes, size_t size, int flags) {
  act(g_before_send);
  return __real_send(fd, bytes, size, flags);
}

ssize_t __wrap_splice(int in, off64_t* in_at, int out, off64_t* out_at, size_t size, unsigned flags) {
  if (is_socket(out)) act(g_before_flush);
  ssize_t n = __real_splice(in, in_at, out, out_at, size, flags);
  int error = errno;
  if (n > 0 && is_socket(in)) act(g_after_fill);
  errno = error;
  return n;
}
}

Test(TcpGate, P8_read_dropped_during_its_attempt_is_not_overtaken) {
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    noria_future* read = nullptr;
    char tried[8], polled[8];
    size_t count = 0;
    int32_t by_try = 0, by_poll = 0, by_ready = 0;
    ForeignWaker next;
    Act inside = [&] {
      assert_ok(noria_future_drop(read), "drop");
      by_try = noria_tcp_try_read(link.b, tried, sizeof tried, &count);
      by_ready = noria_tcp_poll_ready(link.b, NORIA_READABLE, next.cx());
      by_poll = noria_tcp_poll_read(link.b, next.cx(), polled, sizeof polled, &count);
    };
    assert_ok(noria_tcp_read(link.b, buffer(lane, 4), &read), "read");
    g_after_recv = &inside;
    write_all(lane, link.a, "aaaabbbb");
    lane.until([&] { return next.wakes() == 1; }, "the one that waits is told");
    cr_assert_eq(by_try, -EAGAIN);
    cr_assert_eq(by_ready, NORIA_PENDING);
    cr_assert_eq(by_poll, NORIA_PENDING);
    cr_assert(read_exactly(lane, link.b, 8) == "aaaabbbb");
  });
}

Test(TcpGate, P8_write_dropped_during_its_attempt_is_not_overtaken) {
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    noria_future* write = nullptr;
    size_t count = 0;
    int32_t by_try = 0, by_poll = 0;
    ForeignWaker next;
    Act inside = [&] {
      assert_ok(noria_future_cancel(write), "cancel");
      by_try = try_write(link.a, "bbbb");
      by_poll = noria_tcp_poll_write(link.a, next.cx(), "bbbb", 4, &count);
    };
    g_before_send = &inside;
    assert_ok(noria_tcp_write(link.a, buffer(lane, "aaaa"), &write), "write");
    lane.until([&] { return next.wakes() == 1; }, "the one that waits is told");
    cr_assert_eq(by_try, -EAGAIN);
    cr_assert_eq(by_poll, NORIA_PENDING);
    noria_io_result result{};
    assert_ok(lane.await(write, &result, sizeof result), "a write that was done all the same");
    cr_assert_eq(result.count, 4);
    assert_ok(noria_buf_release(result.buf), "release");
    write_all(lane, link.a, "bbbb");
    cr_assert(read_exactly(lane, link.b, 8) == "aaaabbbb");
  });
}

Test(TcpGate, P8_copy_dropped_while_it_fills_is_not_overtaken_by_a_read) {
  in_each_mode([](Lane& lane, bool by_pipe) {
    Link client(lane), server(lane);
    noria_future* copy = start_copy(lane, client, server, by_pipe);
    char room[8];
    size_t count = 0;
    int32_t by_try = 0, by_poll = 0;
    ForeignWaker next;
    Act inside = [&] {
      assert_ok(noria_future_drop(copy), "drop");
      assert_ok(try_write(client.a, "bbbb"), "write");
      by_try = noria_tcp_try_read(client.b, room, sizeof room, &count);
      by_poll = noria_tcp_poll_read(client.b, next.cx(), room, sizeof room, &count);
    };
    (by_pipe ? g_after_fill : g_after_recv) = &inside;
    write_all(lane, client.a, "aaaa");
    lane.until([&] { return next.wakes() == 1; }, "the one that waits is told");
    cr_assert_eq(by_try, -EAGAIN);
    cr_assert_eq(by_poll, NORIA_PENDING);
    cr_assert(read_exactly(lane, client.b, 8) == "aaaabbbb");
  });
}

Test(TcpGate, P8_copy_dropped_while_it_flushes_is_not_overtaken_by_a_write) {
  in_each_mode([](Lane& lane, bool by_pipe) {
    Link client(lane), server(lane);
    noria_future* copy = start_copy(lane, client, server, by_pipe);
    size_t count = 0;
    int32_t by_try = 0, by_poll = 0;
    ForeignWaker next;
    Act inside = [&] {
      assert_ok(noria_future_drop(copy), "drop");
      by_try = try_write(server.a, "MARK");
      by_poll = noria_tcp_poll_write(server.a, next.cx(), "MARK", 4, &count);
    };
    Act own_send = [&] { g_before_send = &inside; };  // the first one is the test's
    if (by_pipe) {
      g_before_flush = &inside;
    } else {
      g_before_send = &own_send;
    }
    write_all(lane, client.a, "aaaa");
    lane.until([&] { return next.wakes() == 1; }, "the one that waits is told");
    cr_assert_eq(by_try, -EAGAIN);
    cr_assert_eq(by_poll, NORIA_PENDING);
    write_all(lane, server.a, "MARK");
    cr_assert(read_exactly(lane, server.b, 8) == "aaaaMARK");
  });
}
