// noria_tcp_* and noria_address_*: each function's plain case and documented errors.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "support/tcp.hpp"

using namespace noria::test;

Test(Address, Text_and_address_agree) {
  struct {
    const char *text, *formatted;
    uint32_t family;
    uint16_t port;
  } good[] = {{"127.0.0.1:80", nullptr, AF_INET, 80},
              {"0.0.0.0:0", nullptr, AF_INET, 0},
              {"255.255.255.255:65535", nullptr, AF_INET, 65535},
              {"[::1]:80", nullptr, AF_INET6, 80},
              {"[::ffff:1.2.3.4]:5", nullptr, AF_INET6, 5},
              {"[fe80::1%7]:1", nullptr, AF_INET6, 1},
              {"[fe80::1%lo]:1", "[fe80::1%1]:1", AF_INET6, 1},
              {"[2001:DB8:0:0:0:0:0:1]:443", "[2001:db8::1]:443", AF_INET6, 443}};
  for (auto& row : good) {
    noria_address address;
    char text[64];
    cr_assert_eq(noria_address_parse(row.text, &address), NORIA_OK, "%s", row.text);
    cr_assert_eq(address.family, row.family);
    cr_assert_eq(address.port, row.port);
    cr_assert_eq(noria_address_format(&address, text, sizeof text), NORIA_OK);
    cr_assert_str_eq(text, row.formatted != nullptr ? row.formatted : row.text);
    cr_assert_eq(noria_address_format(&address, text, strlen(text)), -ENOSPC, "%s", row.text);
  }
  const char* bad[] = {"",
                       "1.2.3.4",
                       "1.2.3.4:",
                       "1.2.3.4:65536",
                       "1.2.3.4:-1",
                       "1.2.3.4:80 ",
                       ":80",
                       "::1:80",
                       "[::1]",
                       "[::1]80",
                       "[::1:80",
                       "[]:80",
                       "[1.2.3.4]:80",
                       "1.2.3:80",
                       "name:80",
                       "[fe80::1%]:1",
                       "1.2.3.4:+8",
                       "256.1.1.1:1",
                       "[fe80::%x]:1",
                       "1.2.3.4:99999999999999999999"};
  noria_address before{};
  before.port = 77;
  for (const char* text : bad) {
    noria_address address = before;
    cr_assert_eq(noria_address_parse(text, &address), -EINVAL, "%s", text);
    cr_assert_eq(address.port, 77, "left as it was");
  }
  char text[8];
  noria_address unix_address{};
  unix_address.family = AF_UNIX;
  cr_assert_eq(noria_address_format(&unix_address, text, sizeof text), -EAFNOSUPPORT);
  cr_assert_eq(noria_address_format(nullptr, text, sizeof text), -EINVAL);
  cr_assert_eq(noria_address_format(&before, nullptr, 8), -EINVAL);
  cr_assert_eq(noria_address_parse(nullptr, &before), -EINVAL);
  cr_assert_eq(noria_address_parse("1.2.3.4:5", nullptr), -EINVAL);
}

Test(Tcp, Bytes_go_both_ways_and_each_side_ends_by_itself) {
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    std::string got;
    write_all(lane, link.a, "hello");
    cr_assert(read_exactly(lane, link.b, 5) == "hello");
    assert_ok(noria_tcp_shutdown(link.a, NORIA_SHUTDOWN_WRITE), "shutdown");
    assert_ok(read_some(lane, link.b, got), "read");
    cr_assert_eq(got.size(), 0, "end of stream");
    write_all(lane, link.b, "still here");
    cr_assert(read_exactly(lane, link.a, 10) == "still here");
    size_t count = 0;
    cr_assert_eq(noria_tcp_try_write(link.a, "x", 1, &count), -EPIPE, "and no SIGPIPE");
    cr_assert_eq(noria_tcp_shutdown(link.a, 0), -EINVAL);
    cr_assert_eq(noria_tcp_shutdown(link.a, 4), -EINVAL);
    assert_ok(noria_tcp_shutdown(link.b, NORIA_SHUTDOWN_BOTH), "shutdown");
    assert_ok(read_some(lane, link.a, got), "read");
    cr_assert_eq(got.size(), 0);
  });
}

