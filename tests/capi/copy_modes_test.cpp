// A copy goes through a block of memory while little comes at once, and through a pipe once much does (core/net/way.hpp).
#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "support/fault.hpp"
#include "support/tcp.hpp"

using namespace noria::test;

namespace {

std::atomic<int> g_splices{0};
std::atomic<int> g_blocks{0};  // of those that a worker lends

bool is_block(size_t size, size_t align) { return size == 65536 && align == 64; }
void* give(size_t size, size_t align, void*) {
  if (is_block(size, align)) ++g_blocks;
  void* room = nullptr;
  return posix_memalign(&room, std::max(align, sizeof(void*)), size) == 0 ? room : nullptr;
}
void take_back(void* room, size_t size, size_t align, void*) {
  if (is_block(size, align)) --g_blocks;
  free(room);
}

// client.a = client.b ~ copy ~ server.a = server.b
struct Line {
  Lane& lane;
  Link client, server;
  noria_future* copy = nullptr;
  uint64_t before_fill = 0;  // a_to_b

  explicit Line(Lane& on) : lane(on), client(on), server(on) {
    assert_ok(noria_copy_bidirectional(client.b, server.a, nullptr, &copy), "copy");
  }
  ~Line() {
    if (copy != nullptr) assert_ok(noria_future_drop(copy), "drop");
  }
  Line(const Line&) = delete;

  noria_tcp* from(bool up) { return up ? client.a : server.b; }
  noria_tcp* to(bool up) { return up ? server.b : client.a; }
  noria_tcp* source(bool up) { return up ? client.b : server.a; }

  void pass(bool up, size_t size, unsigned seed) {
    std::string text = pattern(size, seed);
    write_all(lane, from(up), text);
    cr_assert(read_exactly(lane, to(up), size) == text, "%zu bytes, seed %u", size, seed);
  }
  // Writes upwards, where nobody reads at the far end, until the copy holds bytes and waits; gives what was written. With `much` to come at
  // once, or so that a way that goes by the block finds little each time.
  std::string fill_up(bool much) {
    noria_copy_result now{};
    assert_ok(noria_copy_progress(copy, &now), "progress");
    before_fill = now.a_to_b;
    std::string sent;
    uint64_t moved = 0;
    int still = 0;
    for (unsigned i = 0; still < 50; ++i) {
      if (much || sent.size() - moved < 6000) {
        std::string piece = pattern(much ? 50000 : 3000, i);
        size_t count = 0;
        int32_t status = noria_tcp_try_write(client.a, piece.data(), piece.size(), &count);
        cr_assert(status == NORIA_OK || status == -EAGAIN, "%s", noria_error_name(status));
        if (status == NORIA_OK) sent.append(piece, 0, count);
      }
      int turns = 0;
      assert_ok(lane.run([&](const noria_cx* cx) { return ++turns < 4 ? noria_yield(cx) : NORIA_READY; }), "turns");
      assert_ok(noria_copy_progress(copy, &now), "progress");
      still = now.a_to_b - before_fill == moved ? still + 1 : 0;
      moved = now.a_to_b - before_fill;
    }
    return sent;
  }
  void until_by_pipe(bool up) { noria::test::until_by_pipe(lane, from(up), to(up)); }
  // Small messages, until the pipe is gone.
  void until_by_block(bool up) {
    int64_t before = descriptors();
    for (unsigned i = 0; descriptors() == before; ++i) {
      cr_assert_lt(i, 1000u, "it never leaves the pipe");
      pass(up, 1 + i % 100, i);
    }
  }
};

}  // namespace

extern "C" {
ssize_t __real_splice(int in, off64_t* in_at, int out, off64_t* out_at, size_t size, unsigned flags);

ssize_t __wrap_splice(int in, off64_t* in_at, int out, off64_t* out_at, size_t size, unsigned flags) {
  ++g_splices;
  return __real_splice(in, in_at, out, out_at, size, flags);
}
}

Test(CopyModes, Little_goes_through_a_block_and_takes_no_descriptors) {
  on_each_runtime([](Lane& lane) {
    Line line(lane);
    int64_t before = descriptors();
    g_splices = 0;
    for (unsigned i = 0; i < 50; ++i) {
      line.pass(true, 64 + i, i);
      line.pass(false, 1 + 100 * i, i);
    }
    cr_assert_eq(g_splices.load(), 0);
    cr_assert_eq(descriptors(), before);
  });
}

Test(CopyModes, Each_way_changes_by_itself_and_back_and_no_byte_is_lost) {
  on_each_runtime([](Lane& lane) {
    Line line(lane);
    const int64_t before = descriptors();
    for (int round = 0; round < 3; ++round) {
      for (bool up : {true, false}) {
        line.until_by_pipe(up);
        cr_assert_eq(descriptors(), before + 2, "the other way stays as it is");
        line.until_by_block(up);
        cr_assert_eq(descriptors(), before);
      }
      line.until_by_pipe(true);
      line.until_by_pipe(false);
      cr_assert_eq(descriptors(), before + 4);
      line.until_by_block(false);
      line.until_by_block(true);
      cr_assert_eq(descriptors(), before);
    }
  });
}

