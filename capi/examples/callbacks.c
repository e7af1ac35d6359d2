/* callbacks.c: Noria for people who come from libuv: callbacks instead of tasks.
 *
 * In libuv there is one thread, so two callbacks never run at once, and one core works. Here callbacks run
 * on all cores, and a strand says which of them must not overlap: those of one connection. So a connection's
 * data need no lock, while connections are served side by side.
 *
 *   uv_read_start(stream, alloc, cb)    noria_tcp_read(tcp, buf, &future), and the future to a callback
 *   uv_write(req, stream, bufs, n, cb)  noria_tcp_write(tcp, buf, &future), likewise
 *   uv_timer_start(timer, cb, ms, 0)    noria_sleep(rt, ns, &future), likewise
 *   uv_close(handle, cb)                noria_tcp_drop(tcp)
 *   uv_run(loop, mode)                  nothing: the workers run; or noria_runtime_turn on your own thread */
#include <arpa/inet.h>
#include <noria/noria.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SESSIONS = 8, MESSAGES = 200 };

static noria_runtime *rt;
static noria_semaphore *ended; /* a permit for each session that has ended */
static atomic_int running, most_running;
static atomic_uint overlaps, messages_served, ticks_seen;

/* No field is atomic and there is no lock: only callbacks of its strand touch it. */
typedef struct Session {
  noria_strand *strand;
  noria_tcp *tcp;
  unsigned messages;
  unsigned ticks;
  int chains; /* of callbacks that go on: the reading one and the ticking one */
  int inside; /* would tell if two callbacks overlapped */
  int closed;
  unsigned checksum;
} Session;

/* Hands a future to a callback that runs on the session's strand when the future is ready. */
static int on(Session *session, noria_future *future, void (*callback)(void *arg, noria_future *future)) {
  noria_delivery delivery = {.size = sizeof delivery,
                             .kind = NORIA_DELIVER_STRAND,
                             .callback = callback,
                             .arg = session,
                             .strand = session->strand,
                             .rt = rt};
  if (noria_future_deliver(future, &delivery) == NORIA_OK) return 1;
  noria_future_drop(future);
  return 0;
}

/* What a callback does for its living. Long enough that it pays to wake another core. */
static void work(Session *session) {
  for (unsigned i = 0; i < 50000; i++) session->checksum = session->checksum * 31 + i;
}

static void enter(Session *session) {
  if (session->inside++ != 0) atomic_fetch_add(&overlaps, 1);
  int now = atomic_fetch_add(&running, 1) + 1, most = atomic_load(&most_running);
  while (now > most && !atomic_compare_exchange_weak(&most_running, &most, now)) {
  }
}

static void leave(Session *session, int chain_goes_on) {
  atomic_fetch_sub(&running, 1);
  session->inside--;
  if (chain_goes_on || --session->chains > 0) return;
  atomic_fetch_add(&messages_served, session->messages);
  atomic_fetch_add(&ticks_seen, session->ticks);
  noria_tcp_drop(session->tcp);
  noria_strand_drop(session->strand);
  free(session);
  noria_semaphore_release(ended, 1);
}

static void on_read(void *arg, noria_future *future);
static void on_written(void *arg, noria_future *future);

/* The buffer goes with the operation and comes back with its result, so nobody can free it too early. */
static int start_read(Session *session, noria_buf *buf) {
  noria_future *reading;
  if (noria_tcp_read(session->tcp, buf, &reading) == NORIA_OK) return on(session, reading, on_read);
  noria_buf_release(buf);
  return 0;
}

static int start_write(Session *session, noria_buf *buf) {
  noria_future *writing;
  if (noria_tcp_write(session->tcp, buf, &writing) == NORIA_OK) return on(session, writing, on_written);
  noria_buf_release(buf);
  return 0;
}

static void on_read(void *arg, noria_future *future) {
  Session *session = arg;
  enter(session);
  noria_io_result read = {0};
  int32_t status = noria_future_result(future, &read, sizeof read);
  int goes_on = 0;
  if (status == NORIA_OK && read.count > 0) {
    session->messages++;
    work(session);
    goes_on = start_write(session, read.buf);
  } else if (read.buf != NULL) { /* the end of stream, or an error */
    noria_buf_release(read.buf);
  }
  if (!goes_on) session->closed = 1;
  leave(session, goes_on);
}

static void on_written(void *arg, noria_future *future) {
  Session *session = arg;
  enter(session);
  noria_io_result written = {0};
  int32_t status = noria_future_result(future, &written, sizeof written);
  int goes_on = 0;
  if (status == NORIA_OK) {
    goes_on = start_read(session, written.buf);
  } else if (written.buf != NULL) {
    noria_buf_release(written.buf);
  }
  if (!goes_on) session->closed = 1;
  leave(session, goes_on);
}

