// tcp.hpp: listeners and connected streams on the loopback for tests.
#pragma once

#include <criterion/criterion.h>
#include <noria.h>

#include <string>
#include <vector>

#include "support/runtimes.hpp"

namespace noria::test {

inline noria_tcp_listener* listen(Lane& lane, const char* address = "127.0.0.1:0",
                                  const noria_tcp_listen_options* options = nullptr) {
  noria_future* future = nullptr;
  noria_tcp_listener* listener = nullptr;
  assert_ok(noria_tcp_listen(lane.rt, address, options, &future), "listen");
  assert_ok(lane.await(future, &listener, sizeof listener), "listen result");
  return listener;
}

inline std::string address_of(noria_tcp_listener* listener) {
  noria_address address;
  char text[64];
  assert_ok(noria_tcp_listener_address(listener, &address), "listener address");
  assert_ok(noria_address_format(&address, text, sizeof text), "format");
  return text;
}

inline int32_t connect(Lane& lane, const char* address, noria_tcp** out,
                       const noria_tcp_connect_options* options = nullptr) {
  noria_future* future = nullptr;
  assert_ok(noria_tcp_connect(lane.rt, address, options, &future), "connect");
  return lane.await(future, out, sizeof *out);
}

inline noria_tcp* accept(Lane& lane, noria_tcp_listener* listener) {
  noria_tcp* tcp = nullptr;
  assert_ok(lane.run([&](const noria_cx* cx) { return noria_tcp_poll_accept(listener, cx, &tcp); }), "accept");
  return tcp;
}

// Two ends of a connection.
struct Link {
  noria_tcp* a = nullptr;  // connected
  noria_tcp* b = nullptr;  // accepted

  explicit Link(Lane& lane) {
    noria_tcp_listener* listener = listen(lane);
    assert_ok(connect(lane, address_of(listener).c_str(), &a), "connect result");
    b = accept(lane, listener);
    assert_ok(noria_tcp_listener_drop(listener), "listener drop");
  }
  ~Link() {
    if (a != nullptr) (void)noria_tcp_drop(a);
    if (b != nullptr) (void)noria_tcp_drop(b);
  }
  Link(const Link&) = delete;
};

inline int32_t read_some(Lane& lane, noria_tcp* tcp, std::string& out, size_t most = 65536) {
  std::string room(most, '\0');
  size_t count = 0;
  int32_t status =
      lane.run([&](const noria_cx* cx) { return noria_tcp_poll_read(tcp, cx, room.data(), room.size(), &count); });
  out = room.substr(0, count);
  return status;
}

// Until `size` bytes have come, or the end.
inline std::string read_exactly(Lane& lane, noria_tcp* tcp, size_t size) {
  std::string all, part;
  while (all.size() < size) {
    assert_ok(read_some(lane, tcp, part, size - all.size()), "read");
    if (part.empty()) break;
    all += part;
  }
  return all;
}

inline void write_all(Lane& lane, noria_tcp* tcp, const std::string& text) {
  size_t done = 0;
  int32_t status = lane.run([&](const noria_cx* cx) -> int32_t {
    while (done < text.size()) {
      size_t count = 0;
      int32_t step = noria_tcp_poll_write(tcp, cx, text.data() + done, text.size() - done, &count);
      if (step != NORIA_READY) return step;
      done += count;
    }
    return NORIA_READY;
  });
  assert_ok(status, "write");
}

// Bytes that tell their place.
inline std::string pattern(size_t size, unsigned seed = 1) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>((i * 131 + i / 251 + seed) & 0xFF);
  return text;
}

inline noria_buf* buffer(Lane& lane, size_t capacity) {
  noria_buf* buf = nullptr;
  assert_ok(noria_buf_new(lane.rt, capacity, &buf), "buf_new");
  return buf;
}

inline noria_buf* buffer(Lane& lane, const std::string& text) {
  noria_buf* buf = buffer(lane, text.size() + 1);
  void* data = nullptr;
  assert_ok(noria_buf_data(buf, &data), "buf_data");
  memcpy(data, text.data(), text.size());
  assert_ok(noria_buf_set_length(buf, text.size()), "set_length");
  return buf;
}

inline std::string text_of(noria_buf* buf) {
  void* data = nullptr;
  size_t length = 0;
  assert_ok(noria_buf_data(buf, &data), "buf_data");
  assert_ok(noria_buf_length(buf, &length), "buf_length");
  return std::string(static_cast<char*>(data), length);
}

inline int64_t descriptors() {
  noria_counts counts{};
  counts.size = sizeof counts;
  assert_ok(noria_live_counts(&counts), "counts");
  return counts.descriptors;
}

// Moves bytes through a running copy until it has opened a pipe for them.
inline void until_by_pipe(Lane& lane, noria_tcp* into, noria_tcp* out_of) {
  std::string text = pattern(128 << 10);
  int64_t before = descriptors();
  for (int tries = 0; descriptors() == before; ++tries) {
    cr_assert_lt(tries, 1000, "it never goes through a pipe");
    write_all(lane, into, text);
    cr_assert(read_exactly(lane, out_of, text.size()) == text);
  }
}

}  // namespace noria::test
