// Sockets in states that they are rarely in: gone without being closed, a storm of dying connections, inherited, no connection.
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "net/stream.hpp"
#include "support/fault.hpp"
#include "support/tcp.hpp"

using namespace noria::test;
using noria::net::Stream;

// A thread that has passed the check of the call while another shuts the runtime down.
Test(TcpEdges, P9_read_that_races_with_shutdown_is_told) {
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    ForeignWaker waker;
    char byte;
    iovec piece{&byte, 1};
    size_t count = 0;
    Stream* stream = noria::net::from_c(link.b);
    assert_ok(noria_runtime_shutdown(lane.rt, kSecond, nullptr), "shutdown");
    Watchdog watchdog("a read of a stream that is gone");
    cr_assert_eq(stream->poll_read(waker.cx(), &piece, 1, Stream::Take::kRead, &count), -NORIA_ESHUTDOWN);
    cr_assert_eq(stream->poll_worth(NORIA_READABLE, waker.cx()), -NORIA_ESHUTDOWN);
  });
}

Test(TcpEdges, A10_accept_in_a_storm_of_dying_connections_keeps_no_budget) {
  fail_syscall(SYS_accept4, ECONNABORTED);
  on_each_runtime([](Lane& lane) {
    noria_tcp_listener* listener = listen(lane);
    noria_tcp *client = nullptr, *accepted = nullptr;
    assert_ok(connect(lane, address_of(listener).c_str(), &client), "connect");
    int kept = 0;
    // The second poll at the latest has seen the connection: what woke it was the report, or the end of its tries.
    noria_task* task = spawn(lane.rt, [&, polls = 0](const noria_cx* cx) mutable -> int32_t {
      cr_assert_eq(noria_tcp_poll_accept(listener, cx, &accepted), NORIA_PENDING);
      for (int unit = 0; unit < 128; ++unit) kept += noria_budget_poll(cx) == NORIA_READY ? 0 : 1;
      return ++polls < 3 ? int32_t{NORIA_PENDING} : int32_t{NORIA_READY};
    });
    lane.join(task);
    cr_assert_eq(kept, 0);
    assert_ok(noria_tcp_listener_drop(listener), "drop");
    assert_ok(noria_tcp_drop(client), "drop");
  });
}

Test(TcpEdges, What_is_no_connection_is_refused) {
  on_each_runtime([](Lane& lane) {
    noria_tcp* tcp = nullptr;
    int listening = socket(AF_INET, SOCK_STREAM, 0), fresh = socket(AF_INET, SOCK_STREAM, 0);
    int datagrams = socket(AF_INET, SOCK_DGRAM, 0), pipes[2];
    sockaddr_in any{};
    any.sin_family = AF_INET;
    cr_assert_eq(bind(listening, reinterpret_cast<sockaddr*>(&any), sizeof any), 0);
    cr_assert_eq(::listen(listening, 1), 0);
    cr_assert_eq(pipe(pipes), 0);
    cr_assert_eq(noria_tcp_from_fd(lane.rt, listening, &tcp), -EINVAL);
    cr_assert_eq(noria_tcp_from_fd(lane.rt, fresh, &tcp), -ENOTCONN);
    cr_assert_eq(noria_tcp_from_fd(lane.rt, datagrams, &tcp), -EINVAL);
    cr_assert_eq(noria_tcp_from_fd(lane.rt, pipes[0], &tcp), -ENOTSOCK);
    cr_assert_eq(noria_tcp_from_fd(lane.rt, -1, &tcp), -EBADF);
    for (int fd : {listening, fresh, datagrams, pipes[0], pipes[1]}) cr_assert_eq(close(fd), 0, "it is the caller's");
  });
}

Test(TcpEdges, P9_copy_between_a_childs_stream_and_an_inherited_one_is_refused) {
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    pid_t child = fork();
    if (child == 0) {
      noria_runtime_options options{};
      options.size = sizeof options;
      options.kind = NORIA_RUNTIME_CURRENT_THREAD;
      noria_runtime* own = nullptr;
      noria_tcp* tcp = nullptr;
      noria_future* copy = nullptr;
      int ends[2];
      bool refused = noria_runtime_new(&options, &own) == NORIA_OK && socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 &&
                     noria_tcp_from_fd(own, ends[0], &tcp) == NORIA_OK &&
                     noria_copy(tcp, link.a, nullptr, &copy) == -NORIA_EFORKED &&
                     noria_copy_bidirectional(link.a, tcp, nullptr, &copy) == -NORIA_EFORKED;
      _exit(refused ? 0 : 1);
    }
    int status = 0;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  });
}
