// Reads, writes and copies that are dropped while a thread is about them: what comes after them keeps its place (P8).
#include <atomic>
#include <cerrno>

#include "support/tcp.hpp"

using namespace noria::test;

namespace {

// Reads until the end of the stream.
std::string read_rest(Lane& lane, noria_tcp* tcp) {
  std::string all, part;
  do {
    assert_ok(read_some(lane, tcp, part), "read");
    all += part;
  } while (!part.empty());
  return all;
}

// Writes `text` with pauses between its parts, until it is told to stop or has ended; does not shut down.
noria_task* writer(Lane& lane, noria_tcp* tcp, const std::string& text, size_t part, std::atomic<size_t>& done) {
  return spawn(lane.rt, [tcp, &text, part, &done](const noria_cx* cx) -> int32_t {
    while (done < text.size()) {
      size_t count = 0;
      size_t size = std::min(part, text.size() - done);
      int32_t status = noria_tcp_poll_write(tcp, cx, text.data() + done, size, &count);
      if (status != NORIA_READY) return status;
      done += count;
      return noria_yield(cx);
    }
    return NORIA_READY;
  });
}

}  // namespace

Test(TcpOrder, P8_read_dropped_while_its_end_is_told_keeps_its_place) {
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    noria_future* read = nullptr;
    char tried[8], polled[8];
    size_t count = 0;
    int32_t by_try = 0, by_poll = 0, by_ready = 0;
    ForeignWaker next;
    ForeignWaker told([&] {  // the operation has its bytes and has not ended
      assert_ok(noria_future_drop(read), "drop");
      by_try = noria_tcp_try_read(link.b, tried, sizeof tried, &count);
      by_ready = noria_tcp_poll_ready(link.b, NORIA_READABLE, next.cx());
      by_poll = noria_tcp_poll_read(link.b, next.cx(), polled, sizeof polled, &count);
    });
    assert_ok(noria_tcp_read(link.b, buffer(lane, 4), &read), "read");
    cr_assert_eq(noria_future_on_ready(read, told.waker()), NORIA_PENDING);
    write_all(lane, link.a, "aaaabbbb");
    lane.until([&] { return told.wakes() == 1; }, "the read's end");
    cr_assert_eq(by_try, -EAGAIN);
    cr_assert_eq(by_ready, NORIA_PENDING);
    cr_assert_eq(by_poll, NORIA_PENDING);
    lane.until([&] { return next.wakes() == 1; }, "the one that waits is told");
    cr_assert(read_exactly(lane, link.b, 8) == "aaaabbbb");
  });
}

Test(TcpOrder, Result_that_was_taken_holds_nobody_up) {
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    noria_future* read = nullptr;
    noria_io_result result{};
    char byte;
    size_t count = 0;
    int32_t status = 0, before = 0, after = 0;
    ForeignWaker told([&] {
      before = noria_tcp_try_read(link.b, &byte, 1, &count);
      status = noria_future_result(read, &result, sizeof result);
      after = noria_tcp_try_read(link.b, &byte, 1, &count);
    });
    assert_ok(noria_tcp_read(link.b, buffer(lane, 4), &read), "read");
    cr_assert_eq(noria_future_on_ready(read, told.waker()), NORIA_PENDING);
    write_all(lane, link.a, "aaaab");
    lane.until([&] { return told.wakes() == 1; }, "the read's end");
    assert_ok(status, "result");
    cr_assert_eq(before, -EAGAIN);
    assert_ok(after, "read");
    cr_assert_eq(byte, 'b');
    assert_ok(noria_buf_release(result.buf), "release");
    assert_ok(noria_future_drop(read), "drop");
  });
}

// A read that takes a part of what a dropped one had left, and is dropped too.
Test(TcpOrder, P8_dropped_part_of_what_was_dropped_goes_before_the_rest) {
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    write_all(lane, link.a, "abcd");
    for (std::size_t room : {4u, 2u, 1u, 3u}) {
      noria_future* read = nullptr;
      assert_ok(noria_tcp_read(link.b, buffer(lane, room), &read), "read");
      assert_ok(noria_future_wait(read, NORIA_FOREVER), "the read's end");
      assert_ok(noria_future_drop(read), "drop");
    }
    std::string part;
    assert_ok(read_some(lane, link.b, part, 1), "read");
    cr_assert(part == "a");
    write_all(lane, link.a, "efgh");
    for (std::size_t room : {2u, 8u}) {
      noria_future* read = nullptr;
      assert_ok(noria_tcp_read(link.b, buffer(lane, room), &read), "read");
      assert_ok(noria_future_wait(read, NORIA_FOREVER), "the read's end");
      assert_ok(noria_future_drop(read), "drop");
    }
    cr_assert(read_exactly(lane, link.b, 7) == "bcdefgh");
  });
}

