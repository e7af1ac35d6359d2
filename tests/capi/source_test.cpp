// noria_source_*: what a caller's descriptor tells; one waker a direction, any number of futures (A8).
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "support/runtimes.hpp"

using namespace noria::test;

namespace {

struct Pipe {
  int fd[2];
  Pipe() { cr_assert_eq(pipe2(fd, O_NONBLOCK | O_CLOEXEC), 0); }
  ~Pipe() {
    close(fd[0]);
    if (fd[1] >= 0) close(fd[1]);
  }
};

noria_source* watch(Lane& lane, int fd) {
  noria_source* source = nullptr;
  assert_ok(noria_source_new(lane.rt, fd, &source), "source_new");
  return source;
}

}  // namespace

Test(Source, Readiness_comes_is_cleared_and_comes_again) {
  on_each_runtime([](Lane& lane) {
    Pipe pipe;
    noria_source* source = watch(lane, pipe.fd[0]);
    noria_readiness seen{};
    char byte;
    for (int i = 0; i < 5; ++i) {
      bool pending = false;
      assert_ok(lane.run([&](const noria_cx* cx) -> int32_t {
        int32_t status = noria_source_poll_ready(source, NORIA_READABLE, cx, &seen);
        if (status == NORIA_PENDING && !pending) {
          pending = true;
          cr_assert_eq(write(pipe.fd[1], "x", 1), 1);
        }
        return status;
      }),
                "poll_ready");
      cr_assert(pending);
      cr_assert(seen.events & NORIA_READABLE);
      cr_assert_eq(read(pipe.fd[0], &byte, 1), 1);
      cr_assert_eq(read(pipe.fd[0], &byte, 1), -1);
      assert_ok(noria_source_clear(source, &seen, NORIA_READABLE), "clear");
    }
    close(std::exchange(pipe.fd[1], -1));
    assert_ok(lane.run([&](const noria_cx* cx) { return noria_source_poll_ready(source, NORIA_READABLE, cx, &seen); }),
              "closed");
    cr_assert(seen.events & NORIA_READ_CLOSED);
    assert_ok(noria_source_drop(source), "drop");
  });
}

Test(Source, A8_both_directions_and_several_futures) {
  on_each_runtime([](Lane& lane) {
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    noria_source* source = watch(lane, fd);
    noria_future *readers[3], *writers[2], *either;
    noria_readiness seen{};
    for (auto& future : readers) assert_ok(noria_source_ready(source, NORIA_READABLE, &future), "ready");
    for (auto& future : writers) assert_ok(noria_source_ready(source, NORIA_WRITABLE, &future), "ready");
    assert_ok(noria_source_ready(source, NORIA_READABLE | NORIA_WRITABLE, &either), "ready");
    for (noria_future* future : {writers[0], writers[1], either}) {
      assert_ok(lane.await(future, &seen, sizeof seen), "writable");
      cr_assert_eq(seen.events, NORIA_WRITABLE);
    }
    assert_ok(noria_future_cancel(readers[1]), "cancel");
    cr_assert_eq(lane.await(readers[1]), -ECANCELED);
    uint64_t one = 1;
    cr_assert_eq(write(fd, &one, sizeof one), 8);
    assert_ok(noria_future_drop(readers[2]), "drop");
    assert_ok(lane.await(readers[0], &seen, sizeof seen), "readable");
    cr_assert(seen.events & NORIA_READABLE);
    noria_future* at_once = nullptr;
    assert_ok(noria_source_ready(source, NORIA_READABLE, &at_once), "ready");
    assert_ok(noria_future_result(at_once, &seen, sizeof seen), "what is known is ready at once");
    assert_ok(noria_future_drop(at_once), "drop");
    assert_ok(noria_source_drop(source), "drop");
    close(fd);
  });
}

