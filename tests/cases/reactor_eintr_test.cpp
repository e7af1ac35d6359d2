// Row eintr: every call that can be interrupted is, every other time, by taking the C library's place; and a real stop.
#include <dlfcn.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>

#include "support/tcp.hpp"

using namespace noria::test;

namespace {

std::atomic<bool> g_injects{false};
std::atomic<unsigned> g_calls{0}, g_interrupted{0};

bool interrupted() {
  if (!g_injects.load() || g_calls.fetch_add(1) % 2 == 0) return false;
  g_interrupted.fetch_add(1);
  errno = EINTR;
  return true;
}

template <typename F>
F next(F, const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t recv(int fd, void* data, size_t size, int flags) {
  static auto real = next(&recv, "recv");
  return interrupted() ? -1 : real(fd, data, size, flags);
}
ssize_t send(int fd, const void* data, size_t size, int flags) {
  static auto real = next(&send, "send");
  return interrupted() ? -1 : real(fd, data, size, flags);
}
ssize_t splice(int in, off64_t* in_at, int out, off64_t* out_at, size_t size, unsigned flags) {
  static auto real = next(&splice, "splice");
  return interrupted() ? -1 : real(in, in_at, out, out_at, size, flags);
}
int accept4(int fd, sockaddr* address, socklen_t* size, int flags) {
  static auto real = next(&accept4, "accept4");
  return interrupted() ? -1 : real(fd, address, size, flags);
}
int epoll_wait(int fd, epoll_event* events, int count, int timeout) {
  static auto real = next(&epoll_wait, "epoll_wait");
  return interrupted() ? -1 : real(fd, events, count, timeout);
}
long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long a[6];
  for (long& one : a) one = va_arg(list, long);
  va_end(list);
  static auto real = next(&syscall, "syscall");
  if (number == SYS_epoll_pwait2 && interrupted()) return -1;
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

}  // extern "C"

namespace {

void exercise(Lane& lane) {
  for (int round = 0; round < 5; ++round) {
    Link client(lane), server(lane);
    noria_future *copy = nullptr, *read = nullptr, *write = nullptr, *sleep = nullptr;
    noria_io_result got{}, sent{};
    std::string text = pattern(1 << 20, static_cast<unsigned>(round));
    assert_ok(noria_copy_bidirectional(client.b, server.a, nullptr, &copy), "copy");
    assert_ok(noria_tcp_write(client.a, buffer(lane, text), &write), "write");
    cr_assert(read_exactly(lane, server.b, text.size()) == text);
    assert_ok(lane.await(write, &sent, sizeof sent), "write");
    assert_ok(noria_tcp_read(client.a, buffer(lane, 100), &read), "read");
    write_all(lane, server.b, "back");
    assert_ok(lane.await(read, &got, sizeof got), "read");
    cr_assert_gt(got.count, 0);
    assert_ok(noria_sleep(lane.rt, kSecond / 500, &sleep), "sleep");
    assert_ok(lane.await(sleep), "sleep");
    assert_ok(noria_buf_release(sent.buf), "release");
    assert_ok(noria_buf_release(got.buf), "release");
    assert_ok(noria_future_drop(copy), "drop");
  }
}

}  // namespace

Test(Cases, Eintr_every_interrupted_call_is_made_again, .timeout = 60) {
  on_each_runtime([](Lane& lane) {
    g_injects.store(true);
    exercise(lane);
    g_injects.store(false);
  });
  cr_assert_gt(g_interrupted.load(), 100);
}

Test(Cases, Eintr_stop_and_continue_disturb_nothing, .timeout = 60) {
  pid_t self = getpid();
  pid_t stopper = fork();
  if (stopper == 0) {
    for (int i = 0; i < 50; ++i) {
      kill(self, SIGSTOP);
      usleep(500);
      kill(self, SIGCONT);
      usleep(1000);
    }
    _exit(0);
  }
  on_each_runtime([](Lane& lane) { exercise(lane); });
  waitpid(stopper, nullptr, 0);
}