Test(Tcp, Addresses_and_options_are_told) {
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    noria_address local, peer;
    assert_ok(noria_tcp_local_address(link.a, &local), "local");
    assert_ok(noria_tcp_peer_address(link.b, &peer), "peer");
    cr_assert_eq(local.port, peer.port);
    cr_assert_eq(memcmp(local.ip, peer.ip, 16), 0);
    struct {
      uint32_t option;
      int32_t value, back;
    } rows[] = {{NORIA_TCP_NODELAY, 0, 0},
                {NORIA_TCP_NODELAY, 1, 1},
                {NORIA_TCP_KEEPALIVE, 30, 30},
                {NORIA_TCP_KEEPALIVE, 0, 0},
                {NORIA_TCP_LINGER, 5, 5},
                {NORIA_TCP_LINGER, 0, 0},
                {NORIA_TCP_LINGER, -1, -1},
                {NORIA_TCP_USER_TIMEOUT, 900, 900},
                {NORIA_TCP_SEND_BUFFER, 20000, 40000},
                {NORIA_TCP_RECV_BUFFER, 20000, 40000}};
    int32_t value = 0;
    assert_ok(noria_tcp_get_option(link.b, NORIA_TCP_NODELAY, &value), "get");
    cr_assert_eq(value, 1, "set on what is accepted");
    assert_ok(noria_tcp_get_option(link.a, NORIA_TCP_NODELAY, &value), "get");
    cr_assert_eq(value, 1, "set on what is connected");
    for (auto& row : rows) {
      assert_ok(noria_tcp_set_option(link.a, row.option, row.value), "set");
      assert_ok(noria_tcp_get_option(link.a, row.option, &value), "get");
      cr_assert_eq(value, row.back, "option %u: %d", row.option, value);
    }
    assert_ok(noria_tcp_set_option(link.a, NORIA_TCP_QUICKACK, 1), "set");
    assert_ok(noria_tcp_get_option(link.a, NORIA_TCP_ERROR, &value), "get");
    cr_assert_eq(value, 0);
    cr_assert_eq(noria_tcp_set_option(link.a, NORIA_TCP_ERROR, 0), -EINVAL);
    cr_assert_eq(noria_tcp_set_option(link.a, 99, 0), -EINVAL);
    cr_assert_eq(noria_tcp_get_option(link.a, 99, &value), -EINVAL);
    cr_assert_eq(noria_tcp_set_option(link.a, NORIA_TCP_LINGER, -2), -EINVAL);
    cr_assert_eq(noria_tcp_set_option(link.a, NORIA_TCP_NODELAY, -1), -EINVAL);
  });
}

Test(Tcp, Pieces_and_peeks) {
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    char one[] = "one", two[] = "two!";
    noria_iovec out[] = {{one, 3}, {nullptr, 0}, {two, 4}};
    size_t count = 0;
    assert_ok(lane.run([&](const noria_cx* cx) { return noria_tcp_poll_writev(link.a, cx, out, 3, &count); }),
              "writev");
    cr_assert_eq(count, 7);
    char peeked[16] = {};
    do {
      assert_ok(lane.run([&](const noria_cx* cx) { return noria_tcp_poll_peek(link.b, cx, peeked, 16, &count); }),
                "peek");
    } while (count < 7);
    cr_assert_str_eq(peeked, "onetwo!");
    char head[4] = {}, tail[8] = {};
    noria_iovec in[] = {{head, 3}, {tail, 7}};
    assert_ok(lane.run([&](const noria_cx* cx) { return noria_tcp_poll_readv(link.b, cx, in, 2, &count); }), "readv");
    cr_assert_eq(count, 7);
    cr_assert_str_eq(head, "one");
    cr_assert_str_eq(tail, "two!");
    cr_assert_eq(noria_tcp_try_read(link.b, head, 3, &count), -EAGAIN);
    cr_assert_eq(noria_tcp_try_write(link.b, "ok", 2, &count), NORIA_OK);
    cr_assert_eq(count, 2);
    assert_ok(lane.run([&](const noria_cx* cx) { return noria_tcp_poll_ready(link.a, NORIA_READABLE, cx); }), "ready");
    assert_ok(lane.run([&](const noria_cx* cx) { return noria_tcp_poll_ready(link.a, NORIA_WRITABLE, cx); }), "ready");
    cr_assert_eq(noria_tcp_try_read(link.a, head, 3, &count), NORIA_OK);
    cr_assert_eq(count, 2);
  });
}

