// noria_copy and noria_copy_bidirectional.
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "support/fault.hpp"
#include "support/tcp.hpp"

using namespace noria::test;

namespace {

constexpr size_t kBig = 4 << 20;

// client.a = client.b ~ copy ~ server.a = server.b
struct Proxied {
  Link client, server;
  explicit Proxied(Lane& lane) : client(lane), server(lane) {}

  noria_future* start(const noria_copy_options* options = nullptr) {
    noria_future* copy = nullptr;
    assert_ok(noria_copy_bidirectional(client.b, server.a, options, &copy), "copy");
    return copy;
  }
};

noria_task* writer(Lane& lane, noria_tcp* tcp, const std::string& text) {
  return spawn(lane.rt, [tcp, &text, done = size_t{0}](const noria_cx* cx) mutable -> int32_t {
    while (done < text.size()) {
      size_t count = 0;
      int32_t status = noria_tcp_poll_write(tcp, cx, text.data() + done, text.size() - done, &count);
      if (status != NORIA_READY) return status;
      done += count;
    }
    return noria_tcp_shutdown(tcp, NORIA_SHUTDOWN_WRITE);
  });
}

// Bytes both ways at once through a copy, each side ending in its own time.
void exchange(Lane& lane, Proxied& line, size_t there_size, size_t back_size) {
  noria_future* copy = line.start();
  std::string there = pattern(there_size, 1), back = pattern(back_size, 2);
  noria_task* up = writer(lane, line.client.a, there);
  noria_task* down = writer(lane, line.server.b, back);
  std::string at_server, at_client;
  noria_task* reader = spawn(lane.rt, [&](const noria_cx* cx) -> int32_t {
    char room[10000];
    size_t count = 1;
    while (count != 0) {
      int32_t status = noria_tcp_poll_read(line.server.b, cx, room, sizeof room, &count);
      if (status != NORIA_READY) return status;
      at_server.append(room, count);
    }
    return NORIA_READY;
  });
  at_client = read_exactly(lane, line.client.a, back.size() + 1);
  for (noria_task* task : {up, down, reader}) cr_assert_eq(lane.join(task).kind, NORIA_JOIN_DONE);
  noria_copy_result result{};
  assert_ok(lane.await(copy, &result, sizeof result), "copy result");
  cr_assert(at_server == there);
  cr_assert(at_client == back);
  cr_assert_eq(result.a_to_b, there.size());
  cr_assert_eq(result.b_to_a, back.size());
}

}  // namespace

Test(Copy, Both_ways_at_once_and_half_close_is_passed_on) {
  on_each_runtime([](Lane& lane) {
    Proxied line(lane);
    exchange(lane, line, kBig, kBig / 2 + 7);
    Proxied empty(lane);
    exchange(lane, empty, 0, 0);
    Proxied small(lane);
    exchange(lane, small, 1, 100000);
  });
}

Test(Copy, P8_its_pipes_go_with_its_end) {
  on_each_runtime([](Lane& lane) {
    Proxied line(lane);
    int64_t before = descriptors();
    noria_copy_options options{};
    options.size = sizeof options;
    options.idle_timeout_ns = 3'600'000'000'000;  // its timer goes later than the copy
    noria_future* copy = line.start(&options);
    until_by_pipe(lane, line.client.a, line.server.b);
    until_by_pipe(lane, line.server.b, line.client.a);
    assert_ok(noria_tcp_shutdown(line.client.a, NORIA_SHUTDOWN_WRITE), "shutdown");
    assert_ok(noria_tcp_shutdown(line.server.b, NORIA_SHUTDOWN_WRITE), "shutdown");
    assert_ok(lane.await(copy, nullptr, 0), "result");
    cr_assert_eq(descriptors(), before);
  });
}

Test(Copy, One_way_ends_with_the_stream_and_leaves_the_target_open) {
  on_each_runtime([](Lane& lane) {
    Proxied line(lane);
    noria_future* copy = nullptr;
    noria_copy_result result{};
    std::string text = pattern(300000);
    assert_ok(noria_copy(line.client.b, line.server.a, nullptr, &copy), "copy");
    noria_task* task = writer(lane, line.client.a, text);
    cr_assert(read_exactly(lane, line.server.b, text.size()) == text);
    assert_ok(lane.await(copy, &result, sizeof result), "result");
    cr_assert_eq(result.a_to_b, text.size());
    cr_assert_eq(result.b_to_a, 0);
    lane.join(task);
    write_all(lane, line.server.a, "more");
    cr_assert(read_exactly(lane, line.server.b, 4) == "more");
  });
}

