// Rows of the group Reactor about TCP: emfile, reset-storm.
#include <dlfcn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <optional>
#include <thread>

#include "support/fault.hpp"
#include "support/tcp.hpp"

using namespace noria::test;

namespace {

std::atomic<uint64_t> g_accepts{0};  // calls, made by the engine
std::atomic<bool> g_none_left{false};

#ifdef NORIA_SANITIZED
// Sanitizers look at objects through a pipe, so the limit is played.
struct NoDescriptors {
  NoDescriptors() { g_none_left.store(true); }
  ~NoDescriptors() { g_none_left.store(false); }
};
#else
struct NoDescriptors : DescriptorLimit {
  NoDescriptors() : DescriptorLimit(0) {}
};
#endif

}  // namespace

extern "C" int accept4(int fd, sockaddr* address, socklen_t* size, int flags) {
  static auto real = reinterpret_cast<decltype(&accept4)>(dlsym(RTLD_NEXT, "accept4"));
  g_accepts.fetch_add(1);
  if (g_none_left.load()) {
    errno = EMFILE;
    return -1;
  }
  return real(fd, address, size, flags);
}

namespace {

uint64_t rests_of(noria_tcp_listener* listener) {
  uint64_t rests = 0;
  assert_ok(noria_tcp_listener_rests(listener, &rests), "rests");
  return rests;
}

void sleep_for(Lane& lane, uint64_t ns) {
  noria_future* sleep = nullptr;
  assert_ok(noria_sleep(lane.rt, ns, &sleep), "sleep");
  assert_ok(lane.await(sleep), "slept");
}

uint64_t now(Lane& lane) {
  uint64_t ns = 0;
  assert_ok(noria_now(lane.rt, &ns), "now");
  return ns;
}

// A plain client, so that nothing of it runs on the runtime.
int connect_plain(noria_tcp_listener* listener) {
  noria_address address;
  assert_ok(noria_tcp_listener_address(listener, &address), "address");
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_storage storage{};
  auto* in = reinterpret_cast<unsigned char*>(&storage);
  storage.ss_family = AF_INET;
  in[2] = static_cast<unsigned char>(address.port >> 8);
  in[3] = static_cast<unsigned char>(address.port & 0xFF);
  memcpy(in + 4, address.ip, 4);
  cr_assert_eq(connect(fd, reinterpret_cast<sockaddr*>(&storage), 16), 0);
  return fd;
}

void reset(int fd) {
  linger now{1, 0};
  cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
  close(fd);
}

}  // namespace

Test(Cases, Emfile_listener_rests_without_spinning_and_recovers_by_itself, .timeout = 60) {
  on_each_runtime([](Lane& lane) {
    noria_tcp_listener* listener = listen(lane);
    int clients[3];
    for (int& client : clients) client = connect_plain(listener);
    noria_future *first = nullptr, *second = nullptr;
    uint64_t begin = now(lane), rests = 0;
    {
      NoDescriptors none;
      assert_ok(noria_tcp_accept(listener, &first), "accept");
      while ((rests = rests_of(listener)) < 3) sleep_for(lane, kSecond / 200);
      // Who rests r times has waited 10 ms, 20 ms, 40 ms, ... between them.
      uint64_t least = kSecond / 100 * ((uint64_t{1} << (rests - 1)) - 1);
      cr_assert_geq(now(lane) - begin, least, "%llu rests", static_cast<unsigned long long>(rests));
      cr_assert_eq(noria_future_result(first, nullptr, 0), -EAGAIN, "still pending");
      assert_ok(noria_tcp_accept(listener, &second), "accept");
    }
    noria_tcp* served[3];
    assert_ok(lane.await(first, &served[0], sizeof served[0]), "by itself");
    assert_ok(lane.await(second, &served[1], sizeof served[1]), "by itself");
    served[2] = accept(lane, listener);
    for (int i = 0; i < 3; ++i) {
      cr_assert_eq(write(clients[i], "x", 1), 1);
      close(clients[i]);
    }
    for (noria_tcp* tcp : served) {
      cr_assert_eq(read_exactly(lane, tcp, 1).size(), 1);
      assert_ok(noria_tcp_drop(tcp), "drop");
    }
    assert_ok(noria_tcp_listener_drop(listener), "drop");
  });
}

