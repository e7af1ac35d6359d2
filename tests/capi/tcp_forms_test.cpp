// Readiness in future form, reads and writes of a noria_buf in poll form.
#include <cerrno>

#include "support/tcp.hpp"

using namespace noria::test;

Test(TcpForms, Ready_future_tells_what_is_worth_a_try) {
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    noria_future *readable = nullptr, *writable = nullptr;
    char byte;
    size_t count = 0;
    assert_ok(noria_tcp_ready(link.b, NORIA_WRITABLE, &writable), "ready");
    assert_ok(lane.await(writable), "writable");
    cr_assert_eq(noria_tcp_try_read(link.b, &byte, 1, &count), -EAGAIN);
    assert_ok(noria_tcp_ready(link.b, NORIA_READABLE, &readable), "ready");
    cr_assert_eq(noria_future_result(readable, nullptr, 0), -EAGAIN, "pending");
    write_all(lane, link.a, "x");
    assert_ok(lane.await(readable), "readable");
    assert_ok(noria_tcp_try_read(link.b, &byte, 1, &count), "read");
    cr_assert_eq(byte, 'x');
  });
}

Test(TcpForms, P8_ready_future_knows_of_bytes_that_came_back) {
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    noria_future *read = nullptr, *readable = nullptr;
    char byte;
    size_t count = 0;
    assert_ok(noria_tcp_read(link.b, buffer(lane, 4), &read), "read");
    write_all(lane, link.a, "kept");
    assert_ok(lane.run([&](const noria_cx* cx) { return noria_future_poll(read, cx); }), "poll");
    assert_ok(noria_tcp_ready(link.b, NORIA_READABLE, &readable), "ready");
    assert_ok(noria_future_drop(read), "drop");
    assert_ok(lane.await(readable), "readable");
    assert_ok(noria_tcp_try_read(link.b, &byte, 1, &count), "read");
    cr_assert_eq(byte, 'k');
  });
}

// A ready future that is pending. The first report of a fresh stream may come between a failed read and its clear, which then does
// nothing: the stream is worth one more try.
static noria_future* pending_ready(noria_tcp* tcp) {
  noria_future* future = nullptr;
  for (;;) {
    char byte;
    size_t count = 0;
    cr_assert_eq(noria_tcp_try_read(tcp, &byte, 1, &count), -EAGAIN);
    assert_ok(noria_tcp_ready(tcp, NORIA_READABLE, &future), "ready");
    int32_t status = noria_future_result(future, nullptr, 0);
    if (status == -EAGAIN) return future;
    assert_ok(status, "worth a try");
    assert_ok(noria_future_drop(future), "drop");
  }
}

Test(TcpForms, Ready_future_ends_with_the_stream_and_is_cancelled) {
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    noria_future* none = nullptr;
    cr_assert_eq(noria_tcp_ready(link.b, NORIA_READABLE | NORIA_WRITABLE, &none), -EINVAL);
    cr_assert_eq(noria_tcp_ready(link.b, 0, &none), -EINVAL);
    cr_assert_eq(noria_tcp_ready(link.b, NORIA_READABLE, nullptr), -EINVAL);
    cr_assert_eq(noria_tcp_ready(nullptr, NORIA_READABLE, &none), -EINVAL);
    noria_future *cancelled = pending_ready(link.b), *dropped = pending_ready(link.b), *closed = pending_ready(link.b);
    assert_ok(noria_future_cancel(cancelled), "cancel");
    cr_assert_eq(lane.await(cancelled), -ECANCELED);
    assert_ok(noria_future_drop(dropped), "drop");
    assert_ok(noria_tcp_close(link.b), "close");
    cr_assert_eq(lane.await(closed), -EBADF);
    cr_assert_eq(noria_tcp_ready(link.b, NORIA_READABLE, &none), -EBADF);
  });
}