Test(Copy, An_echo_is_a_copy_of_a_stream_to_itself) {
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    noria_future* copy = nullptr;
    assert_ok(noria_copy(link.b, link.b, nullptr, &copy), "copy");
    for (int i = 0; i < 20; ++i) {
      std::string text = pattern(static_cast<size_t>(1 + i * 977), static_cast<unsigned>(i));
      write_all(lane, link.a, text);
      cr_assert(read_exactly(lane, link.a, text.size()) == text);
    }
    assert_ok(noria_future_drop(copy), "drop");
  });
}

Test(Copy, Without_descriptors_for_pipes_memory_does) {
  fail_syscall(SYS_pipe2, EMFILE, 1, 0);  // pipes with flags: the engine's
  on_each_runtime([](Lane& lane) {
    Proxied line(lane);
    exchange(lane, line, kBig / 4, kBig / 4);
  });
}

Test(Copy, Where_the_system_has_no_splice_memory_does) {
  fail_syscall(SYS_splice, EINVAL);
  on_each_runtime([](Lane& lane) {
    Proxied line(lane);
    exchange(lane, line, kBig / 4, kBig / 4);
  });
}

Test(Copy, Where_only_the_target_has_no_splice_what_is_in_the_pipe_is_not_lost) {
  fail_syscall(SYS_splice, EINVAL, 4, 64 * 1024);  // only calls of full length, which are those into the pipe
  on_each_runtime([](Lane& lane) {
    Proxied line(lane);
    exchange(lane, line, kBig / 4 + 5, 3);
  });
}

