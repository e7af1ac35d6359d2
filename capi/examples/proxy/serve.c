/* serve.c: the proxy itself. */
#include "serve.h"

#include <errno.h>
#include <noria/async.h>
#include <stdio.h>
#include <string.h>

#include "console.h"

enum { ADDRESS_TEXT = 64 };

/* ---- One connection ---- */

typedef struct Connection {
  noria_frame frame;
  Proxy *proxy;
  noria_tcp *client;
  noria_tcp *upstream;
  noria_future *op; /* the connect, then the copy */
  noria_waiter waiter;
  uint64_t id;
  uint64_t began_ns;
  size_t tries;
  size_t at; /* the upstream that is tried or used */
  int32_t error;
  noria_copy_result moved; /* as the copy tells */
  noria_copy_result told;  /* of that: what the stats have */
} Connection;

static void fail(Connection *c, Phase phase, int32_t error) {
  c->error = error;
  stats_failed(&c->proxy->stats, phase, error);
  if (c->proxy->options->quiet) return;
  noria_address address;
  char peer[ADDRESS_TEXT] = "?";
  if (noria_tcp_peer_address(c->client, &address) == NORIA_OK) {
    noria_address_format(&address, peer, sizeof peer);
  }
  char reason[REASON_TEXT];
  snprintf(reason, sizeof reason, "%s: %s", phase_name(phase), noria_error_name(error));
  console_log(reason, "#%llu %s -> %s: %s (%s)", (unsigned long long)c->id, peer, c->proxy->options->upstreams[c->at],
              reason, noria_error_message(error));
}

/* Adds to the stats what was moved since they were told last. */
static void tell_moved(Connection *c) {
  counter_add(&c->proxy->stats.to_upstream_bytes, c->moved.a_to_b - c->told.a_to_b);
  counter_add(&c->proxy->stats.to_client_bytes, c->moved.b_to_a - c->told.b_to_a);
  c->told = c->moved;
}

static int32_t start_connect(Connection *c) {
  Proxy *p = c->proxy;
  noria_tcp_connect_options options = {
      .size = sizeof options,
      .timeout_ns = p->options->connect_timeout_ns,
  };
  noria_now(p->rt, &c->began_ns);
  return noria_tcp_connect(p->rt, p->options->upstreams[c->at], &options, &c->op);
}

static void connected(Connection *c) {
  uint64_t now_ns = c->began_ns;
  noria_now(c->proxy->rt, &now_ns);
  histogram_add(&c->proxy->stats.connect, now_ns - c->began_ns);
  counter_add(&c->proxy->stats.upstream_connections[c->at], 1);
}

static int32_t start_copy(Connection *c) {
  noria_copy_options options = {
      .size = sizeof options,
      .idle_timeout_ns = c->proxy->options->idle_timeout_ns,
  };
  return noria_copy_bidirectional(c->client, c->upstream, &options, &c->op);
}

/* The copy; meanwhile it answers to `progress`, so that a long one shows in the status line too. */
static int32_t poll_copy(Connection *c, const noria_cx *cx) {
  for (;;) {
    int32_t status = noria_future_poll(c->op, cx);
    if (status != NORIA_PENDING) return status;
    if (counter_get(&c->proxy->live_bytes) == 0) return NORIA_PENDING;
    if (noria_notify_poll_wait(c->proxy->progress, cx, &c->waiter) != NORIA_READY) {
      return NORIA_PENDING;
    }
    noria_copy_progress(c->op, &c->moved);
    tell_moved(c);
  }
}