Test(Tcp, Bad_arguments_are_told) {
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    noria_future* future = nullptr;
    noria_tcp* tcp = nullptr;
    noria_cx none{};
    size_t count = 0;
    int32_t fd = 0;
    noria_address address;
    char byte = 0;
    cr_assert_eq(noria_tcp_connect(lane.rt, nullptr, nullptr, &future), -EINVAL);
    cr_assert_eq(noria_tcp_connect(lane.rt, "127.0.0.1:1", nullptr, nullptr), -EINVAL);
    cr_assert_eq(noria_tcp_connect(nullptr, "127.0.0.1:1", nullptr, &future), -NORIA_ENOCONTEXT);
    for (const char* text : {"", "host", "host:", "host:x", "host:65536", ":1", "[name]:1", "a:b:1"}) {
      cr_assert_eq(noria_tcp_connect(lane.rt, text, nullptr, &future), -EINVAL, "%s", text);
      cr_assert_eq(noria_tcp_listen(lane.rt, text, nullptr, &future), -EINVAL, "%s", text);
    }
    noria_tcp_connect_options options{};
    options.size = sizeof options;
    options.local = "nowhere";
    cr_assert_eq(noria_tcp_connect(lane.rt, "127.0.0.1:1", &options, &future), -EINVAL);
    options.size = 2;
    cr_assert_eq(noria_tcp_connect(lane.rt, "127.0.0.1:1", &options, &future), -EINVAL);
    struct {
      noria_tcp_listen_options known;
      uint32_t more;
    } longer{};
    longer.known.size = sizeof longer;
    longer.more = 1;
    cr_assert_eq(noria_tcp_listen(lane.rt, "127.0.0.1:0", &longer.known, &future), -E2BIG);
    cr_assert_eq(noria_tcp_poll_read(nullptr, &none, &byte, 1, &count), -EINVAL);
    cr_assert_eq(noria_tcp_poll_read(link.a, &none, &byte, 1, &count), -EINVAL, "a cx without a waker");
    cr_assert_eq(noria_tcp_poll_read(link.a, nullptr, &byte, 1, &count), -EINVAL);
    cr_assert_eq(noria_tcp_try_read(link.a, nullptr, 1, &count), -EINVAL);
    cr_assert_eq(noria_tcp_try_read(link.a, &byte, 1, nullptr), -EINVAL);
    cr_assert_eq(noria_tcp_try_write(nullptr, &byte, 1, &count), -EINVAL);
    cr_assert_eq(noria_tcp_read(link.a, nullptr, &future), -EINVAL);
    cr_assert_eq(noria_tcp_write(nullptr, nullptr, &future), -EINVAL);
    cr_assert_eq(noria_tcp_shutdown(nullptr, 1), -EINVAL);
    cr_assert_eq(noria_tcp_local_address(link.a, nullptr), -EINVAL);
    cr_assert_eq(noria_tcp_peer_address(nullptr, &address), -EINVAL);
    cr_assert_eq(noria_tcp_into_fd(link.a, nullptr), -EINVAL);
    cr_assert_eq(noria_tcp_into_fd(nullptr, &fd), -EINVAL);
    cr_assert_eq(noria_tcp_close(nullptr), -EINVAL);
    cr_assert_eq(noria_tcp_drop(nullptr), -EINVAL);
    cr_assert_eq(noria_tcp_accept(nullptr, &future), -EINVAL);
    cr_assert_eq(noria_tcp_listener_drop(nullptr), -EINVAL);
    cr_assert_eq(noria_tcp_listener_close(nullptr), -EINVAL);
    cr_assert_eq(noria_tcp_listener_address(nullptr, &address), -EINVAL);
    cr_assert_eq(noria_tcp_from_fd(lane.rt, -1, &tcp), -EBADF);
    cr_assert_eq(noria_tcp_from_fd(lane.rt, STDIN_FILENO, nullptr), -EINVAL);
    int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    cr_assert_eq(noria_tcp_from_fd(lane.rt, file, &tcp), -ENOTSOCK);
    noria_tcp_listener* listener = nullptr;
    cr_assert_eq(noria_tcp_listener_from_fd(lane.rt, file, &listener), -ENOTSOCK);
    close(file);
    int plain = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(noria_tcp_listener_from_fd(lane.rt, plain, &listener), -EINVAL, "it does not listen");
    close(plain);
    cr_assert_null(future);
  });
}