/* A second chain of callbacks of the same session, on the same strand: it and the reading one take turns. */
static void on_tick(void *arg, noria_future *future);

static int start_tick(Session *session) {
  noria_future *tick;
  return noria_sleep(rt, 1000000, &tick) == NORIA_OK && on(session, tick, on_tick);
}

static void on_tick(void *arg, noria_future *future) {
  (void)future; /* borrowed here, dropped by the engine when this returns */
  Session *session = arg;
  enter(session);
  session->ticks++;
  leave(session, !session->closed && start_tick(session));
}

static void on_begin(void *arg, noria_future *future) {
  (void)future;
  Session *session = arg;
  enter(session);
  noria_buf *buf = NULL;
  session->chains += start_tick(session);
  int goes_on = noria_buf_new(rt, 256, &buf) == NORIA_OK && start_read(session, buf);
  if (!goes_on) session->closed = 1;
  leave(session, goes_on);
}

static void begin_session(noria_tcp *tcp) {
  Session *session = calloc(1, sizeof *session);
  noria_future *now;
  if (session == NULL || noria_strand_new(rt, &session->strand) != NORIA_OK) abort();
  session->tcp = tcp;
  session->chains = 1;
  if (noria_sleep(rt, 0, &now) != NORIA_OK || !on(session, now, on_begin)) abort();
}

/* Accepting has no strand: one such callback is in flight at a time anyhow. */
static void on_accept(void *arg, noria_future *future);

static void start_accept(noria_tcp_listener *listener) {
  noria_delivery delivery = {.size = sizeof delivery, .callback = on_accept, .arg = listener, .rt = rt};
  noria_future *accepting;
  if (noria_tcp_accept(listener, &accepting) != NORIA_OK) return;
  if (noria_future_deliver(accepting, &delivery) != NORIA_OK) noria_future_drop(accepting);
}

static void on_accept(void *arg, noria_future *future) {
  noria_tcp *tcp;
  if (noria_future_result(future, &tcp, sizeof tcp) != NORIA_OK) return; /* the listener was closed */
  begin_session(tcp);
  start_accept(arg);
}

/* The client: this thread, with plain sockets. Sends to all sessions, then reads from all. 1 if all came back. */
static int talk(uint16_t port) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fds[SESSIONS];
  int good = 1;
  for (int i = 0; i < SESSIONS; i++) {
    fds[i] = socket(AF_INET, SOCK_STREAM, 0);
    if (fds[i] < 0 || connect(fds[i], (struct sockaddr *)&to, sizeof to) != 0) abort();
  }
  for (int round = 0; round < MESSAGES; round++) {
    char sent[64], back[64];
    int length = snprintf(sent, sizeof sent, "message %d", round);
    size_t size = (size_t)length;
    for (int i = 0; i < SESSIONS; i++) good &= send(fds[i], sent, size, 0) == length;
    for (int i = 0; i < SESSIONS; i++) {
      good &= recv(fds[i], back, size, MSG_WAITALL) == length && memcmp(sent, back, size) == 0;
    }
  }
  for (int i = 0; i < SESSIONS; i++) close(fds[i]);
  return good;
}

int main(void) {
  noria_future *future;
  noria_tcp_listener *listener;
  noria_address address;
  if (noria_runtime_new(NULL, &rt) != NORIA_OK || noria_semaphore_new(rt, 0, &ended) != NORIA_OK ||
      noria_tcp_listen(rt, "127.0.0.1:0", NULL, &future) != NORIA_OK ||
      noria_future_result(future, &listener, sizeof listener) != NORIA_OK ||
      noria_tcp_listener_address(listener, &address) != NORIA_OK) {
    return EXIT_FAILURE;
  }
  noria_future_drop(future);
  start_accept(listener);
  int good = talk(address.port);

  /* All sessions notice that their peer has gone, end both chains, and give a permit. */
  if (noria_semaphore_acquire(ended, SESSIONS, &future) != NORIA_OK) return EXIT_FAILURE;
  noria_future_wait(future, NORIA_FOREVER);
  noria_future_drop(future);

  noria_runtime_shutdown(rt, 1000000000, NULL); /* the accept that is pending is cancelled */
  noria_tcp_listener_drop(listener);
  noria_semaphore_drop(ended);
  noria_runtime_release(rt);
  printf("%u messages and %u ticks of %d sessions, at most %d callbacks at once\n", atomic_load(&messages_served),
         atomic_load(&ticks_seen), SESSIONS, atomic_load(&most_running));
  printf("%u times two of one session at once\n", atomic_load(&overlaps));
  good = good && atomic_load(&messages_served) >= SESSIONS && atomic_load(&overlaps) == 0;
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
