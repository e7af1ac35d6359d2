// Reference-counted bytes: whoever holds a reference or a slice keeps them.
#include <criterion/criterion.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "support/runtime_fixture.hpp"

using namespace noria::test;

namespace {

char* data(noria_buf* buf) {
  void* bytes = nullptr;
  assert_ok(noria_buf_data(buf, &bytes), "buf_data");
  return static_cast<char*>(bytes);
}

std::size_t length(noria_buf* buf) {
  std::size_t count = 0;
  assert_ok(noria_buf_length(buf, &count), "buf_length");
  return count;
}

std::size_t capacity(noria_buf* buf) {
  std::size_t count = 0;
  assert_ok(noria_buf_capacity(buf, &count), "buf_capacity");
  return count;
}

struct Lent {
  char bytes[64] = {};
  int releases = 0;
  static void release(void* data, void* arg) {
    auto* self = static_cast<Lent*>(arg);
    cr_assert_eq(data, self->bytes);
    ++self->releases;
  }
};

}  // namespace

Test(Buf, Every_size_has_its_bytes) {
  on_each_runtime([](Lane& lane) {
    for (std::size_t size : {0u, 1u, 63u, 64u, 65u, 900u, 959u, 960u, 961u, 4096u, 65'536u, 1'000'000u}) {
      noria_buf* buf = nullptr;
      NORIA_OK_CALL(noria_buf_new(lane.rt, size, &buf));
      cr_assert_eq(capacity(buf), size);
      cr_assert_eq(length(buf), 0);
      if (size != 0) std::memset(data(buf), 0x5a, size);
      NORIA_OK_CALL(noria_buf_set_length(buf, size));
      cr_assert_eq(length(buf), size);
      NORIA_STATUS(noria_buf_set_length(buf, size + 1), -EINVAL);
      NORIA_OK_CALL(noria_buf_release(buf));
    }
  });
}

Test(Buf, Lent_memory_is_released_once_with_the_last_reference) {
  on_each_runtime([](Lane& lane) {
    Lent lent;
    noria_buf *buf = nullptr, *slice = nullptr;
    NORIA_OK_CALL(noria_buf_wrap(lane.rt, lent.bytes, sizeof lent.bytes, Lent::release, &lent, &buf));
    cr_assert_eq(length(buf), sizeof lent.bytes);
    cr_assert_eq(data(buf), lent.bytes);
    NORIA_OK_CALL(noria_buf_slice(buf, 10, 20, &slice));
    cr_assert_eq(data(slice), lent.bytes + 10);
    NORIA_OK_CALL(noria_buf_retain(buf));
    NORIA_OK_CALL(noria_buf_release(buf));
    NORIA_OK_CALL(noria_buf_release(buf));
    cr_assert_eq(lent.releases, 0, "the slice holds it");
    NORIA_OK_CALL(noria_buf_release(slice));
    cr_assert_eq(lent.releases, 1);
    NORIA_OK_CALL(noria_buf_wrap(lane.rt, lent.bytes, sizeof lent.bytes, nullptr, nullptr, &buf));
    NORIA_OK_CALL(noria_buf_release(buf));
  });
}

Test(Buf, Slices_of_slices_share_the_bytes_without_a_chain) {
  on_each_runtime([](Lane& lane) {
    constexpr std::size_t kDepth = 200'000;  // released from the inside out, without a call in a call
    Lent lent;
    noria_buf* buf = nullptr;
    NORIA_OK_CALL(noria_buf_wrap(lane.rt, lent.bytes, sizeof lent.bytes, Lent::release, &lent, &buf));
    for (std::size_t i = 0; i < kDepth; ++i) {
      noria_buf* slice = nullptr;
      NORIA_OK_CALL(noria_buf_slice(buf, i < 32 ? 1 : 0, i < 32 ? 63 - i : 32, &slice));
      NORIA_OK_CALL(noria_buf_release(buf));
      buf = slice;
    }
    cr_assert_eq(data(buf), lent.bytes + 32);
    cr_assert_eq(capacity(buf), 32);
    cr_assert_eq(lent.releases, 0);
    NORIA_OK_CALL(noria_buf_release(buf));
    cr_assert_eq(lent.releases, 1);
  });
}

Test(Buf, Slice_beyond_the_capacity_is_refused) {
  on_each_runtime([](Lane& lane) {
    noria_buf *buf = nullptr, *slice = nullptr;
    NORIA_OK_CALL(noria_buf_new(lane.rt, 10, &buf));
    NORIA_STATUS(noria_buf_slice(buf, 0, 11, &slice), -EINVAL);
    NORIA_STATUS(noria_buf_slice(buf, 11, 0, &slice), -EINVAL);
    NORIA_STATUS(noria_buf_slice(buf, 5, SIZE_MAX, &slice), -EINVAL);
    NORIA_STATUS(noria_buf_slice(buf, SIZE_MAX, 2, &slice), -EINVAL);
    NORIA_OK_CALL(noria_buf_slice(buf, 10, 0, &slice));
    NORIA_OK_CALL(noria_buf_release(slice));
    NORIA_OK_CALL(noria_buf_release(buf));
  });
}

Test(Buf, References_given_back_on_many_threads_end_it_once) {
  on_each_runtime([](Lane& lane) {
    Lent lent;
    for (int round = 0; round < 50; ++round) {
      noria_buf* buf = nullptr;
      NORIA_OK_CALL(noria_buf_wrap(lane.rt, lent.bytes, sizeof lent.bytes, Lent::release, &lent, &buf));
      std::vector<std::thread> threads;
      for (int i = 0; i < 4; ++i) {
        NORIA_OK_CALL(noria_buf_retain(buf));
        threads.emplace_back([buf] {
          noria_buf* slice = nullptr;
          NORIA_OK_CALL(noria_buf_slice(buf, 1, 2, &slice));
          NORIA_OK_CALL(noria_buf_release(buf));
          NORIA_OK_CALL(noria_buf_release(slice));
        });
      }
      NORIA_OK_CALL(noria_buf_release(buf));
      for (std::thread& thread : threads) thread.join();
      cr_assert_eq(lent.releases, round + 1);
    }
  });
}

Test(Buf, Buffer_outlives_its_runtime) {
  noria_runtime* rt = nullptr;
  noria_buf* buf = nullptr;
  assert_ok(noria_runtime_new(nullptr, &rt), "runtime_new");
  NORIA_OK_CALL(noria_buf_new(rt, 100, &buf));
  assert_ok(noria_runtime_free(rt), "runtime_free");
  std::memset(data(buf), 1, 100);
  noria_buf* slice = nullptr;
  NORIA_STATUS(noria_buf_slice(buf, 0, 1, &slice), -NORIA_ESHUTDOWN);
  NORIA_OK_CALL(noria_buf_release(buf));
  await_nothing_alive("a buffer was the last to go");
}

Test(Buf, Misuse_is_told) {
  on_each_runtime([](Lane& lane) {
    noria_buf* buf = nullptr;
    void* bytes = nullptr;
    std::size_t count = 0;
    NORIA_STATUS(noria_buf_new(lane.rt, 1, nullptr), -EINVAL);
    NORIA_STATUS(noria_buf_new(nullptr, 1, &buf), -NORIA_ENOCONTEXT);
#ifndef NORIA_SANITIZED  // a sanitizer's allocator ends the process instead
    NORIA_STATUS(noria_buf_new(lane.rt, SIZE_MAX - 100, &buf), -ENOMEM);
#endif
    NORIA_STATUS(noria_buf_wrap(lane.rt, nullptr, 1, nullptr, nullptr, &buf), -EINVAL);
    NORIA_STATUS(noria_buf_wrap(lane.rt, &count, 1, nullptr, nullptr, nullptr), -EINVAL);
    NORIA_STATUS(noria_buf_retain(nullptr), -EINVAL);
    NORIA_STATUS(noria_buf_release(nullptr), -EINVAL);
    NORIA_STATUS(noria_buf_slice(nullptr, 0, 0, &buf), -EINVAL);
    NORIA_STATUS(noria_buf_data(nullptr, &bytes), -EINVAL);
    NORIA_STATUS(noria_buf_length(nullptr, &count), -EINVAL);
    NORIA_STATUS(noria_buf_capacity(nullptr, &count), -EINVAL);
    NORIA_STATUS(noria_buf_set_length(nullptr, 0), -EINVAL);
    NORIA_OK_CALL(noria_buf_new(lane.rt, 1, &buf));
    NORIA_STATUS(noria_buf_slice(buf, 0, 1, nullptr), -EINVAL);
    NORIA_STATUS(noria_buf_data(buf, nullptr), -EINVAL);
    NORIA_STATUS(noria_buf_length(buf, nullptr), -EINVAL);
    NORIA_STATUS(noria_buf_capacity(buf, nullptr), -EINVAL);
    NORIA_OK_CALL(noria_buf_release(buf));
  });
}