Test(Tcp, Without_the_driver_sockets_are_refused) {
  noria_runtime_options options{};
  options.enable_io = NORIA_NONE;
  on_each_runtime(
      [](Lane& lane) {
        noria_future* future = nullptr;
        noria_tcp* tcp = nullptr;
        noria_source* source = nullptr;
        cr_assert_eq(noria_tcp_connect(lane.rt, "127.0.0.1:1", nullptr, &future), -NORIA_ENODRIVER);
        cr_assert_eq(noria_tcp_listen(lane.rt, "127.0.0.1:0", nullptr, &future), -NORIA_ENODRIVER);
        cr_assert_eq(noria_tcp_from_fd(lane.rt, 0, &tcp), -NORIA_ENODRIVER);
        cr_assert_eq(noria_source_new(lane.rt, 0, &source), -NORIA_ENODRIVER);
      },
      options);
}

Test(Tcp, Without_time_a_time_out_is_refused_and_the_rest_works) {
  noria_runtime_options options{};
  options.enable_time = NORIA_NONE;
  on_each_runtime(
      [](Lane& lane) {
        noria_future* future = nullptr;
        noria_tcp_connect_options wish{};
        wish.size = sizeof wish;
        wish.timeout_ns = 1000;
        cr_assert_eq(noria_tcp_connect(lane.rt, "127.0.0.1:1", &wish, &future), -NORIA_ENODRIVER);
        Link link(lane);
        noria_copy_options idle{};
        idle.size = sizeof idle;
        idle.idle_timeout_ns = 1000;
        cr_assert_eq(noria_copy(link.a, link.b, &idle, &future), -NORIA_ENODRIVER);
        write_all(lane, link.a, "x");
        cr_assert_eq(read_exactly(lane, link.b, 1).size(), 1);
      },
      options);
}

Test(Tcp, Connect_tells_who_refuses_and_what_cannot_be_resolved) {
  on_each_runtime([](Lane& lane) {
    noria_tcp* tcp = nullptr;
    noria_tcp_listener* listener = listen(lane);
    std::string address = address_of(listener);
    assert_ok(noria_tcp_listener_drop(listener), "drop");
    cr_assert_eq(connect(lane, address.c_str(), &tcp), -ECONNREFUSED);
    cr_assert_eq(connect(lane, "bad..name:80", &tcp), -NORIA_ERESOLVE);
    noria_tcp_connect_options options{};
    options.size = sizeof options;
    options.local = "[::1]:0";
    cr_assert_eq(connect(lane, address.c_str(), &tcp, &options), -EAFNOSUPPORT);
    cr_assert_null(tcp);
  });
}

