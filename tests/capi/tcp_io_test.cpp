// Reads and writes in future form, two tasks on one stream, budget.
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "support/tcp.hpp"

using namespace noria::test;

namespace {

constexpr size_t kBig = 8 << 20;

// Writes `text` and ends; reads until the end into `got`. Two tasks of one stream.
struct Ends {
  noria_task *writer, *reader;
};

Ends both_sides(Lane& lane, noria_tcp* tcp, const std::string& text, std::string& got) {
  noria_task* writer = spawn(lane.rt, [tcp, &text, done = size_t{0}](const noria_cx* cx) mutable -> int32_t {
    while (done < text.size()) {
      size_t count = 0;
      int32_t status = noria_tcp_poll_write(tcp, cx, text.data() + done, text.size() - done, &count);
      if (status != NORIA_READY) return status;
      done += count;
    }
    return noria_tcp_shutdown(tcp, NORIA_SHUTDOWN_WRITE);
  });
  noria_task* reader = spawn(lane.rt, [tcp, &got](const noria_cx* cx) -> int32_t {
    static thread_local char room[16384];
    for (;;) {
      size_t count = 0;
      int32_t status = noria_tcp_poll_read(tcp, cx, room, sizeof room, &count);
      if (status != NORIA_READY) return status;
      if (count == 0) return NORIA_READY;
      got.append(room, count);
    }
  });
  return {writer, reader};
}

}  // namespace

Test(TcpIo, Two_tasks_use_one_stream_at_once) {
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    std::string there = pattern(kBig, 1), back = pattern(kBig + 3, 2), at_a, at_b;
    Ends a = both_sides(lane, link.a, there, at_a);
    Ends b = both_sides(lane, link.b, back, at_b);
    for (noria_task* task : {a.writer, a.reader, b.writer, b.reader}) {
      noria_join_result how = lane.join(task);
      cr_assert_eq(how.kind, NORIA_JOIN_DONE, "%s", noria_error_name(how.error));
    }
    cr_assert(at_a == back);
    cr_assert(at_b == there);
  });
}

Test(TcpIo, Read_and_write_futures_bring_the_buffer_back) {
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    noria_future *write = nullptr, *read = nullptr;
    noria_io_result wrote{}, got{};
    assert_ok(noria_tcp_read(link.b, buffer(lane, 100), &read), "read");
    assert_ok(noria_tcp_write(link.a, buffer(lane, "payload"), &write), "write");
    assert_ok(lane.await(write, &wrote, sizeof wrote), "write result");
    assert_ok(lane.await(read, &got, sizeof got), "read result");
    cr_assert_eq(wrote.count, 7);
    cr_assert_eq(got.count, 7);
    cr_assert(text_of(got.buf) == "payload");
    assert_ok(noria_buf_release(wrote.buf), "release");
    assert_ok(noria_buf_release(got.buf), "release");
    assert_ok(noria_tcp_shutdown(link.a, NORIA_SHUTDOWN_WRITE), "shutdown");
    assert_ok(noria_tcp_read(link.b, buffer(lane, 100), &read), "read");
    assert_ok(lane.await(read, &got, sizeof got), "end of stream");
    cr_assert_eq(got.count, 0);
    assert_ok(noria_buf_release(got.buf), "release");
    assert_ok(noria_tcp_write(link.a, buffer(lane, "late"), &write), "write");
    cr_assert_eq(lane.await(write, &wrote, sizeof wrote), -EPIPE);
    cr_assert_eq(wrote.count, 0);
    assert_ok(noria_buf_release(wrote.buf), "release");
  });
}

Test(TcpIo, Reads_queue_up_in_order) {
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    constexpr int kReads = 40;  // more than one turn of the queue
    noria_future* reads[kReads];
    for (auto& read : reads) assert_ok(noria_tcp_read(link.b, buffer(lane, 3), &read), "read");
    std::string text = pattern(3 * kReads);
    write_all(lane, link.a, text);
    std::string got;
    for (auto& read : reads) {
      noria_io_result result{};
      assert_ok(lane.await(read, &result, sizeof result), "read result");
      got += text_of(result.buf);
      assert_ok(noria_buf_release(result.buf), "release");
    }
    cr_assert(got == text.substr(0, got.size()));
    got += read_exactly(lane, link.b, text.size() - got.size());
    cr_assert(got == text);
  });
}

