/* main.c: uring-echo [--buffer B] [--check 1]: the echo server on io_uring without a runtime: one thread, one ring.
 *
 * The limit of what io_uring gives here: accept and receive are armed once (multishot), received bytes lie in a buffer
 * that the kernel takes from a ring of them, and are sent back from there. A connection has one send under way, so that
 * pieces keep their order; what comes meanwhile is queued behind it. `--check 1` only tells whether this kernel lets
 * it run. Needs Linux 6.0. */
#include <errno.h>
#include <liburing.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/bench.h"

enum { kBuffers = 1024, kEntries = 4096, kGroup = 1, kNone = -1 };

/* What an operation's user data says in its low bits; the rest is the connection. */
enum { kAccept, kReceive, kSend, kEnd, kTagMask = 7 };

typedef struct connection {
  int fd;
  int first, last; /* buffers to be sent, the first is under way; kNone */
  size_t sent;     /* of the first */
  bool armed;      /* the receive is */
  bool ended;      /* nothing more will come */
  struct connection* next_starved;
} __attribute__((aligned(8))) connection;

static struct {
  struct io_uring ring;
  struct io_uring_buf_ring* buffers;
  char* memory;
  size_t buffer_bytes;
  size_t lengths[kBuffers];
  int next[kBuffers];  /* behind it in its connection's queue */
  connection* starved; /* their receive ended for want of a buffer */
  uint64_t bytes, connections;
  int listener, signals;
  bool ended;
} server;

static struct io_uring_sqe* operation(void) {
  struct io_uring_sqe* sqe = io_uring_get_sqe(&server.ring);
  if (sqe == NULL) {
    BENCH_CHECK(io_uring_submit(&server.ring) >= 0);
    sqe = io_uring_get_sqe(&server.ring);
  }
  BENCH_CHECK(sqe != NULL);
  return sqe;
}

/* Behind the preparation, which clears it in some versions of the library. */
static void mark(struct io_uring_sqe* sqe, const void* who, uint64_t tag) {
  io_uring_sqe_set_data64(sqe, (uint64_t)(uintptr_t)who | tag);
}

static void arm_accept(void) {
  struct io_uring_sqe* sqe = operation();
  io_uring_prep_multishot_accept(sqe, server.listener, NULL, NULL, SOCK_CLOEXEC);
  mark(sqe, NULL, kAccept);
}

static void arm_receive(connection* c) {
  struct io_uring_sqe* sqe = operation();
  io_uring_prep_recv_multishot(sqe, c->fd, NULL, 0, 0);
  sqe->flags |= IOSQE_BUFFER_SELECT;
  sqe->buf_group = kGroup;
  mark(sqe, c, kReceive);
  c->armed = true;
}

static void send_first(connection* c) {
  struct io_uring_sqe* sqe = operation();
  const char* from = server.memory + (size_t)c->first * server.buffer_bytes + c->sent;
  io_uring_prep_send(sqe, c->fd, from, server.lengths[c->first] - c->sent, MSG_NOSIGNAL | MSG_WAITALL);
  mark(sqe, c, kSend);
}

static void give_buffer(int id) {
  void* where = server.memory + (size_t)id * server.buffer_bytes;
  io_uring_buf_ring_add(server.buffers, where, (unsigned)server.buffer_bytes, (unsigned short)id,
                        io_uring_buf_ring_mask(kBuffers), 0);
  io_uring_buf_ring_advance(server.buffers, 1);
  if (server.starved == NULL) return;
  connection* c = server.starved;
  server.starved = c->next_starved;
  arm_receive(c);
}

static void free_if_done(connection* c) {
  if (!c->ended || c->armed || c->first != kNone) return;
  close(c->fd);
  free(c);
}