Test(Tcp, Names_are_looked_up_and_a_local_address_is_bound) {
  on_each_runtime([](Lane& lane) {
    noria_tcp_listener* listener = listen(lane, "localhost:0");
    noria_address address;
    assert_ok(noria_tcp_listener_address(listener, &address), "address");
    std::string name = "localhost:" + std::to_string(address.port);
    noria_tcp* tcp = nullptr;
    noria_tcp_connect_options options{};
    options.size = sizeof options;
    options.timeout_ns = 30 * kSecond;
    options.delay = 1;
    if (address.family == AF_INET) options.local = "127.0.0.9:0";
    assert_ok(connect(lane, name.c_str(), &tcp, &options), "by name");
    noria_tcp* peer = accept(lane, listener);
    noria_address local;
    int32_t value = 1;
    assert_ok(noria_tcp_peer_address(peer, &local), "peer");
    if (address.family == AF_INET) cr_assert_eq(local.ip[3], 9);
    assert_ok(noria_tcp_get_option(tcp, NORIA_TCP_NODELAY, &value), "get");
    cr_assert_eq(value, 0);
    for (noria_tcp* one : {tcp, peer}) assert_ok(noria_tcp_drop(one), "drop");
    assert_ok(noria_tcp_listener_drop(listener), "drop");
  });
}

Test(Tcp, Connect_is_cancelled_and_dropped_at_any_point) {
  on_each_runtime([](Lane& lane) {
    noria_tcp_listener* listener = listen(lane);
    std::string address = address_of(listener);
    for (const char* to : {address.c_str(), "localhost:1", "bad..name:1", "192.0.2.1:9"}) {
      for (bool cancels : {true, false}) {
        noria_future* future = nullptr;
        noria_tcp_connect_options options{};
        options.size = sizeof options;
        options.timeout_ns = 60 * kSecond;
        assert_ok(noria_tcp_connect(lane.rt, to, &options, &future), "connect");
        if (cancels) {
          assert_ok(noria_future_cancel(future), "cancel");
          noria_tcp* tcp = nullptr;
          int32_t status = lane.await(future, &tcp, sizeof tcp);
          cr_assert(status != NORIA_OK || tcp != nullptr);
          if (tcp != nullptr) assert_ok(noria_tcp_drop(tcp), "drop");
        } else {
          assert_ok(noria_future_drop(future), "drop");
        }
      }
    }
    assert_ok(noria_tcp_listener_drop(listener), "drop");
  });
}

Test(Tcp, Listen_tells_what_is_in_use_and_shares_a_port_if_asked) {
  on_each_runtime([](Lane& lane) {
    noria_tcp_listen_options options{};
    options.size = sizeof options;
    options.reuse_port = 1;
    options.backlog = 5;
    noria_tcp_listener* first = listen(lane, "127.0.0.1:0", &options);
    std::string address = address_of(first);
    noria_tcp_listener* second = listen(lane, address.c_str(), &options);
    noria_future* future = nullptr;
    assert_ok(noria_tcp_listen(lane.rt, address.c_str(), nullptr, &future), "listen");
    cr_assert_eq(noria_future_result(future, nullptr, 0), -EADDRINUSE, "a numeric address is ready at once");
    assert_ok(noria_future_drop(future), "drop");
    assert_ok(noria_tcp_listen(lane.rt, "127.0.0.1:0", nullptr, &future), "listen");
    assert_ok(noria_future_drop(future), "one that nobody takes closes its listener");
    noria_address six;
    options = {};
    options.size = sizeof options;
    options.ipv6_only = 1;
    noria_tcp_listener* third = listen(lane, "[::1]:0", &options);
    assert_ok(noria_tcp_listener_address(third, &six), "address");
    cr_assert_eq(six.family, AF_INET6);
    for (noria_tcp_listener* one : {first, second, third}) assert_ok(noria_tcp_listener_drop(one), "drop");
  });
}