static int32_t connection_poll(void *state, const noria_cx *cx) {
  Connection *c = state;
  const Options *options = c->proxy->options;
  NORIA_BEGIN(&c->frame, cx);

  /* Each upstream at most once, beginning with the one whose turn it is. */
  for (; c->tries < options->upstream_count; c->tries++) {
    NORIA_AWAIT_CALL(&c->frame, c->op, start_connect(c), &c->upstream, sizeof c->upstream);
    if (c->frame.status == NORIA_OK) break;
    counter_add(&c->proxy->stats.upstream_failures[c->at], 1);
    fail(c, PHASE_CONNECT, c->frame.status);
    c->at = (c->at + 1) % options->upstream_count;
  }
  if (c->upstream == NULL) NORIA_RETURN(&c->frame, c->error);
  c->error = NORIA_OK;
  connected(c);

  c->frame.status = start_copy(c);
  if (c->frame.status == NORIA_OK) {
    NORIA_AWAIT(&c->frame, poll_copy(c, cx));
    /* What was moved is told on failure too. */
    c->frame.status = noria_frame_take_(c->frame.status, &c->op, &c->moved, sizeof c->moved);
  }
  if (c->frame.status != NORIA_OK) {
    fail(c, PHASE_COPY, c->frame.status);
    NORIA_RETURN(&c->frame, c->error);
  }
  NORIA_END(&c->frame);
}

/* The end of every connection: of one that is done, that failed, and that shutdown cuts off. */
static void connection_drop(void *state) {
  Connection *c = state;
  Proxy *p = c->proxy;
  if (c->op != NULL) {
    if (c->upstream != NULL) noria_copy_progress(c->op, &c->moved);
    noria_future_drop(c->op); /* first: the copy borrows the streams */
  }
  tell_moved(c);
  noria_waiter_drop(&c->waiter);
  if (c->upstream != NULL) noria_tcp_drop(c->upstream);
  noria_tcp_drop(c->client);
  if (c->frame.point != -1) {
    counter_add(&p->stats.cut, 1);
  } else if (c->error != NORIA_OK) {
    counter_add(&p->stats.failed, 1);
  }
  counter_add(&p->stats.finished, 1);
  noria_semaphore_release(p->permits, 1); /* last: who drains waits for it */
}

static const noria_task_vtable connection_vtable = {
    .size = sizeof(noria_task_vtable),
    .poll = connection_poll,
    .drop = connection_drop,
    .name = "connection",
};

/* A task with the connection inside its own allocation. On an error the client stays the caller's. */
static int32_t connection_start(Proxy *p, noria_tcp *client) {
  void *room = NULL;
  noria_task *task = NULL;
  int32_t status = noria_task_new(p->rt, &connection_vtable, sizeof(Connection), _Alignof(Connection), &room, &task);
  if (status != NORIA_OK) return status;
  Connection *c = room;
  memset(c, 0, sizeof *c);
  c->proxy = p;
  c->client = client;
  /* ORDER: relaxed: only the number matters, each is given once. */
  c->id = atomic_fetch_add_explicit(&p->last_id.value, 1, memory_order_relaxed) + 1;
  c->at = atomic_fetch_add_explicit(&p->turn.value, 1, memory_order_relaxed) % p->options->upstream_count;
  status = noria_task_start(task);
  if (status != NORIA_OK) {
    noria_task_discard(task);
    return status;
  }
  return noria_task_detach(task);
}

/* ---- Accepting ---- */

typedef struct Acceptor {
  noria_frame frame;
  Proxy *proxy;
  noria_waiter waiter;
  noria_tcp *client;
  noria_future *pause;
  uint32_t permits; /* held and not yet a connection's: 0 or 1 */
} Acceptor;

static int32_t acceptor_poll(void *state, const noria_cx *cx) {
  Acceptor *a = state;
  Proxy *p = a->proxy;
  int32_t status;
  NORIA_BEGIN(&a->frame, cx);
  for (;;) {
    NORIA_TRY(&a->frame, noria_semaphore_poll_acquire(p->permits, 1, cx, &a->waiter));
    a->permits = 1;
    /* Out of descriptors the listener rests by itself; that is no error. */
    NORIA_AWAIT(&a->frame, noria_tcp_poll_accept(p->listener, cx, &a->client));
    if (a->frame.status == -EBADF) NORIA_RETURN(&a->frame, -EBADF);
    status = a->frame.status;
    if (status == NORIA_OK) {
      counter_add(&p->stats.accepted, 1);
      counter_raise(&p->stats.most, stats_open(&p->stats));
      status = connection_start(p, a->client);
      if (status != NORIA_OK) { /* no memory for the task: one connection is lost */
        noria_tcp_drop(a->client);
        counter_add(&p->stats.failed, 1);
        counter_add(&p->stats.finished, 1);
        noria_semaphore_release(p->permits, 1);
      }
      a->client = NULL;
      a->permits = 0;
    }
    if (status != NORIA_OK) {
      stats_failed(&p->stats, PHASE_ACCEPT, status);
      console_log("accept", "accept: %s (%s)", noria_error_name(status), noria_error_message(status));
      if (a->permits > 0) noria_semaphore_release(p->permits, 1);
      a->permits = 0;
      NORIA_TRY_CALL(&a->frame, a->pause, noria_sleep(p->rt, 100000000, &a->pause), NULL, 0);
    }
  }
  NORIA_END(&a->frame);
}

