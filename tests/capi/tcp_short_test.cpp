// A read that brings less than there is room for says that the stream has nothing more (T2 of core/net/stream.hpp): no call is made that
// would only find that out, and nothing that comes meanwhile is missed.
//
// The linker leads the engine's calls of recv here (--wrap), and the test acts between the call and what the engine makes of it.
#include <sys/socket.h>

#include <atomic>
#include <functional>

#include "reactor/reactor.hpp"
#include "runtime/core.hpp"
#include "support/tcp.hpp"

using namespace noria::test;

namespace {

using Act = std::function<void()>;

std::atomic<Act*> g_after_recv{nullptr};  // once, when bytes were received
std::atomic<int> g_recvs{0};              // with room for as much as g_room
std::atomic<size_t> g_room{0};

// What comes next comes before the engine has drawn its conclusion: the events are reported, too.
void report_now(Lane& lane) { cr_assert_geq(noria::runtime::from_c(lane.rt)->reactor()->poll(0), 0); }

void on_current_thread(void (*body)(Lane&)) { on_runtime(Lane{"current-thread", 0}, body); }

// How a test reads: 0 by the poll form, 1 in future form, 2 through a copy to another connection.
constexpr int kWays = 3;

struct Reader {
  Lane& lane;
  const int way;
  Link link, behind;
  noria_future* copy = nullptr;

  Reader(Lane& on, int by) : lane(on), way(by), link(on), behind(on) {
    if (way == 2) assert_ok(noria_copy_bidirectional(link.b, behind.a, nullptr, &copy), "copy");
  }
  ~Reader() {
    if (copy != nullptr) assert_ok(noria_future_drop(copy), "drop");
  }
  Reader(const Reader&) = delete;

  // Up to `most` of the next bytes, for which the engine has more room than there are; an end is an empty text.
  int32_t read(std::string& out, size_t most = 1000) {
    if (way == 0) return read_some(lane, link.b, out, most + 1);
    if (way == 2) return read_some(lane, behind.b, out, most);
    noria_future* future = nullptr;
    noria_io_result result{};
    assert_ok(noria_tcp_read(link.b, buffer(lane, most + 1), &future), "read");
    int32_t status = lane.await(future, &result, sizeof result);
    out = text_of(result.buf);
    assert_ok(noria_buf_release(result.buf), "release");
    return status;
  }
  std::string read_text(size_t size) {
    std::string all, part;
    while (all.size() < size) {
      assert_ok(read(part, size - all.size()), "read");
      cr_assert(!part.empty(), "it ended after %zu of %zu bytes", all.size(), size);
      all += part;
    }
    return all;
  }
  void write_now(const char* text) {
    size_t count = 0;
    assert_ok(noria_tcp_try_write(link.a, text, std::strlen(text), &count), "write");
    cr_assert_eq(count, std::strlen(text));
  }
  void reset_now() {
    assert_ok(noria_tcp_set_option(link.a, NORIA_TCP_LINGER, 0), "linger");
    assert_ok(noria_tcp_drop(std::exchange(link.a, nullptr)), "drop");
  }
};

// `then` happens between the short read and the conclusion that nothing is left.
void after_a_short_read(Reader& reader, Act then) {
  Act inside = [&] {
    then();
    report_now(reader.lane);
  };
  g_after_recv = &inside;
  reader.write_now("first");
  cr_assert(reader.read_text(5) == "first");
  cr_assert_eq(g_after_recv.load(), nullptr);
}

}  // namespace

extern "C" {
ssize_t __real_recv(int fd, void* room, size_t size, int flags);

ssize_t __wrap_recv(int fd, void* room, size_t size, int flags) {
  ssize_t n = __real_recv(fd, room, size, flags);
  int error = errno;
  if (size == g_room) ++g_recvs;
  if (n > 0) {
    if (Act* what = g_after_recv.exchange(nullptr)) (*what)();
  }
  errno = error;
  return n;
}
}

Test(TcpShort, A_message_takes_one_call_to_read) {
  on_current_thread([](Lane& lane) {
    for (int way = 0; way < kWays; ++way) {
      ForeignWaker waker;
      Reader reader(lane, way);
      std::string text = pattern(64);
      g_room = way == 2 ? 65536 : 65;
      for (int i = 0; i < 10; ++i) {
        g_recvs = 0;
        write_all(lane, reader.link.a, text);
        cr_assert(reader.read_text(64) == text);
        char byte;
        size_t count = 0;
        if (way == 0) cr_assert_eq(noria_tcp_poll_read(reader.link.b, waker.cx(), &byte, 1, &count), NORIA_PENDING);
        if (way == 2) {  // the way back
          write_all(lane, reader.behind.b, text);
          cr_assert(read_exactly(lane, reader.link.a, 64) == text);
        }
        // A first try, before anything was reported, may find nothing.
        if (i > 0)
          cr_assert_eq(g_recvs.load(), way == 2 ? 2 : 1, "way %d, message %d: %d calls", way, i, g_recvs.load());
      }
    }
  });
}

Test(TcpShort, R1_bytes_that_come_after_a_short_read_are_read) {
  on_current_thread([](Lane& lane) {
    for (int way = 0; way < kWays; ++way) {
      Reader reader(lane, way);
      after_a_short_read(reader, [&] { reader.write_now("second"); });
      cr_assert(reader.read_text(6) == "second");
    }
  });
}

Test(TcpShort, R1_an_end_that_comes_before_or_after_a_short_read_is_told) {
  on_current_thread([](Lane& lane) {
    for (int way = 0; way < kWays; ++way) {
      for (bool before : {false, true}) {
        Reader reader(lane, way);
        Act end = [&] { assert_ok(noria_tcp_shutdown(reader.link.a, NORIA_SHUTDOWN_WRITE), "shutdown"); };
        std::string text;
        if (before) {
          reader.write_now("first");
          end();
          report_now(lane);
          cr_assert(reader.read_text(5) == "first");
        } else {
          after_a_short_read(reader, end);
        }
        assert_ok(reader.read(text), "the end");
        cr_assert_eq(text.size(), 0);
      }
    }
  });
}

Test(TcpShort, R1_a_reset_that_comes_after_a_short_read_is_told) {
  on_current_thread([](Lane& lane) {
    for (int way = 0; way < kWays; ++way) {
      Reader reader(lane, way);
      if (way == 2) {
        // The bytes were read: they go on, or go back if the way back notices first.
        Act inside = [&] {
          reader.reset_now();
          report_now(lane);
        };
        g_after_recv = &inside;
        reader.write_now("first");
        noria_copy_result result{};
        cr_assert_eq(lane.await(std::exchange(reader.copy, nullptr), &result, sizeof result), -ECONNRESET);
        std::string text = read_exactly(lane, reader.behind.b, result.a_to_b);
        if (result.a_to_b == 0) text = read_exactly(lane, reader.link.b, 5);
        cr_assert(text == "first");
        continue;
      }
      after_a_short_read(reader, [&] { reader.reset_now(); });
      std::string text;
      cr_assert_eq(reader.read(text), -ECONNRESET);
    }
  });
}