Test(TcpIo, Big_writes_queue_up_and_are_complete) {
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    std::string first = pattern(kBig, 3), second = pattern(kBig / 2, 4), got;
    noria_future *one = nullptr, *two = nullptr;
    noria_io_result result{};
    assert_ok(noria_tcp_write(link.a, buffer(lane, first), &one), "write");
    assert_ok(noria_tcp_write(link.a, buffer(lane, second), &two), "write");
    got = read_exactly(lane, link.b, first.size() + second.size());
    cr_assert(got == first + second);
    for (noria_future* write : {one, two}) {
      assert_ok(lane.await(write, &result, sizeof result), "write result");
      assert_ok(noria_buf_release(result.buf), "release");
    }
  });
}

Test(TcpIo, A6_cancelled_write_tells_how_far_it_came) {
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    std::string text = pattern(kBig);
    noria_future *write = nullptr, *behind = nullptr;
    noria_io_result result{}, none{};
    assert_ok(noria_tcp_write(link.a, buffer(lane, text), &write), "write");
    assert_ok(noria_tcp_write(link.a, buffer(lane, "never"), &behind), "write");
    assert_ok(noria_future_cancel(behind), "cancel");
    cr_assert_eq(lane.await(behind, &none, sizeof none), -ECANCELED);
    cr_assert_eq(none.count, 0);
    assert_ok(noria_buf_release(none.buf), "release");
    assert_ok(noria_future_cancel(write), "cancel");
    cr_assert_eq(lane.await(write, &result, sizeof result), -ECANCELED);
    cr_assert_gt(result.count, 0);
    cr_assert_lt(result.count, text.size());
    assert_ok(noria_buf_release(result.buf), "release");
    assert_ok(noria_tcp_shutdown(link.a, NORIA_SHUTDOWN_WRITE), "shutdown");
    std::string got = read_exactly(lane, link.b, text.size());
    cr_assert_eq(got.size(), result.count, "the count is true");
    cr_assert(got == text.substr(0, got.size()));
  });
}

Test(TcpIo, P8_bytes_of_a_dropped_read_go_to_the_next) {
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    noria_future* reads[3];
    for (auto& read : reads) assert_ok(noria_tcp_read(link.b, buffer(lane, 4), &read), "read");
    write_all(lane, link.a, "aaaabbbbcccc");
    for (auto& read : reads) {
      assert_ok(lane.run([&](const noria_cx* cx) { return noria_future_poll(read, cx); }), "poll");
    }
    std::string before = "aaaabbbbcccc", after;
    for (int i : {2, 0, 1}) assert_ok(noria_future_drop(reads[i]), "drop");  // in no order
    char peeked[3];
    size_t count = 0;
    assert_ok(lane.run([&](const noria_cx* cx) { return noria_tcp_poll_peek(link.b, cx, peeked, 3, &count); }), "peek");
    cr_assert_eq(std::string(peeked, count), std::string("aaa").substr(0, count));
    int32_t fd;
    cr_assert_eq(noria_tcp_into_fd(link.b, &fd), -EBUSY, "bytes are kept");
    noria_future* next = nullptr;
    noria_io_result result{};
    assert_ok(noria_tcp_read(link.b, buffer(lane, 6), &next), "read");
    assert_ok(lane.await(next, &result, sizeof result), "result");
    after = text_of(result.buf);
    assert_ok(noria_buf_release(result.buf), "release");
    after += read_exactly(lane, link.b, before.size() - after.size());
    cr_assert(after == before, "%s", after.c_str());
    assert_ok(noria_tcp_into_fd(link.b, &fd), "into_fd");
    link.b = nullptr;
    close(fd);
  });
}

