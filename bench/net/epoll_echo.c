/* epoll_echo.c: epoll-echo [--buffer B]: the same echo server without a runtime: one thread, one epoll,
 * edge-triggered.
 *
 * The limit that a runtime is held against: what an event costs here is what the kernel asks for.
 * As the others do it takes a read that fills less than the buffer for the end of what there is,
 * which saves the read that gives EAGAIN. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/bench.h"

enum { kEvents = 256 };

typedef struct connection {
  int fd;
  size_t length; /* what the buffer holds */
  size_t sent;   /* how much of it is on its way back */
  char buffer[];
} connection;

static volatile sig_atomic_t ended;
static uint64_t total_bytes, total_connections;
static size_t buffer_bytes;
static int epoll_fd;

static void on_sigterm(int signal_number) {
  (void)signal_number;
  ended = 1;
}

static void watch(int fd, void* who, uint32_t events) {
  struct epoll_event event = {.events = events, .data.ptr = who};
  BENCH_CHECK(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0);
}

/* 1: all that was held is sent. 0: the socket is full. -1: the connection is broken. */
static int flush(connection* c) {
  while (c->sent < c->length) {
    ssize_t count = send(c->fd, c->buffer + c->sent, c->length - c->sent, MSG_NOSIGNAL);
    if (count < 0) return errno == EAGAIN ? 0 : -1;
    c->sent += (size_t)count;
  }
  return 1;
}

static void serve(connection* c, uint32_t events) {
  int alive = flush(c); /* only what was left over: then EPOLLOUT brought us here */
  while (alive == 1) {
    ssize_t count = recv(c->fd, c->buffer, buffer_bytes, 0);
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) break;
    total_bytes += (uint64_t)count;
    c->length = (size_t)count;
    c->sent = 0;
    alive = flush(c);
    if (alive == 1 && (size_t)count < buffer_bytes && !(events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))) return;
  }
  if (alive == 0) return;
  close(c->fd);
  free(c);
}

static void accept_all(int listener) {
  int fd;
  while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
    int on = 1;
    connection* c = calloc(1, sizeof *c + buffer_bytes);
    BENCH_CHECK(c != NULL);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    c->fd = fd;
    total_connections++;
    watch(fd, c, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
  }
}

static int listen_anywhere(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  BENCH_CHECK(listener >= 0 && bind(listener, (struct sockaddr*)&address, size) == 0);
  BENCH_CHECK(listen(listener, 1024) == 0);
  BENCH_CHECK(getsockname(listener, (struct sockaddr*)&address, &size) == 0);
  printf("port %u\n", ntohs(address.sin_port));
  fflush(stdout);
  return listener;
}

int main(int argc, char** argv) {
  struct sigaction action = {.sa_handler = on_sigterm};
  struct epoll_event events[kEvents];
  sigset_t blocked, during_wait;
  buffer_bytes = (size_t)bench_argument(argc, argv, "--buffer", 32 * 1024);
  bench_raise_files();
  sigaction(SIGTERM, &action, NULL);
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigprocmask(SIG_BLOCK, &blocked, &during_wait); /* it comes inside the wait only */
  epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  int listener = listen_anywhere();
  watch(listener, NULL, EPOLLIN);
  while (!ended) {
    int count = epoll_pwait(epoll_fd, events, kEvents, -1, &during_wait);
    for (int i = 0; i < count; i++) {
      if (events[i].data.ptr == NULL) {
        accept_all(listener);
      } else {
        serve(events[i].data.ptr, events[i].events);
      }
    }
  }
  bench_json_open("echo", "epoll", 1);
  bench_json_number("connections", (double)total_connections);
  bench_json_number("bytes", (double)total_bytes);
  bench_json_number("cpu_ns", (double)bench_cpu_ns());
  bench_json_close();
  return 0;
}