static void on_accept(const struct io_uring_cqe* cqe) {
  int on = 1;
  if (!(cqe->flags & IORING_CQE_F_MORE)) arm_accept();
  if (cqe->res < 0) return;
  connection* c = calloc(1, sizeof *c);
  BENCH_CHECK(c != NULL);
  setsockopt(cqe->res, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  c->fd = cqe->res;
  c->first = c->last = kNone;
  server.connections++;
  arm_receive(c);
}

static void queue_buffer(connection* c, int id, size_t length) {
  server.lengths[id] = length;
  server.next[id] = kNone;
  server.bytes += length;
  if (c->first == kNone) {
    c->first = c->last = id;
    c->sent = 0;
    send_first(c);
  } else {
    server.next[c->last] = id;
    c->last = id;
  }
}

static void on_receive(connection* c, const struct io_uring_cqe* cqe) {
  c->armed = (cqe->flags & IORING_CQE_F_MORE) != 0;
  if (cqe->res > 0) {
    queue_buffer(c, (int)(cqe->flags >> IORING_CQE_BUFFER_SHIFT), (size_t)cqe->res);
    if (!c->armed) arm_receive(c);
  } else if (cqe->res == -ENOBUFS) {
    c->next_starved = server.starved;
    server.starved = c;
  } else {
    c->ended = true;
    free_if_done(c);
  }
}

static void on_send(connection* c, int result) {
  int id = c->first;
  if (result > 0) c->sent += (size_t)result;
  if (result > 0 && c->sent < server.lengths[id]) {
    send_first(c);
    return;
  }
  if (result <= 0) shutdown(c->fd, SHUT_RDWR); /* broken: the receive ends */
  c->first = server.next[id];
  c->sent = 0;
  if (c->first != kNone) send_first(c);
  give_buffer(id);
  free_if_done(c);
}

static void handle(const struct io_uring_cqe* cqe) {
  uint64_t data = io_uring_cqe_get_data64(cqe);
  connection* c = (connection*)(uintptr_t)(data & ~(uint64_t)kTagMask);
  switch (data & kTagMask) {
    case kAccept:
      on_accept(cqe);
      break;
    case kReceive:
      on_receive(c, cqe);
      break;
    case kSend:
      on_send(c, cqe->res);
      break;
    default:
      server.ended = true;
  }
}

/* 0, or what the kernel said: io_uring may be refused as a whole, or lack the ring of buffers. */
static int open_ring(void) {
  const unsigned wishes[] = {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, IORING_SETUP_COOP_TASKRUN, 0};
  int result = -ENOSYS;
  for (size_t i = 0; i < sizeof wishes / sizeof *wishes && result < 0; i++) {
    struct io_uring_params parameters = {.flags = wishes[i] | IORING_SETUP_CQSIZE, .cq_entries = 4 * kEntries};
    result = io_uring_queue_init_params(kEntries, &server.ring, &parameters);
  }
  if (result < 0) return result;
  io_uring_register_ring_fd(&server.ring); /* saves a look-up a system call; not all kernels do */
  size_t size = kBuffers * sizeof(struct io_uring_buf);
  BENCH_CHECK(posix_memalign((void**)&server.buffers, 4096, size) == 0);
  memset(server.buffers, 0, size);
  struct io_uring_buf_reg registration = {
      .ring_addr = (uint64_t)(uintptr_t)server.buffers, .ring_entries = kBuffers, .bgid = kGroup};
  result = io_uring_register_buf_ring(&server.ring, &registration, 0);
  if (result < 0) return result;
  io_uring_buf_ring_init(server.buffers);
  server.memory = malloc(kBuffers * server.buffer_bytes);
  BENCH_CHECK(server.memory != NULL);
  for (int i = 0; i < kBuffers; i++) give_buffer(i);
  return 0;
}

static void listen_anywhere(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  server.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  BENCH_CHECK(server.listener >= 0 && bind(server.listener, (struct sockaddr*)&address, size) == 0);
  BENCH_CHECK(listen(server.listener, 1024) == 0);
  BENCH_CHECK(getsockname(server.listener, (struct sockaddr*)&address, &size) == 0);
  printf("port %u\n", ntohs(address.sin_port));
  fflush(stdout);
}

static void watch_sigterm(void) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, NULL);
  server.signals = signalfd(-1, &signals, SFD_CLOEXEC);
  BENCH_CHECK(server.signals >= 0);
  struct io_uring_sqe* sqe = operation();
  io_uring_prep_poll_add(sqe, server.signals, POLLIN);
  mark(sqe, NULL, kEnd);
}

int main(int argc, char** argv) {
  server.buffer_bytes = (size_t)bench_argument(argc, argv, "--buffer", 32 * 1024);
  bench_raise_files();
  int result = open_ring();
  if (result < 0) {
    fprintf(stderr, "this kernel refuses io_uring: %s\n", strerror(-result));
    return 1;
  }
  if (bench_argument(argc, argv, "--check", 0) != 0) return 0;
  listen_anywhere();
  watch_sigterm();
  arm_accept();
  while (!server.ended) {
    struct io_uring_cqe* cqe;
    unsigned head, count = 0;
    result = io_uring_submit_and_wait(&server.ring, 1);
    BENCH_CHECK(result >= 0 || result == -EINTR);
    io_uring_for_each_cqe(&server.ring, head, cqe) {
      handle(cqe);
      count++;
    }
    io_uring_cq_advance(&server.ring, count);
  }
  bench_json_open("echo", "io_uring", 1);
  bench_json_number("connections", (double)server.connections);
  bench_json_number("bytes", (double)server.bytes);
  bench_json_number("cpu_ns", (double)bench_cpu_ns());
  bench_json_close();
  return 0;
}