Test(CopyModes, Bulk_that_pauses_stays_in_the_pipe) {
  on_each_runtime([](Lane& lane) {
    Line line(lane);
    line.until_by_pipe(true);
    const int64_t open = descriptors();
    for (unsigned i = 0; i < 30; ++i) {
      line.pass(true, 10, i);  // the last piece of a burst
      line.until_by_pipe(false);
      line.until_by_block(false);
      line.pass(true, 100000, i);
      cr_assert_eq(descriptors(), open, "round %u", i);
    }
  });
}

// Pieces of all sizes, written by a task of its own, so that they meet in the copy as they may.
Test(CopyModes, Pieces_of_all_sizes_both_ways_at_once_arrive_as_they_were) {
  on_each_runtime([](Lane& lane) {
    Line line(lane);
    const std::string texts[2] = {pattern(3 << 20, 1), pattern(2 << 20, 7)};
    noria_task* writers[2];
    for (int way = 0; way < 2; ++way) {
      noria_tcp* tcp = line.from(way == 0);
      writers[way] = spawn(
          lane.rt,
          [tcp, &text = texts[way], done = size_t{0}, step = size_t{1}](const noria_cx* cx) mutable -> int32_t {
            while (done < text.size()) {
              size_t count = 0;
              size_t size = std::min(text.size() - done, step % 7 < 3 ? step * 31 % 300 + 1 : step * 7919 % 90000 + 1);
              int32_t status = noria_tcp_poll_write(tcp, cx, text.data() + done, size, &count);
              if (status != NORIA_READY) return status;
              done += count;
              if (++step % 5 == 0) return noria_yield(cx);
            }
            return noria_tcp_shutdown(tcp, NORIA_SHUTDOWN_WRITE);
          });
    }
    std::string down;
    noria_task* reader = spawn(lane.rt, [&](const noria_cx* cx) -> int32_t {
      char room[10000];
      for (size_t count = 1; count != 0;) {
        int32_t status = noria_tcp_poll_read(line.client.a, cx, room, sizeof room, &count);
        if (status != NORIA_READY) return status;
        down.append(room, count);
      }
      return NORIA_READY;
    });
    cr_assert(read_exactly(lane, line.server.b, texts[0].size() + 1) == texts[0]);
    for (noria_task* task : {writers[0], writers[1], reader}) cr_assert_eq(lane.join(task).kind, NORIA_JOIN_DONE);
    cr_assert(down == texts[1]);
    noria_copy_result result{};
    assert_ok(lane.await(std::exchange(line.copy, nullptr), &result, sizeof result), "result");
    cr_assert_eq(result.a_to_b, texts[0].size());
    cr_assert_eq(result.b_to_a, texts[1].size());
  });
}

// Nobody reads at the far end, so that the copy holds bytes when it is cancelled: in a block, and in a pipe.
Test(CopyModes, P8_cancelled_in_each_mode_it_gives_back_what_it_holds) {
  on_each_runtime([](Lane& lane) {
    for (bool by_pipe : {false, true}) {
      Line line(lane);
      if (by_pipe) line.until_by_pipe(true);
      g_splices = 0;
      const std::string sent = line.fill_up(by_pipe);
      if (lane.current_thread()) cr_assert_eq(g_splices.load() != 0, by_pipe);
      noria_copy_result result{};
      assert_ok(noria_future_cancel(line.copy), "cancel");
      cr_assert_eq(lane.await(std::exchange(line.copy, nullptr), &result, sizeof result), -ECANCELED);
      size_t arrived = result.a_to_b - line.before_fill;
      cr_assert_lt(arrived, sent.size());
      std::string all = read_exactly(lane, line.server.b, arrived);
      char byte;
      size_t count = 0;
      cr_assert_eq(noria_tcp_try_read(line.server.b, &byte, 1, &count), -EAGAIN, "more than was counted");
      all += read_exactly(lane, line.client.b, sent.size() - arrived);
      cr_assert(all == sent);
    }
  });
}

Test(CopyModes, Ways_that_wait_with_little_have_no_large_block_each) {
  const noria_allocator counting = {sizeof(noria_allocator), 0, give, take_back, nullptr};
  assert_ok(noria_set_allocator(&counting), "set_allocator");
  on_each_runtime([](Lane& lane) {
    Line lines[] = {Line(lane), Line(lane), Line(lane)};
    for (Line& line : lines) (void)line.fill_up(false);
    // The others' threads may be in the middle of a step.
    lane.until([&] { return g_blocks.load() <= static_cast<int>(std::max(lane.workers, 1u)); }, "blocks go back");
  });
}

Test(CopyModes, P10_out_of_descriptors_bulk_goes_on_through_a_block_and_takes_the_pipe_later) {
  on_each_runtime([](Lane& lane) {
    Line line(lane);
    const int64_t before = descriptors();
    {
      DescriptorLimit limit(1);
      for (unsigned i = 0; i < 20; ++i) line.pass(true, 120000, i);
      cr_assert_eq(descriptors(), before);
    }
    line.until_by_pipe(true);
    line.pass(true, 120000, 99);
  });
}