Test(TcpIo, P8_dropped_read_wakes_the_one_that_waits) {
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    noria_future *first = nullptr, *second = nullptr;
    noria_io_result result{};
    assert_ok(noria_tcp_read(link.b, buffer(lane, 4), &first), "read");
    write_all(lane, link.a, "late");
    assert_ok(lane.run([&](const noria_cx* cx) { return noria_future_poll(first, cx); }), "poll");
    assert_ok(noria_tcp_read(link.b, buffer(lane, 4), &second), "read");
    assert_ok(noria_future_drop(first), "drop");
    assert_ok(lane.await(second, &result, sizeof result), "result");
    cr_assert(text_of(result.buf) == "late");
    assert_ok(noria_buf_release(result.buf), "release");
  });
}

Test(TcpIo, P8_reads_are_dropped_in_every_state_beside_traffic) {
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    std::string text = pattern(200000), got;
    noria_task* writer = spawn(lane.rt, [&, done = size_t{0}](const noria_cx* cx) mutable -> int32_t {
      size_t count = 0;
      for (size_t burst = 1 + done % 700; done < text.size();) {
        size_t size = std::min(burst, text.size() - done);
        int32_t status = noria_tcp_poll_write(link.a, cx, text.data() + done, size, &count);
        if (status != NORIA_READY) return status;
        done += count;
        if (done < text.size()) return noria_yield(cx);
      }
      return NORIA_READY;
    });
    unsigned turn = 0;
    while (got.size() < text.size()) {
      noria_future* read = nullptr;
      noria_io_result result{};
      assert_ok(noria_tcp_read(link.b, buffer(lane, 64 + turn % 1000), &read), "read");
      if (++turn % 3 == 0) {
        assert_ok(noria_future_drop(read), "drop");
        continue;
      }
      if (turn % 3 == 1) assert_ok(noria_future_cancel(read), "cancel");
      int32_t status = lane.await(read, &result, sizeof result);
      cr_assert(status == NORIA_OK || status == -ECANCELED);
      if (status == NORIA_OK) got += text_of(result.buf);
      assert_ok(noria_buf_release(result.buf), "release");
    }
    cr_assert(got == text);
    lane.join(writer);
  });
}

// A read of a Unix socket stops behind a message that carries a descriptor, and no new edge comes for the rest.
Test(TcpIo, Short_read_of_a_unix_socket_is_not_the_last) {
  on_each_runtime([](Lane& lane) {
    int fds[2];
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    noria_tcp* tcp = nullptr;
    assert_ok(noria_tcp_from_fd(lane.rt, fds[0], &tcp), "from_fd");
    std::string got;
    size_t count = 0;
    char byte;
    for (int i = 0; i < 10; ++i) {
      // Both are there before the first read; readiness has been reported before.
      alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
      char text[] = "first";
      iovec piece{text, 5};
      msghdr message{};
      message.msg_iov = &piece;
      message.msg_iovlen = 1;
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int));
      memcpy(CMSG_DATA(header), &fds[1], sizeof(int));
      cr_assert_eq(sendmsg(fds[1], &message, 0), 5);
      cr_assert_eq(write(fds[1], "second", 6), 6);
      assert_ok(lane.run([&](const noria_cx* cx) { return noria_tcp_poll_peek(tcp, cx, &byte, 1, &count); }), "peek");
      cr_assert(read_exactly(lane, tcp, 11) == "firstsecond");
    }
    assert_ok(noria_tcp_drop(tcp), "drop");
    close(fds[1]);
  });
}

Test(TcpIo, P5_a_stream_that_is_always_ready_lets_others_run) {
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    write_all(lane, link.a, std::string(1000, 'x'));
    int in_one_poll = 0;
    bool spent = false;
    noria_task* reader = spawn(lane.rt, [&](const noria_cx* cx) -> int32_t {
      char byte;
      size_t count;
      for (in_one_poll = 0; noria_tcp_poll_read(link.b, cx, &byte, 1, &count) == NORIA_READY; ++in_one_poll) {
      }
      spent = noria_budget_spent() == 1;
      return NORIA_READY;
    });
    lane.join(reader);
    cr_assert_eq(in_one_poll, 128);
    cr_assert(spent);
  });
}