Test(Source, Closing_tells_who_waits) {
  on_each_runtime([](Lane& lane) {
    Pipe pipe;
    noria_source* source = watch(lane, pipe.fd[0]);
    noria_future *waiting = nullptr, *late = nullptr;
    noria_readiness seen{};
    assert_ok(noria_source_ready(source, NORIA_READABLE, &waiting), "ready");
    bool closed = false;
    cr_assert_eq(lane.run([&](const noria_cx* cx) -> int32_t {
      int32_t status = noria_source_poll_ready(source, NORIA_PRIORITY, cx, &seen);
      if (status == NORIA_PENDING && !std::exchange(closed, true)) assert_ok(noria_source_close(source), "close");
      return status;
    }),
                 -EBADF);
    cr_assert_eq(lane.await(waiting), -EBADF);
    cr_assert_eq(noria_source_ready(source, NORIA_READABLE, &late), -EBADF);
    assert_ok(noria_source_close(source), "twice is once");
    assert_ok(noria_source_drop(source), "drop");
  });
}

Test(Source, What_cannot_be_watched_and_bad_arguments_are_told) {
  on_each_runtime([](Lane& lane) {
    Pipe pipe;
    noria_source *source = watch(lane, pipe.fd[0]), *other = nullptr;
    noria_future* future = nullptr;
    noria_readiness seen{};
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    cr_assert_eq(noria_source_new(lane.rt, file, &other), -EPERM);
    close(file);
    cr_assert_eq(noria_source_new(lane.rt, file, &other), -EBADF);
    cr_assert_eq(noria_source_new(lane.rt, -1, &other), -EBADF);
    cr_assert_eq(noria_source_new(lane.rt, pipe.fd[0], &other), -EEXIST);
    cr_assert_eq(noria_source_new(lane.rt, pipe.fd[1], nullptr), -EINVAL);
    cr_assert_eq(noria_source_new(nullptr, pipe.fd[1], &other), -NORIA_ENOCONTEXT);
    cr_assert_null(other);
    for (uint32_t interest : {0u, 4u, 16u, 64u, 3u | 8u}) {
      cr_assert_eq(noria_source_ready(source, interest, &future), -EINVAL);
    }
    cr_assert_eq(noria_source_ready(source, NORIA_READABLE, nullptr), -EINVAL);
    cr_assert_eq(noria_source_ready(nullptr, NORIA_READABLE, &future), -EINVAL);
    cr_assert_eq(noria_source_poll_ready(source, NORIA_READABLE, nullptr, &seen), -EINVAL);
    cr_assert_eq(noria_source_clear(source, nullptr, 1), -EINVAL);
    cr_assert_eq(noria_source_clear(nullptr, &seen, 1), -EINVAL);
    cr_assert_eq(noria_source_close(nullptr), -EINVAL);
    cr_assert_eq(noria_source_drop(nullptr), -EINVAL);
    assert_ok(noria_source_drop(source), "drop");
  });
}

Test(Source, P9_after_shutdown_calls_are_refused_and_drop_works) {
  on_runtime(Lane{"current-thread", 0}, [](Lane& lane) {
    Pipe pipe;
    noria_source *source = watch(lane, pipe.fd[0]), *other = nullptr;
    noria_future *waiting = nullptr, *late = nullptr;
    noria_readiness seen{};
    assert_ok(noria_source_ready(source, NORIA_READABLE, &waiting), "ready");
    assert_ok(noria_runtime_shutdown(lane.rt, kSecond, nullptr), "shutdown");
    cr_assert_eq(noria_future_result(waiting, nullptr, 0), -ECANCELED);
    assert_ok(noria_future_drop(waiting), "drop");
    cr_assert_eq(noria_source_ready(source, NORIA_READABLE, &late), -NORIA_ESHUTDOWN);
    cr_assert_eq(noria_source_new(lane.rt, pipe.fd[1], &other), -NORIA_ESHUTDOWN);
    assert_ok(noria_source_clear(source, &seen, 1), "clear");
    assert_ok(noria_source_drop(source), "drop");
  });
}