static void acceptor_drop(void *state) {
  Acceptor *a = state;
  noria_waiter_drop(&a->waiter);
  if (a->pause != NULL) noria_future_drop(a->pause);
  if (a->permits > 0) noria_semaphore_release(a->proxy->permits, 1);
}

static const noria_task_vtable acceptor_vtable = {
    .size = sizeof(noria_task_vtable),
    .poll = acceptor_poll,
    .drop = acceptor_drop,
    .name = "acceptor",
};

/* ---- The proxy ---- */

int32_t listen_now(noria_runtime *rt, const char *address, noria_tcp_listener **out) {
  noria_future *listening = NULL;
  int32_t status = noria_tcp_listen(rt, address, NULL, &listening);
  if (status != NORIA_OK) return status;
  status = noria_future_wait(listening, NORIA_FOREVER);
  return noria_frame_take_(status, &listening, out, sizeof *out);
}

int32_t proxy_open(Proxy *proxy, const Options *options, const char *listen, noria_runtime *rt) {
  memset(proxy, 0, sizeof *proxy);
  stats_init(&proxy->stats);
  proxy->options = options;
  proxy->rt = rt;
  int32_t status = noria_semaphore_new(rt, options->max_connections, &proxy->permits);
  if (status == NORIA_OK) status = noria_notify_new(rt, &proxy->progress);
  if (status == NORIA_OK) status = listen_now(rt, listen, &proxy->listener);
  if (status == NORIA_OK) status = noria_tcp_listener_address(proxy->listener, &proxy->address);
  return status;
}

int32_t proxy_start(Proxy *proxy) {
  void *room = NULL;
  int32_t status =
      noria_task_new(proxy->rt, &acceptor_vtable, sizeof(Acceptor), _Alignof(Acceptor), &room, &proxy->acceptor);
  if (status != NORIA_OK) return status;
  Acceptor *a = room;
  memset(a, 0, sizeof *a);
  a->proxy = proxy;
  status = noria_task_start(proxy->acceptor);
  if (status != NORIA_OK) {
    noria_task_discard(proxy->acceptor);
    proxy->acceptor = NULL;
  }
  return status;
}

int32_t proxy_poll_failed(Proxy *proxy, const noria_cx *cx, noria_join_result *why) {
  return noria_task_poll_join(proxy->acceptor, cx, why);
}

int32_t proxy_drain(Proxy *proxy, noria_future **out) {
  noria_task_abort(proxy->acceptor); /* it gives its permit back */
  noria_tcp_listener_close(proxy->listener);
  noria_future *all = NULL;
  int32_t status = noria_semaphore_acquire(proxy->permits, proxy->options->max_connections, &all);
  if (status != NORIA_OK) return status;
  uint64_t timeout_ns = proxy->options->drain_timeout_ns;
  status = noria_timeout(proxy->rt, all, timeout_ns == 0 ? NORIA_FOREVER : timeout_ns, out);
  if (status != NORIA_OK) noria_future_drop(all);
  return status;
}

void proxy_close(Proxy *proxy) {
  if (proxy->acceptor != NULL) noria_task_detach(proxy->acceptor);
  if (proxy->listener != NULL) noria_tcp_listener_drop(proxy->listener);
  if (proxy->progress != NULL) noria_notify_drop(proxy->progress);
  if (proxy->permits != NULL) noria_semaphore_drop(proxy->permits);
}