Test(Cases, Emfile_connections_that_come_during_a_rest_do_not_make_it_shorter, .timeout = 60) {
  on_each_runtime([](Lane& lane) {
    noria_tcp_listener* listener = listen(lane);
    int clients[40];
    for (int& client : clients) client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    for (int client : clients) close(client);
    clients[0] = connect_plain(listener);
    int spare[39];
    for (int& fd : spare) fd = dup(0);
    noria_task* accepting = nullptr;
    noria_tcp* served[40];
    int count = 0;
    uint64_t begin = now(lane);
    std::optional<NoDescriptors> none(std::in_place);
    g_accepts.store(0);
    accepting = spawn(lane.rt, [&](const noria_cx* cx) -> int32_t {
      while (count < 40) {
        int32_t status = noria_tcp_poll_accept(listener, cx, &served[count]);
        if (status != NORIA_READY) return status;
        ++count;
      }
      return NORIA_READY;
    });
    while (rests_of(listener) < 1) sleep_for(lane, kSecond / 1000);
    for (int i = 0; i < 39; ++i) {
      close(spare[i]);
      clients[i + 1] = connect_plain(listener);  // takes the number that was freed
    }
    uint64_t rests = rests_of(listener), elapsed = now(lane) - begin;
    cr_assert_leq(g_accepts.exchange(0), rests + 1, "nothing is tried during a rest");
    cr_assert_geq(elapsed, kSecond / 100 * ((uint64_t{1} << (rests - 1)) - 1), "%llu rests",
                  static_cast<unsigned long long>(rests));
    none.reset();
    for (int client : clients) close(client);
    lane.join(accepting);
    cr_assert_eq(count, 40);
    for (noria_tcp* tcp : served) assert_ok(noria_tcp_drop(tcp), "drop");
    assert_ok(noria_tcp_listener_drop(listener), "drop");
  });
}

Test(Cases, Emfile_listener_is_dropped_and_shut_down_while_it_rests, .timeout = 60) {
  for (bool drops : {true, false}) {
    on_each_runtime([&](Lane& lane) {
      noria_tcp_listener* listener = listen(lane);
      int client = connect_plain(listener);
      noria_future* accepting = nullptr;
      {
        NoDescriptors none;
        assert_ok(noria_tcp_accept(listener, &accepting), "accept");
        while (rests_of(listener) < 1) sleep_for(lane, kSecond / 1000);
      }
      if (drops) {
        assert_ok(noria_tcp_listener_close(listener), "close");
        int32_t status = lane.await(accepting);
        cr_assert(status == -EBADF || status == NORIA_OK);
      } else {
        assert_ok(noria_runtime_shutdown(lane.rt, kSecond, nullptr), "shutdown");
        assert_ok(noria_future_drop(accepting), "drop");
      }
      assert_ok(noria_tcp_listener_drop(listener), "drop");
      close(client);
    });
  }
}

Test(Cases, ResetStorm_connections_that_die_in_the_backlog_cost_nobody_else, .timeout = 120) {
  on_each_runtime([](Lane& lane) {
    noria_tcp_listener* listener = listen(lane);
    constexpr int kStorm = 1000;
    int echoed = 0;
    noria_task* server =
        spawn(lane.rt, [&, tcp = static_cast<noria_tcp*>(nullptr)](const noria_cx* cx) mutable -> int32_t {
          for (;;) {
            if (tcp == nullptr) {
              int32_t status = noria_tcp_poll_accept(listener, cx, &tcp);
              if (status != NORIA_READY) return status;
            }
            char byte = 0;
            size_t count = 0;
            int32_t status = noria_tcp_poll_read(tcp, cx, &byte, 1, &count);
            if (status == NORIA_PENDING) return status;
            bool last = status == NORIA_OK && count == 1 && byte == '!';
            echoed += status == NORIA_OK && count == 1;
            assert_ok(noria_tcp_drop(std::exchange(tcp, nullptr)), "drop");
            if (last) return NORIA_READY;
          }
        });
    std::thread storm([&] {
      for (int i = 0; i < kStorm; ++i) {
        int fd = connect_plain(listener);
        if (i % 3 == 0) (void)!write(fd, "x", 1);
        if (i % 5 == 0) shutdown(fd, SHUT_WR);
        reset(fd);
      }
      int fd = connect_plain(listener);
      cr_assert_eq(write(fd, "!", 1), 1);
      close(fd);
    });
    cr_assert_eq(lane.join(server).kind, NORIA_JOIN_DONE);
    storm.join();
    cr_assert_geq(echoed, 1);
    assert_ok(noria_tcp_listener_drop(listener), "drop");
  });
}

Test(Cases, ResetStorm_a_reset_reaches_reader_and_writer, .timeout = 60) {
  on_each_runtime([](Lane& lane) {
    noria_tcp_listener* listener = listen(lane);
    int fd = connect_plain(listener);
    noria_tcp* tcp = accept(lane, listener);
    noria_future *read = nullptr, *write = nullptr;
    noria_io_result got{}, sent{};
    assert_ok(noria_tcp_read(tcp, buffer(lane, 10), &read), "read");
    assert_ok(noria_tcp_write(tcp, buffer(lane, pattern(16 << 20)), &write), "write");
    reset(fd);
    int32_t one = lane.await(read, &got, sizeof got), two = lane.await(write, &sent, sizeof sent);
    cr_assert(one == -ECONNRESET || two == -ECONNRESET, "%s, %s", noria_error_name(one), noria_error_name(two));
    cr_assert(two == -ECONNRESET || two == -EPIPE, "%s", noria_error_name(two));
    assert_ok(noria_buf_release(got.buf), "release");
    assert_ok(noria_buf_release(sent.buf), "release");
    assert_ok(noria_tcp_drop(tcp), "drop");
    assert_ok(noria_tcp_listener_drop(listener), "drop");
  });
}