Test(Tcp, Accepts_queue_up_and_one_that_is_dropped_loses_no_connection) {
  on_each_runtime([](Lane& lane) {
    noria_tcp_listener* listener = listen(lane);
    std::string address = address_of(listener);
    noria_future* accepts[4];
    for (auto& future : accepts) assert_ok(noria_tcp_accept(listener, &future), "accept");
    assert_ok(noria_future_cancel(accepts[3]), "cancel");
    cr_assert_eq(lane.await(accepts[3]), -ECANCELED);
    noria_tcp *clients[3], *served[3];
    for (int i = 0; i < 3; ++i) {
      assert_ok(connect(lane, address.c_str(), &clients[i]), "connect");
      write_all(lane, clients[i], std::string(1, static_cast<char>('0' + i)));
    }
    // The first has its connection; it goes to whoever asks next.
    assert_ok(lane.run([&](const noria_cx* cx) { return noria_future_poll(accepts[0], cx); }), "poll");
    assert_ok(noria_future_drop(accepts[0]), "drop");
    assert_ok(lane.await(accepts[1], &served[1], sizeof served[1]), "second");
    assert_ok(lane.await(accepts[2], &served[2], sizeof served[2]), "third");
    served[0] = accept(lane, listener);
    int seen = 0;
    for (noria_tcp* tcp : served) seen |= 1 << (read_exactly(lane, tcp, 1)[0] - '0');
    cr_assert_eq(seen, 7);
    for (noria_tcp* tcp : clients) assert_ok(noria_tcp_drop(tcp), "drop");
    for (noria_tcp* tcp : served) assert_ok(noria_tcp_drop(tcp), "drop");
    assert_ok(noria_tcp_listener_drop(listener), "drop");
  });
}

Test(Tcp, Closing_a_listener_tells_who_waits) {
  on_each_runtime([](Lane& lane) {
    noria_tcp_listener* listener = listen(lane);
    noria_future *waiting = nullptr, *late = nullptr;
    noria_address address;
    noria_tcp* tcp = nullptr;
    uint64_t rests = 9;
    assert_ok(noria_tcp_accept(listener, &waiting), "accept");
    assert_ok(noria_tcp_listener_close(listener), "close");
    assert_ok(noria_tcp_listener_close(listener), "twice is once");
    cr_assert_eq(lane.await(waiting, &tcp, sizeof tcp), -EBADF);
    cr_assert_eq(noria_tcp_accept(listener, &late), -EBADF);
    cr_assert_eq(lane.run([&](const noria_cx* cx) { return noria_tcp_poll_accept(listener, cx, &tcp); }), -EBADF);
    cr_assert_eq(noria_tcp_listener_address(listener, &address), -EBADF);
    assert_ok(noria_tcp_listener_rests(listener, &rests), "rests");
    cr_assert_eq(rests, 0);
    assert_ok(noria_tcp_listener_drop(listener), "drop");
  });
}

