/* demo.c: an echo server, and clients that check every byte. */
#include "demo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "console.h"

enum {
  /* The stream repeats after a prime number of bytes, so that a shift by a page, a pipe or a buffer
   * never lands on the same bytes again. */
  PERIOD = 65521,
  LARGEST = 256 * 1024,
  ROUND_TRIPS = 64, /* of one connection, on average; then the client opens another */
  READ_SIZE = 64 * 1024,
};

#define GRACE_NS UINT64_C(10000000000)

static uint64_t next_random(uint64_t *state) { /* splitmix64 (Steele, Lea, Flood 2014) */
  uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

/* ---- The echo server ---- */

typedef struct Echo {
  noria_frame frame;
  noria_tcp *tcp;
  size_t have;
  size_t sent;
  size_t count;
  uint8_t data[READ_SIZE];
} Echo;

static int32_t echo_poll(void *state, const noria_cx *cx) {
  Echo *e = state;
  NORIA_BEGIN(&e->frame, cx);
  for (;;) {
    NORIA_TRY(&e->frame, noria_tcp_poll_read(e->tcp, cx, e->data, sizeof e->data, &e->have));
    if (e->have == 0) break;
    for (e->sent = 0; e->sent < e->have; e->sent += e->count) {
      NORIA_TRY(&e->frame, noria_tcp_poll_write(e->tcp, cx, e->data + e->sent, e->have - e->sent, &e->count));
    }
  }
  NORIA_END(&e->frame);
}

static void echo_drop(void *state) {
  Echo *e = state;
  noria_tcp_drop(e->tcp);
}

static const noria_task_vtable echo_vtable = {
    .size = sizeof(noria_task_vtable),
    .poll = echo_poll,
    .drop = echo_drop,
    .name = "demo echo",
};

static int32_t echo_start(noria_runtime *rt, noria_tcp *tcp) {
  void *room = NULL;
  noria_task *task = NULL;
  int32_t status = noria_task_new(rt, &echo_vtable, sizeof(Echo), _Alignof(Echo), &room, &task);
  if (status != NORIA_OK) return status;
  Echo *e = room;
  memset(e, 0, offsetof(Echo, data));
  e->tcp = tcp;
  status = noria_task_start(task);
  if (status != NORIA_OK) {
    noria_task_discard(task);
    return status;
  }
  return noria_task_detach(task);
}

/* The whole state of this task is the demo itself: each poll accepts what is there. */
static int32_t echo_accept_poll(void *state, const noria_cx *cx) {
  Demo *demo = state;
  for (;;) {
    noria_tcp *tcp = NULL;
    int32_t status = noria_tcp_poll_accept(demo->echo, cx, &tcp);
    if (status != NORIA_READY) return status;
    if (echo_start(NULL, tcp) != NORIA_OK) noria_tcp_drop(tcp);
  }
}

static const noria_task_vtable echo_accept_vtable = {
    .size = sizeof(noria_task_vtable),
    .poll = echo_accept_poll,
    .name = "demo echo acceptor",
};

int32_t demo_open(Demo *demo, noria_runtime *rt) {
  int32_t status = listen_now(rt, "127.0.0.1:0", &demo->echo);
  noria_address address;
  if (status == NORIA_OK) status = noria_tcp_listener_address(demo->echo, &address);
  if (status == NORIA_OK) {
    status = noria_address_format(&address, demo->echo_address, sizeof demo->echo_address);
  }
  if (status != NORIA_OK) return status;
  return noria_spawn(rt, &echo_accept_vtable, demo, &demo->echo_task);
}

/* ---- The clients ---- */

typedef struct Client {
  noria_frame frame;
  Demo *demo;
  noria_future *op;
  noria_tcp *tcp;
  uint64_t random;
  uint64_t began_ns;
  uint64_t round_trips; /* left of this connection */
  size_t sent_at;       /* place in the stream of the next byte to send, below PERIOD */
  size_t received_at;   /* of the next byte that comes back */
  size_t to_send;       /* what is left of this round trip */
  size_t to_receive;
  size_t count;
  uint8_t data[READ_SIZE];
} Client;

static uint64_t now_of(const Demo *demo) {
  uint64_t now_ns = 0;
  noria_now(demo->proxy->rt, &now_ns);
  return now_ns;
}

static bool time_is_up(const Demo *demo) { return counter_get(&demo->stopped) > 0 || now_of(demo) >= demo->ends_ns; }

/* Sizes as they are met: most small, some large. Returns the class. */
static size_t choose_size(Client *c) {
  static const size_t least[DEMO_CLASSES] = {1, 257, 8193, 65537};
  static const size_t most[DEMO_CLASSES] = {256, 8192, 65536, LARGEST};
  uint64_t dice = next_random(&c->random) % 100;
  size_t class = dice < 50 ? 0 : dice < 80 ? 1 : dice < 95 ? 2 : 3;
  c->to_send = least[class] + next_random(&c->random) % (most[class] - least[class] + 1);
  c->to_receive = c->to_send;
  return class;
}

static void check_received(Client *c) {
  const uint8_t *expected = c->demo->stream + c->received_at;
  if (memcmp(expected, c->data, c->count) != 0) {
    uint64_t wrong = 0;
    for (size_t i = 0; i < c->count; i++) wrong += expected[i] != c->data[i];
    counter_add(&c->demo->wrong_bytes, wrong);
  }
  c->received_at = (c->received_at + c->count) % PERIOD;
  c->to_receive -= c->count;
  counter_add(&c->demo->echoed_bytes, c->count);
}

/* One round trip: sends and receives at the same time, as the stream allows, or both sides would
 * wait for each other with their buffers full. */
static int32_t poll_round_trip(Client *c, const noria_cx *cx) {
  bool moving = true;
  while (moving && c->to_receive > 0) {
    moving = false;
    if (c->to_send > 0) {
      int32_t status = noria_tcp_poll_write(c->tcp, cx, c->demo->stream + c->sent_at, c->to_send, &c->count);
      if (status < 0) return status;
      if (status == NORIA_READY) {
        c->sent_at = (c->sent_at + c->count) % PERIOD;
        c->to_send -= c->count;
        moving = true;
      }
    }
    int32_t status = noria_tcp_poll_read(c->tcp, cx, c->data, sizeof c->data, &c->count);
    if (status < 0) return status;
    if (status == NORIA_READY) {
      if (c->count == 0) return -EPIPE; /* the end of stream, too early */
      if (c->count > c->to_receive) {   /* more than was sent */
        counter_add(&c->demo->wrong_bytes, c->count - c->to_receive);
        c->count = c->to_receive;
      }
      check_received(c);
      moving = true;
    }
  }
  return c->to_receive == 0 ? NORIA_READY : NORIA_PENDING;
}

static void client_failed(Client *c, const char *doing, int32_t error) {
  counter_add(&c->demo->errors, 1);
  counter_add(&c->demo->lost_bytes, c->to_receive);
  c->to_receive = 0;
  console_log("demo", "demo: %s: %s (%s)", doing, noria_error_name(error), noria_error_message(error));
}

static int32_t client_poll(void *state, const noria_cx *cx) {
  Client *c = state;
  Demo *demo = c->demo;
  NORIA_BEGIN(&c->frame, cx);
  while (!time_is_up(demo)) {
    c->began_ns = now_of(demo);
    NORIA_AWAIT_CALL(&c->frame, c->op, noria_tcp_connect(demo->proxy->rt, demo->target, NULL, &c->op), &c->tcp,
                     sizeof c->tcp);
    if (c->frame.status != NORIA_OK) {
      client_failed(c, "connect", c->frame.status);
      NORIA_RETURN(&c->frame, c->frame.status);
    }
    histogram_add(&demo->connect, now_of(demo) - c->began_ns);
    counter_add(&demo->connections, 1);
    c->sent_at = c->received_at = next_random(&c->random) % PERIOD;

    for (c->round_trips = 1 + next_random(&c->random) % (2 * ROUND_TRIPS); c->round_trips > 0; c->round_trips--) {
      if (time_is_up(demo)) break;
      c->began_ns = now_of(demo);
      counter_add(&demo->by_class[choose_size(c)], 1);
      NORIA_AWAIT(&c->frame, poll_round_trip(c, cx));
      if (c->frame.status != NORIA_OK) {
        client_failed(c, "round trip", c->frame.status);
        NORIA_RETURN(&c->frame, c->frame.status);
      }
      histogram_add(&demo->round_trip, now_of(demo) - c->began_ns);
      counter_add(&demo->proxy->stats.requests, 1);
    }

    /* Half-close: the end of what we send travels to the echo server and comes back as the end of
     * what it sends. Anything before it is a byte too many. */
    noria_tcp_shutdown(c->tcp, NORIA_SHUTDOWN_WRITE);
    NORIA_AWAIT(&c->frame, noria_tcp_poll_read(c->tcp, cx, c->data, sizeof c->data, &c->count));
    if (c->frame.status != NORIA_OK) {
      client_failed(c, "half-close", c->frame.status);
    } else if (c->count > 0) {
      counter_add(&demo->wrong_bytes, c->count);
    } else {
      counter_add(&demo->half_closes, 1);
    }
    noria_tcp_drop(c->tcp);
    c->tcp = NULL;
  }
  NORIA_END(&c->frame);
}

static void client_drop(void *state) {
  Client *c = state;
  if (c->frame.point != -1) {
    counter_add(&c->demo->unfinished, 1);
    counter_add(&c->demo->lost_bytes, c->to_receive);
  }
  if (c->op != NULL) noria_future_drop(c->op);
  if (c->tcp != NULL) noria_tcp_drop(c->tcp);
}

static const noria_task_vtable client_vtable = {
    .size = sizeof(noria_task_vtable),
    .poll = client_poll,
    .drop = client_drop,
    .name = "demo client",
};

static int32_t client_start(Demo *demo, size_t index) {
  void *room = NULL;
  noria_task *task = NULL;
  int32_t status = noria_task_new(demo->proxy->rt, &client_vtable, sizeof(Client), _Alignof(Client), &room, &task);
  if (status != NORIA_OK) return status;
  Client *c = room;
  memset(c, 0, offsetof(Client, data));
  c->demo = demo;
  c->random = index + 1;
  status = noria_task_start(task);
  if (status != NORIA_OK) {
    noria_task_discard(task);
    return status;
  }
  demo->clients[index] = task;
  return NORIA_OK;
}

/* ---- The demo ---- */

int32_t demo_start(Demo *demo, Proxy *proxy, uint64_t duration_ns) {
  demo->proxy = proxy;
  demo->stream = malloc(PERIOD + LARGEST);
  if (demo->stream == NULL) return -ENOMEM;
  uint64_t seed = 1;
  for (size_t i = 0; i < PERIOD; i++) demo->stream[i] = (uint8_t)next_random(&seed);
  for (size_t i = PERIOD; i < PERIOD + LARGEST; i++) demo->stream[i] = demo->stream[i - PERIOD];
  int32_t status = noria_address_format(&proxy->address, demo->target, sizeof demo->target);
  demo->began_ns = now_of(demo);
  demo->ends_ns = demo->began_ns + duration_ns;
  for (size_t i = 0; i < DEMO_CONNECTIONS && status == NORIA_OK; i++) {
    status = client_start(demo, i);
  }
  return status;
}

int32_t demo_join(Demo *demo, noria_future **out) {
  noria_future *joins[DEMO_CONNECTIONS];
  size_t count = 0;
  int32_t status = NORIA_OK;
  while (count < DEMO_CONNECTIONS && status == NORIA_OK) {
    status = noria_task_join(demo->clients[count], &joins[count]);
    if (status == NORIA_OK) count++;
  }
  noria_future *all = NULL;
  if (status == NORIA_OK) status = noria_join_all(demo->proxy->rt, joins, count, &all);
  if (status != NORIA_OK) {
    while (count > 0) noria_future_drop(joins[--count]);
    return status;
  }
  uint64_t most_ns = demo->ends_ns - demo->began_ns + GRACE_NS;
  status = noria_timeout(demo->proxy->rt, all, most_ns, out);
  if (status != NORIA_OK) noria_future_drop(all);
  return status;
}

void demo_stop(Demo *demo) { counter_add(&demo->stopped, 1); }

void demo_finish(Demo *demo) {
  demo->ended_ns = now_of(demo);
  for (size_t i = 0; i < DEMO_CONNECTIONS; i++) {
    if (demo->clients[i] == NULL) continue;
    noria_task_abort(demo->clients[i]); /* one that hangs; else nothing happens */
    noria_task_detach(demo->clients[i]);
    demo->clients[i] = NULL;
  }
}

void demo_close(Demo *demo) {
  if (demo->echo_task != NULL) noria_task_detach(demo->echo_task);
  if (demo->echo != NULL) noria_tcp_listener_drop(demo->echo);
  free(demo->stream);
}