Test(Copy, P10_sigpipe_stays_away_and_the_users_own_is_kept) {
  for (bool users_own : {false, true}) {
    sigset_t set, pending;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    if (users_own) {
      cr_assert_eq(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
      raise(SIGPIPE);
    }
    on_each_runtime([&](Lane& lane) {
      Proxied line(lane);
      noria_future* copy = line.start();
      noria_copy_result result{};
      // The server resets: its end goes with unread bytes.
      write_all(lane, line.client.a, "for nobody");
      char byte;
      size_t count = 0;
      assert_ok(lane.run([&](const noria_cx* cx) { return noria_tcp_poll_peek(line.server.b, cx, &byte, 1, &count); }),
                "peek");
      assert_ok(noria_tcp_drop(std::exchange(line.server.b, nullptr)), "drop");
      int32_t status = lane.await(copy, &result, sizeof result);
      cr_assert(status == -ECONNRESET || status == -EPIPE, "%s", noria_error_name(status));
      cr_assert_eq(result.a_to_b, 10);
      // Writing on is what raises the signal, from a block and from a pipe.
      noria_future* again = nullptr;
      assert_ok(noria_copy(line.client.b, line.server.a, nullptr, &again), "copy");
      write_all(lane, line.client.a, "more");
      cr_assert_eq(lane.await(again, &result, sizeof result), -EPIPE);
      cr_assert_eq(result.a_to_b, 0);
      Proxied other(lane);
      copy = other.start();
      until_by_pipe(lane, other.client.a, other.server.b);
      assert_ok(noria_tcp_shutdown(other.server.a, NORIA_SHUTDOWN_WRITE), "shutdown");  // nothing is reported of that
      write_all(lane, other.client.a, "more");
      cr_assert_eq(lane.await(copy, &result, sizeof result), -EPIPE);
    });
    cr_assert_eq(sigpending(&pending), 0);
    cr_assert_eq(sigismember(&pending, SIGPIPE), users_own ? 1 : 0);
  }
}

Test(Copy, Target_that_ended_and_was_then_reset_is_noticed_while_the_source_is_silent) {
  on_each_runtime([](Lane& lane) {
    Proxied line(lane);
    noria_future* copy = line.start();
    noria_copy_result result{};
    std::string end;
    assert_ok(noria_tcp_drop(std::exchange(line.server.b, nullptr)), "drop");
    assert_ok(read_some(lane, line.client.a, end), "the end is passed on");
    cr_assert_eq(end.size(), 0);
    write_all(lane, line.client.a, "for nobody");  // answered by a reset
    int32_t status = lane.await(copy, &result, sizeof result);
    cr_assert(status == -ECONNRESET || status == -EPIPE, "%s", noria_error_name(status));
  });
}

Test(Copy, Idle_copy_ends_and_a_busy_one_does_not) {
  on_each_runtime([](Lane& lane) {
    Proxied line(lane);
    noria_copy_options options{};
    options.size = sizeof options;
    options.idle_timeout_ns = 60 * kSecond;
    noria_future* copy = line.start(&options);
    write_all(lane, line.client.a, "x");
    cr_assert_eq(read_exactly(lane, line.server.b, 1).size(), 1);
    assert_ok(noria_future_drop(copy), "drop");
    options.idle_timeout_ns = kSecond / 50;
    copy = line.start(&options);
    uint64_t begin = 0, end = 0;
    assert_ok(noria_now(lane.rt, &begin), "now");
    write_all(lane, line.client.a, "last");
    noria_copy_result result{};
    cr_assert_eq(lane.await(copy, &result, sizeof result), -ETIMEDOUT);
    assert_ok(noria_now(lane.rt, &end), "now");
    cr_assert_geq(end - begin, options.idle_timeout_ns);
    cr_assert_eq(result.a_to_b, 4);
    cr_assert(read_exactly(lane, line.server.b, 4) == "last");
  });
}

// Beside a pause a reading may be older than the one before it (the injected clock here stands in for that): no time-out comes of it.
Test(Copy, Clock_that_is_read_late_does_not_end_an_idle_copy) {
  std::atomic<std::uint64_t> time{1000 * kSecond};
  noria_runtime_options options{};
  options.clock_now = [](void* data) { return static_cast<std::atomic<std::uint64_t>*>(data)->load(); };
  options.clock_data = &time;
  on_runtimes(
      kCurrent,
      [&](Lane& lane) {
        Proxied line(lane);
        noria_copy_options idle{};
        idle.size = sizeof idle;
        idle.idle_timeout_ns = 60 * kSecond;
        noria_future* copy = line.start(&idle);
        --time;
        for (int i = 0; i < 3; ++i) NORIA_OK_CALL(noria_runtime_turn(lane.rt, 0, nullptr));
        cr_assert_eq(noria_future_result(copy, nullptr, 0), -EAGAIN);
        assert_ok(noria_future_drop(copy), "drop");
      },
      options);
}

Test(Copy, P8_cancelled_copy_counts_what_arrived_and_gives_back_the_rest) {
  on_each_runtime([](Lane& lane) {
    Proxied line(lane);
    std::string text = pattern(kBig), arrived, left;
    noria_future* copy = line.start();
    noria_task* task = writer(lane, line.client.a, text);
    // Nobody reads at the far end, so the copy fills up and holds bytes.
    noria_copy_result result{}, before{};
    uint64_t seen = 0;
    for (int still = 0; still < 20;) {
      assert_ok(lane.run([&](const noria_cx* cx) {
        return noria_yield(cx) == NORIA_PENDING && still++ < 3 ? NORIA_PENDING : NORIA_READY;
      }),
                "turn");
      assert_ok(noria_copy_progress(copy, &before), "progress");
      still = before.a_to_b == seen && seen > 0 ? still + 1 : 0;
      seen = before.a_to_b;
    }
    assert_ok(noria_future_cancel(copy), "cancel");
    cr_assert_eq(lane.await(copy, &result, sizeof result), -ECANCELED);
    cr_assert_geq(result.a_to_b, before.a_to_b);
    cr_assert_lt(result.a_to_b, text.size());
    arrived = read_exactly(lane, line.server.b, result.a_to_b);
    char byte;
    size_t count;
    cr_assert_eq(noria_tcp_try_read(line.server.b, &byte, 1, &count), -EAGAIN, "not a byte more than was counted");
    left = read_exactly(lane, line.client.b, text.size() - arrived.size());
    cr_assert(arrived + left == text);
    lane.join(task);
  });
}

Test(Copy, Streams_of_a_copy_are_not_taken_apart) {
  on_each_runtime([](Lane& lane) {
    for (bool ends : {false, true}) {
      Proxied line(lane);
      noria_future* copy = nullptr;
      noria_copy_result result{};
      int32_t fd = -1;
      assert_ok(noria_copy(line.client.b, line.server.a, nullptr, &copy), "copy");
      cr_assert_eq(noria_tcp_into_fd(line.client.b, &fd), -EBUSY);
      cr_assert_eq(noria_tcp_into_fd(line.server.a, &fd), -EBUSY);
      if (ends) {
        assert_ok(noria_tcp_shutdown(line.client.a, NORIA_SHUTDOWN_WRITE), "shutdown");
      } else {
        assert_ok(noria_future_cancel(copy), "cancel");
      }
      cr_assert_eq(lane.await(copy, &result, sizeof result), ends ? int32_t{NORIA_OK} : -ECANCELED);
      for (noria_tcp** tcp : {&line.client.b, &line.server.a}) {
        assert_ok(noria_tcp_into_fd(*tcp, &fd), "into_fd");
        *tcp = nullptr;
        close(fd);
      }
    }
  });
}

Test(Copy, Dropped_with_its_streams_at_any_moment) {
  on_each_runtime([](Lane& lane) {
    for (int i = 0; i < 30; ++i) {
      Proxied line(lane);
      noria_future* copy = line.start();
      std::string text = pattern(static_cast<size_t>(i) * 30011);
      noria_future* write = nullptr;
      assert_ok(noria_tcp_write(line.client.a, buffer(lane, text), &write), "write");
      if (i % 3 != 0) (void)read_exactly(lane, line.server.b, text.size() / 3);
      if (i % 2 != 0) assert_ok(noria_future_cancel(copy), "cancel");
      assert_ok(noria_future_drop(copy), "drop");
      assert_ok(noria_future_drop(write), "drop");
    }
  });
}

Test(Copy, Closed_stream_ends_the_copy_and_bad_arguments_are_told) {
  on_each_runtime([](Lane& lane) {
    Proxied line(lane);
    noria_future* copy = line.start();
    noria_copy_result result{};
    noria_future *other = nullptr, *sleep = nullptr;
    assert_ok(noria_tcp_close(line.server.a), "close");
    write_all(lane, line.client.a, "x");
    int32_t status = lane.await(copy, &result, sizeof result);
    cr_assert_eq(status, -EBADF);
    cr_assert_eq(noria_copy(line.client.b, line.server.a, nullptr, &other), -EBADF);
    cr_assert_eq(noria_copy(nullptr, line.server.a, nullptr, &other), -EINVAL);
    cr_assert_eq(noria_copy(line.client.b, line.server.a, nullptr, nullptr), -EINVAL);
    cr_assert_eq(noria_copy_bidirectional(line.client.b, line.client.b, nullptr, &other), -EINVAL);
    cr_assert_eq(noria_copy_progress(nullptr, &result), -EINVAL);
    assert_ok(noria_sleep(lane.rt, 0, &sleep), "sleep");
    cr_assert_eq(noria_copy_progress(sleep, &result), -EINVAL);
    assert_ok(noria_future_drop(sleep), "drop");
  });
}

Test(Copy, P5_a_copy_that_never_waits_lets_others_run) {
  on_runtime(Lane{"current-thread", 0}, [](Lane& lane) {
    Proxied line(lane);
    std::string text = pattern(kBig);
    noria_future* copy = line.start();
    noria_task* task = writer(lane, line.client.a, text);
    noria_copy_result now{}, last{};
    uint64_t most = 0;
    size_t got = 0;
    char room[65536];
    assert_ok(lane.run([&](const noria_cx* cx) -> int32_t {
      assert_ok(noria_copy_progress(copy, &now), "progress");
      most = std::max(most, now.a_to_b - last.a_to_b);
      last = now;
      size_t count = 0;
      while (noria_tcp_try_read(line.server.b, room, sizeof room, &count) == NORIA_OK && count != 0) got += count;
      return got < text.size() ? noria_yield(cx) : NORIA_READY;
    }),
              "run");
    cr_assert_leq(most, 2u << 20, "between two polls of this task it moved %llu",
                  static_cast<unsigned long long>(most));
    lane.join(task);
    assert_ok(noria_future_drop(copy), "drop");
  });
}