Test(TcpOrder, P8_reads_dropped_beside_traffic_are_not_overtaken_by_poll_forms) {
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    std::string text = pattern(300000), got, part;
    std::atomic<size_t> done{0};
    noria_task* task = writer(lane, link.a, text, 300, done);
    for (unsigned turn = 0; got.size() < text.size(); ++turn) {
      noria_future* read = nullptr;
      assert_ok(noria_tcp_read(link.b, buffer(lane, 50 + turn % 300), &read), "read");
      for (unsigned spin = turn % 200; spin > 0; --spin) cr_assert_eq(noria_future_on_ready(read, nullptr), -EINVAL);
      assert_ok(noria_future_drop(read), "drop");
      assert_ok(read_some(lane, link.b, part, 400), "read");
      got += part;
    }
    cr_assert(got == text);
    lane.join(task);
  });
}

Test(TcpOrder, P8_dropped_copy_is_not_overtaken_by_the_next_read) {
  on_each_runtime([](Lane& lane) {
    Link client(lane), server(lane);
    noria_future* copy = nullptr;
    std::string text = pattern(8 << 20), left;
    std::atomic<size_t> written{0};
    assert_ok(noria_copy(client.b, server.a, nullptr, &copy), "copy");
    noria_task* task = writer(lane, client.a, text, text.size(), written);
    // Nobody reads at the far end: the copy fills up, and holds bytes.
    noria_copy_result now{};
    uint64_t seen = 0;
    for (int still = 0; still < 20;) {
      assert_ok(lane.run([turns = 0](const noria_cx* cx) mutable -> int32_t {
        return turns++ < 3 ? noria_yield(cx) : int32_t{NORIA_READY};
      }),
                "turn");
      assert_ok(noria_copy_progress(copy, &now), "progress");
      still = now.a_to_b == seen && seen > 0 ? still + 1 : 0;
      seen = now.a_to_b;
    }
    assert_ok(lane.run([&, room = std::string(1000, '\0')](const noria_cx* cx) mutable -> int32_t {
      if (copy != nullptr) assert_ok(noria_future_drop(std::exchange(copy, nullptr)), "drop");
      size_t count = 0;
      int32_t status = noria_tcp_poll_read(client.b, cx, room.data(), room.size(), &count);
      if (status == NORIA_READY) left.append(room, 0, count);
      return status;
    }),
              "read");
    assert_ok(noria_tcp_shutdown(server.a, NORIA_SHUTDOWN_WRITE), "shutdown");
    std::string arrived = read_rest(lane, server.b);
    left += read_exactly(lane, client.b, text.size() - arrived.size() - left.size());
    cr_assert(arrived + left == text);
    lane.join(task);
  });
}

Test(TcpOrder, P8_copies_dropped_beside_traffic_move_nothing_more) {
  on_each_runtime([](Lane& lane) {
    for (unsigned turn = 0; turn < 40; ++turn) {
      Link client(lane), server(lane);
      noria_future* copy = nullptr;
      std::string text = pattern(60000), start;
      std::atomic<size_t> written{0};
      assert_ok(noria_copy(client.b, server.a, nullptr, &copy), "copy");
      noria_task* task = writer(lane, client.a, text, 500 + 40 * turn, written);
      assert_ok(read_some(lane, server.b, start, 1 + turn), "the first bytes");
      for (unsigned i = 0; i < 50 * turn; ++i) cr_assert_eq(noria_copy_progress(copy, nullptr), -EINVAL);
      assert_ok(noria_future_drop(copy), "drop");
      write_all(lane, server.a, "MARK");
      lane.join(task);
      assert_ok(noria_tcp_shutdown(server.a, NORIA_SHUTDOWN_WRITE), "shutdown");
      std::string arrived = start + read_rest(lane, server.b);
      cr_assert_geq(arrived.size(), 4u);
      cr_assert(arrived.substr(arrived.size() - 4) == "MARK", "nothing comes behind what was written after the drop");
      arrived.resize(arrived.size() - 4);
      assert_ok(noria_tcp_shutdown(client.a, NORIA_SHUTDOWN_WRITE), "shutdown");
      cr_assert(arrived + read_rest(lane, client.b) == text);
    }
  });
}

Test(TcpOrder, P8_next_copy_waits_for_the_end_of_a_dropped_one) {
  on_each_runtime([](Lane& lane) {
    Link client(lane), server(lane);
    std::string text = pattern(1 << 20), got;
    std::atomic<size_t> written{0};
    noria_future* copy = nullptr;
    noria_task* task = writer(lane, client.a, text, 5000, written);
    for (unsigned turn = 0; got.size() < text.size(); ++turn) {
      assert_ok(noria_copy(client.b, server.a, nullptr, &copy), "copy");
      std::string part;
      if (turn % 4 != 3) assert_ok(read_some(lane, server.b, part, 20000), "read");
      got += part;
      assert_ok(noria_future_drop(copy), "drop");
    }
    cr_assert(got == text);
    lane.join(task);
  });
}