Test(Tcp, Closing_a_stream_tells_who_waits) {
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    noria_future* read = nullptr;
    noria_io_result result{};
    assert_ok(noria_tcp_read(link.a, buffer(lane, 10), &read), "read");
    assert_ok(noria_tcp_close(link.a), "close");
    cr_assert_eq(lane.await(read, &result, sizeof result), -EBADF);
    cr_assert_eq(result.count, 0);
    assert_ok(noria_buf_release(result.buf), "the buffer comes back");
    // A task that polls is told by its own close.
    Link other(lane);
    int32_t polled = NORIA_PENDING;
    bool closed = false;
    assert_ok(lane.run([&](const noria_cx* cx) -> int32_t {
      char byte;
      size_t count;
      polled = noria_tcp_poll_read(other.b, cx, &byte, 1, &count);
      if (polled == NORIA_PENDING && !closed) {
        closed = true;
        assert_ok(noria_tcp_close(other.b), "close");
      }
      return polled == NORIA_PENDING ? NORIA_PENDING : NORIA_READY;
    }),
              "run");
    cr_assert_eq(polled, -EBADF);
    size_t count;
    int32_t value, fd;
    noria_address address;
    noria_future* future = nullptr;
    noria_buf* buf = buffer(lane, "x");
    cr_assert_eq(noria_tcp_try_read(link.a, &value, 4, &count), -EBADF);
    cr_assert_eq(noria_tcp_try_write(link.a, &value, 4, &count), -EBADF);
    cr_assert_eq(noria_tcp_shutdown(link.a, NORIA_SHUTDOWN_BOTH), -EBADF);
    cr_assert_eq(noria_tcp_set_option(link.a, NORIA_TCP_NODELAY, 1), -EBADF);
    cr_assert_eq(noria_tcp_get_option(link.a, NORIA_TCP_NODELAY, &value), -EBADF);
    cr_assert_eq(noria_tcp_local_address(link.a, &address), -EBADF);
    cr_assert_eq(noria_tcp_peer_address(link.a, &address), -EBADF);
    cr_assert_eq(noria_tcp_into_fd(link.a, &fd), -EBADF);
    cr_assert_eq(noria_tcp_read(link.a, buf, &future), -EBADF);
    cr_assert_eq(noria_tcp_write(link.a, buf, &future), -EBADF);
    assert_ok(noria_buf_release(buf), "it stayed ours");
    assert_ok(noria_tcp_close(link.a), "twice is once");
  });
}

Test(Tcp, Descriptor_goes_out_and_comes_in_again) {
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    noria_future* read = nullptr;
    noria_buf* buf = buffer(lane, 4);
    int32_t fd = -1;
    assert_ok(noria_tcp_read(link.a, buf, &read), "read");
    cr_assert_eq(noria_tcp_into_fd(link.a, &fd), -EBUSY, "an operation is pending");
    assert_ok(noria_future_drop(read), "drop");
    assert_ok(noria_tcp_into_fd(link.a, &fd), "into_fd");
    cr_assert_eq(write(fd, "direct", 6), 6);
    cr_assert(read_exactly(lane, link.b, 6) == "direct");
    assert_ok(noria_tcp_from_fd(lane.rt, fd, &link.a), "from_fd");
    noria_tcp* twice = nullptr;
    cr_assert_eq(noria_tcp_from_fd(lane.rt, fd, &twice), -EEXIST);
    write_all(lane, link.b, "back");
    cr_assert(read_exactly(lane, link.a, 4) == "back");
  });
}

Test(Tcp, Unix_sockets_are_streams_without_addresses) {
  on_each_runtime([](Lane& lane) {
    int fds[2];
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    noria_tcp *a = nullptr, *b = nullptr;
    assert_ok(noria_tcp_from_fd(lane.rt, fds[0], &a), "from_fd");
    assert_ok(noria_tcp_from_fd(lane.rt, fds[1], &b), "from_fd");
    cr_assert(fcntl(fds[0], F_GETFL) & O_NONBLOCK);
    write_all(lane, a, "local");
    cr_assert(read_exactly(lane, b, 5) == "local");
    noria_address address;
    cr_assert_eq(noria_tcp_local_address(a, &address), -EAFNOSUPPORT);
    cr_assert_eq(noria_tcp_peer_address(a, &address), -EAFNOSUPPORT);
    assert_ok(noria_tcp_drop(a), "drop");
    assert_ok(noria_tcp_drop(b), "drop");
    int datagrams[2];
    cr_assert_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, datagrams), 0);
    cr_assert_eq(noria_tcp_from_fd(lane.rt, datagrams[0], &a), -EINVAL);
    for (int fd : datagrams) close(fd);
  });
}

