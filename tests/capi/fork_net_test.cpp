// A runtime that was inherited through fork: every call on its sources, listeners, streams and copies tells so, and the parent's
// connections live on (A15, P9). tests/lint/forked.py asserts that no call is left out.
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/tcp.hpp"

using namespace noria::test;

namespace {

constexpr int32_t kForked = -NORIA_EFORKED;

struct Sockets {
  noria_runtime* rt;
  noria_source* source;
  noria_tcp_listener* listener;
  noria_tcp* tcp;
  noria_tcp* peer;
  noria_buf* buf;
  noria_future* copy;
};

void call_sources(const Sockets& s, const noria_cx* cx, int32_t fd) {
  noria_source* source = nullptr;
  noria_future* future = nullptr;
  noria_readiness seen{};
  NORIA_STATUS(noria_source_new(s.rt, fd, &source), kForked);
  NORIA_STATUS(noria_source_poll_ready(s.source, NORIA_READABLE, cx, &seen), kForked);
  NORIA_STATUS(noria_source_ready(s.source, NORIA_READABLE, &future), kForked);
  NORIA_STATUS(noria_source_clear(s.source, &seen, NORIA_READABLE), kForked);
  NORIA_STATUS(noria_source_close(s.source), kForked);
  NORIA_STATUS(noria_source_drop(s.source), kForked);
}

void call_listeners(const Sockets& s, const noria_cx* cx, int32_t fd) {
  noria_tcp_listener* listener = nullptr;
  noria_tcp* tcp = nullptr;
  noria_future* future = nullptr;
  noria_address address{};
  uint64_t rests = 0;
  NORIA_STATUS(noria_tcp_listen(s.rt, "127.0.0.1:0", nullptr, &future), kForked);
  NORIA_STATUS(noria_tcp_listener_from_fd(s.rt, fd, &listener), kForked);
  NORIA_STATUS(noria_tcp_poll_accept(s.listener, cx, &tcp), kForked);
  NORIA_STATUS(noria_tcp_accept(s.listener, &future), kForked);
  NORIA_STATUS(noria_tcp_listener_address(s.listener, &address), kForked);
  NORIA_STATUS(noria_tcp_listener_rests(s.listener, &rests), kForked);
  NORIA_STATUS(noria_tcp_listener_close(s.listener), kForked);
  NORIA_STATUS(noria_tcp_listener_drop(s.listener), kForked);
}

void call_streams(const Sockets& s, const noria_cx* cx, int32_t fd) {
  noria_tcp* tcp = nullptr;
  noria_future* future = nullptr;
  noria_address address{};
  char room[4] = "abc";
  noria_iovec piece{room, sizeof room};
  size_t count = 0;
  int32_t value = 0;
  NORIA_STATUS(noria_tcp_connect(s.rt, "127.0.0.1:1", nullptr, &future), kForked);
  NORIA_STATUS(noria_tcp_from_fd(s.rt, fd, &tcp), kForked);
  NORIA_STATUS(noria_tcp_poll_read(s.tcp, cx, room, sizeof room, &count), kForked);
  NORIA_STATUS(noria_tcp_poll_readv(s.tcp, cx, &piece, 1, &count), kForked);
  NORIA_STATUS(noria_tcp_poll_peek(s.tcp, cx, room, sizeof room, &count), kForked);
  NORIA_STATUS(noria_tcp_poll_write(s.tcp, cx, room, sizeof room, &count), kForked);
  NORIA_STATUS(noria_tcp_poll_writev(s.tcp, cx, &piece, 1, &count), kForked);
  NORIA_STATUS(noria_tcp_try_read(s.tcp, room, sizeof room, &count), kForked);
  NORIA_STATUS(noria_tcp_try_write(s.tcp, room, sizeof room, &count), kForked);
  NORIA_STATUS(noria_tcp_poll_ready(s.tcp, NORIA_READABLE, cx), kForked);
  NORIA_STATUS(noria_tcp_ready(s.tcp, NORIA_READABLE, &future), kForked);
  NORIA_STATUS(noria_tcp_poll_read_buf(s.tcp, cx, s.buf), kForked);
  NORIA_STATUS(noria_tcp_poll_write_buf(s.tcp, cx, s.buf, &count), kForked);
  NORIA_STATUS(noria_tcp_read(s.tcp, s.buf, &future), kForked);
  NORIA_STATUS(noria_tcp_write(s.tcp, s.buf, &future), kForked);
  NORIA_STATUS(noria_tcp_shutdown(s.tcp, NORIA_SHUTDOWN_WRITE), kForked);
  NORIA_STATUS(noria_tcp_set_option(s.tcp, NORIA_TCP_NODELAY, 1), kForked);
  NORIA_STATUS(noria_tcp_get_option(s.tcp, NORIA_TCP_NODELAY, &value), kForked);
  NORIA_STATUS(noria_tcp_local_address(s.tcp, &address), kForked);
  NORIA_STATUS(noria_tcp_peer_address(s.tcp, &address), kForked);
  NORIA_STATUS(noria_tcp_into_fd(s.tcp, &value), kForked);
  NORIA_STATUS(noria_tcp_close(s.tcp), kForked);
  NORIA_STATUS(noria_tcp_drop(s.tcp), kForked);
}

void call_copies(const Sockets& s) {
  noria_future* future = nullptr;
  noria_copy_result progress{};
  NORIA_STATUS(noria_copy(s.tcp, s.peer, nullptr, &future), kForked);
  NORIA_STATUS(noria_copy_bidirectional(s.tcp, s.peer, nullptr, &future), kForked);
  NORIA_STATUS(noria_copy_progress(s.copy, &progress), kForked);
}

}  // namespace

Test(Fork, A15_every_call_on_inherited_sources_and_sockets_is_refused) {
  on_runtimes(kCurrent | kTwo, [](Lane& lane) {
    ForeignWaker waker;
    Link link(lane), from(lane), to(lane);
    int32_t fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    Sockets inherited{lane.rt, nullptr, listen(lane), link.b, link.a, buffer(lane, "text"), nullptr};
    NORIA_OK_CALL(noria_source_new(lane.rt, fd, &inherited.source));
    NORIA_OK_CALL(noria_copy(from.b, to.a, nullptr, &inherited.copy));
    pid_t child = ::fork();
    if (child == 0) {
      Watchdog watchdog("the child");
      call_sources(inherited, waker.cx(), fd);
      call_listeners(inherited, waker.cx(), fd);
      call_streams(inherited, waker.cx(), fd);
      call_copies(inherited);
      ::_exit(0);
    }
    int status = 0;
    cr_assert_eq(::waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with %d", status);
    write_all(lane, link.a, "more");
    cr_assert(read_exactly(lane, link.b, 4) == "more");
    write_all(lane, from.a, "copied");
    cr_assert(read_exactly(lane, to.b, 6) == "copied");
    NORIA_OK_CALL(noria_future_drop(inherited.copy));
    NORIA_OK_CALL(noria_buf_release(inherited.buf));
    NORIA_OK_CALL(noria_tcp_listener_drop(inherited.listener));
    NORIA_OK_CALL(noria_source_drop(inherited.source));
    ::close(fd);
  });
}