Test(TcpForms, Buffers_go_through_poll_forms_to_the_end_of_stream) {
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    std::string text = pattern(6 << 20), got;
    noria_buf* out = buffer(lane, text);
    noria_task* task = spawn(lane.rt, [&, done = size_t{0}](const noria_cx* cx) mutable -> int32_t {
      int32_t status = noria_tcp_poll_write_buf(link.a, cx, out, &done);
      if (status != NORIA_READY) return status;
      cr_assert_eq(done, text.size(), "all of it");
      return noria_tcp_shutdown(link.a, NORIA_SHUTDOWN_WRITE);
    });
    noria_buf* in = buffer(lane, 30000);
    size_t length = 1;
    while (length != 0) {
      assert_ok(lane.run([&](const noria_cx* cx) { return noria_tcp_poll_read_buf(link.b, cx, in); }), "read");
      assert_ok(noria_buf_length(in, &length), "length");
      got += text_of(in);
    }
    cr_assert(got == text);
    cr_assert_eq(lane.join(task).kind, NORIA_JOIN_DONE);
    for (noria_buf* buf : {out, in}) assert_ok(noria_buf_release(buf), "release");
  });
}

Test(TcpForms, Buffers_that_cannot_be_used_are_told) {
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    ForeignWaker waker;
    noria_buf *empty = buffer(lane, 0), *text = buffer(lane, "text");
    size_t count = 5;
    cr_assert_eq(noria_tcp_poll_read_buf(link.a, waker.cx(), empty), -EINVAL, "no room");
    noria_future* read = nullptr;
    cr_assert_eq(noria_tcp_read(link.a, empty, &read), -EINVAL, "no room: it would look like the end of stream");
    cr_assert_eq(noria_tcp_poll_read_buf(link.a, waker.cx(), nullptr), -EINVAL);
    cr_assert_eq(noria_tcp_poll_read_buf(link.a, nullptr, text), -EINVAL);
    cr_assert_eq(noria_tcp_poll_write_buf(link.a, waker.cx(), text, &count), -EINVAL, "beyond the length");
    cr_assert_eq(noria_tcp_poll_write_buf(link.a, waker.cx(), text, nullptr), -EINVAL);
    cr_assert_eq(noria_tcp_poll_write_buf(nullptr, waker.cx(), text, &count), -EINVAL);
    assert_ok(noria_tcp_close(link.a), "close");
    count = 0;
    cr_assert_eq(noria_tcp_poll_read_buf(link.a, waker.cx(), text), -EBADF);
    cr_assert_eq(noria_tcp_poll_write_buf(link.a, waker.cx(), text, &count), -EBADF);
    cr_assert_eq(noria_tcp_poll_write_buf(link.a, waker.cx(), empty, &count), -EBADF, "of nothing, too");
    for (noria_buf* buf : {empty, text}) assert_ok(noria_buf_release(buf), "release");
  });
}

Test(TcpForms, A2_switches_of_options_are_zero_one_or_none) {
  on_each_runtime([](Lane& lane) {
    noria_future* future = nullptr;
    noria_tcp_listen_options listen{};
    listen.size = sizeof listen;
    listen.reuse_port = 2;
    cr_assert_eq(noria_tcp_listen(lane.rt, "127.0.0.1:0", &listen, &future), -EINVAL);
    listen.reuse_port = NORIA_NONE;
    listen.ipv6_only = 7;
    cr_assert_eq(noria_tcp_listen(lane.rt, "127.0.0.1:0", &listen, &future), -EINVAL);
    listen.ipv6_only = NORIA_NONE;
    listen.backlog = NORIA_NONE;
    cr_assert_eq(noria_tcp_listen(lane.rt, "127.0.0.1:0", &listen, &future), -EINVAL);
    listen.backlog = NORIA_UNLIMITED;
    noria_tcp_listener* listener = nullptr;
    assert_ok(noria_tcp_listen(lane.rt, "127.0.0.1:0", &listen, &future), "listen");
    assert_ok(lane.await(future, &listener, sizeof listener), "listening");
    assert_ok(noria_tcp_listener_drop(listener), "drop");
    noria_tcp_connect_options connect{};
    connect.size = sizeof connect;
    connect.delay = 3;
    cr_assert_eq(noria_tcp_connect(lane.rt, "127.0.0.1:1", &connect, &future), -EINVAL);
  });
}