Test(Tcp, P9_after_shutdown_every_call_is_refused_and_drop_works) {
  Lane lane{"2 workers", 2};
  noria_runtime_options options{};
  options.size = sizeof options;
  options.workers = 2;
  assert_ok(noria_runtime_new(&options, &lane.rt), "new");
  {
    Link link(lane);
    noria_tcp_listener* listener = listen(lane);
    noria_future *read = nullptr, *accepting = nullptr, *late = nullptr;
    assert_ok(noria_tcp_read(link.a, buffer(lane, 10), &read), "read");
    assert_ok(noria_tcp_accept(listener, &accepting), "accept");
    noria_buf* buf = buffer(lane, 1);
    assert_ok(noria_runtime_shutdown(lane.rt, kSecond, nullptr), "shutdown");
    noria_io_result result{};
    cr_assert_eq(noria_future_result(read, &result, sizeof result), -ECANCELED);
    assert_ok(noria_buf_release(result.buf), "release");
    cr_assert_eq(noria_future_result(accepting, nullptr, 0), -ECANCELED);
    assert_ok(noria_future_drop(read), "drop");
    assert_ok(noria_future_drop(accepting), "drop");
    size_t count;
    char byte;
    noria_tcp* tcp = nullptr;
    cr_assert_eq(noria_tcp_try_read(link.a, &byte, 1, &count), -NORIA_ESHUTDOWN);
    cr_assert_eq(noria_tcp_try_write(link.a, &byte, 1, &count), -NORIA_ESHUTDOWN);
    cr_assert_eq(noria_tcp_read(link.a, buf, &late), -NORIA_ESHUTDOWN);
    cr_assert_eq(noria_tcp_accept(listener, &late), -NORIA_ESHUTDOWN);
    cr_assert_eq(noria_tcp_connect(lane.rt, "127.0.0.1:1", nullptr, &late), -NORIA_ESHUTDOWN);
    cr_assert_eq(noria_tcp_listen(lane.rt, "127.0.0.1:0", nullptr, &late), -NORIA_ESHUTDOWN);
    cr_assert_eq(noria_tcp_from_fd(lane.rt, 0, &tcp), -NORIA_ESHUTDOWN);
    cr_assert_eq(noria_copy(link.a, link.b, nullptr, &late), -NORIA_ESHUTDOWN);
    assert_ok(noria_buf_release(buf), "release");
    assert_ok(noria_tcp_close(link.a), "close");
    assert_ok(noria_tcp_listener_drop(listener), "drop");
  }
  assert_ok(noria_runtime_release(lane.rt), "release");
  assert_nothing_alive("after shutdown");
}

Test(Tcp, P6_paused_time_waits_for_a_name) {
  noria_runtime_options options{};
  options.clock_paused = 1;
  on_each_runtime(
      [](Lane& lane) {
        noria_tcp* tcp = nullptr;
        noria_tcp_connect_options wish{};
        wish.size = sizeof wish;
        wish.timeout_ns = kSecond;
        for (int i = 0; i < 20; ++i) {
          int32_t status = connect(lane, "bad..name:80", &tcp, &wish);
          cr_assert_eq(status, -NORIA_ERESOLVE, "%s", noria_error_name(status));
        }
      },
      options);
}

Test(Tcp, Connect_to_a_port_that_nobody_listens_on_never_meets_itself) {
  on_runtime(Lane{"current-thread", 0}, [](Lane& lane) {
    noria_tcp_listener* listener = listen(lane);
    std::string address = address_of(listener);
    assert_ok(noria_tcp_listener_drop(listener), "drop");
    noria_tcp* tcp = nullptr;
    noria_tcp_connect_options options{};
    options.size = sizeof options;
    options.local = address.c_str();  // the kernel would choose it once in a while
    int32_t status = connect(lane, address.c_str(), &tcp, &options);
    cr_assert_eq(status, -ECONNREFUSED, "%s", noria_error_name(status));
    cr_assert_null(tcp);
  });
}
