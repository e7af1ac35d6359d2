/* echo.c: a TCP echo server, and what a Noria program is made of.
 *
 *   echo HOST:PORT   serves until it is stopped
 *   echo             tries itself: serves on a free port, talks to itself, checks, ends */
#include <noria/async.h>
#include <noria/noria.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One connection is one task. What must outlive an await lives in its state. */
typedef struct Connection {
  noria_frame frame; /* where the task stopped */
  noria_tcp *tcp;
  size_t have, sent, count;
  char data[16384];
} Connection;

static int32_t connection_poll(void *state, const noria_cx *cx) {
  Connection *c = state;
  NORIA_BEGIN(&c->frame, cx);
  for (;;) {
    /* NORIA_TRY leaves the function while the read is pending and comes back to this line. The worker
     * polls other tasks meanwhile, so thousands of these loops share a few threads. */
    NORIA_TRY(&c->frame, noria_tcp_poll_read(c->tcp, cx, c->data, sizeof c->data, &c->have));
    if (c->have == 0) break; /* the peer has sent all */
    for (c->sent = 0; c->sent < c->have; c->sent += c->count) {
      NORIA_TRY(&c->frame, noria_tcp_poll_write(c->tcp, cx, c->data + c->sent, c->have - c->sent, &c->count));
    }
  }
  NORIA_END(&c->frame);
}

/* Runs once, however the task ends: done, failed, aborted, runtime gone. */
static void connection_drop(void *state) {
  Connection *c = state;
  noria_tcp_drop(c->tcp);
}

static const noria_task_vtable connection_vtable = {
    .size = sizeof(noria_task_vtable), .poll = connection_poll, .drop = connection_drop, .name = "connection"};

/* The state lies inside the task: one allocation a connection. */
static int32_t serve(noria_tcp *tcp) {
  void *room;
  noria_task *task;
  int32_t status = noria_task_new(NULL, &connection_vtable, sizeof(Connection), _Alignof(Connection), &room, &task);
  if (status != NORIA_OK) return status;
  Connection *c = room;
  noria_frame_reset(&c->frame);
  c->tcp = tcp;
  status = noria_task_start(task);
  if (status != NORIA_OK) {
    noria_task_discard(task);
    return status;
  }
  return noria_task_detach(task); /* nobody waits for it */
}

/* The server is a task too. A state as simple as this needs no frame: it begins anew at each poll. */
static int32_t accept_poll(void *state, const noria_cx *cx) {
  noria_tcp_listener *listener = state;
  for (;;) {
    noria_tcp *tcp;
    int32_t status = noria_tcp_poll_accept(listener, cx, &tcp);
    if (status != NORIA_READY) return status; /* PENDING, or the listener was closed */
    if (serve(tcp) != NORIA_OK) noria_tcp_drop(tcp);
  }
}

static const noria_task_vtable accept_vtable = {
    .size = sizeof(noria_task_vtable), .poll = accept_poll, .name = "acceptor"};

/* ---- The client of the self-test: futures this time, which the task awaits one by one ---- */

typedef struct Client {
  noria_frame frame;
  noria_runtime *rt;
  char address[64];
  noria_future *op;
  noria_tcp *tcp;
  size_t have, count;
  char data[64];
} Client;

static const char greeting[] = "Water that has passed comes round again.";

static int32_t client_poll(void *state, const noria_cx *cx) {
  Client *c = state;
  NORIA_BEGIN(&c->frame, cx);
  NORIA_TRY_CALL(&c->frame, c->op, noria_tcp_connect(c->rt, c->address, NULL, &c->op), &c->tcp, sizeof c->tcp);
  NORIA_TRY(&c->frame, noria_tcp_poll_write(c->tcp, cx, greeting, sizeof greeting, &c->count));
  noria_tcp_shutdown(c->tcp, NORIA_SHUTDOWN_WRITE); /* the server reads its end of stream, and hangs up */
  do {
    NORIA_TRY(&c->frame, noria_tcp_poll_read(c->tcp, cx, c->data + c->have, sizeof c->data - c->have, &c->count));
    c->have += c->count;
  } while (c->count > 0);
  NORIA_END(&c->frame);
}

static const noria_task_vtable client_vtable = {
    .size = sizeof(noria_task_vtable), .poll = client_poll, .name = "client"};

static int32_t try_it(noria_runtime *rt, const noria_tcp_listener *listener) {
  Client client = {.rt = rt};
  noria_address address;
  noria_tcp_listener_address(listener, &address);
  noria_address_format(&address, client.address, sizeof client.address);
  noria_join_result ended = {0};
  int32_t status = noria_runtime_block_on(rt, &client_vtable, &client, &ended);
  if (status == NORIA_OK) status = ended.error;
  if (client.tcp != NULL) noria_tcp_drop(client.tcp);
  if (client.op != NULL) noria_future_drop(client.op);
  printf("%s says: %.*s\n", client.address, (int)client.have, client.data);
  if (status == NORIA_OK && strcmp(client.data, greeting) != 0) status = -1;
  return status;
}

int main(int argc, char **argv) {
  noria_runtime *rt;
  int32_t status = noria_runtime_new(NULL, &rt); /* one worker for each CPU */
  if (status != NORIA_OK) return EXIT_FAILURE;

  /* Each operation has a future; outside of tasks a thread may simply wait for it. */
  noria_future *listening = NULL;
  noria_tcp_listener *listener = NULL;
  status = noria_tcp_listen(rt, argc > 1 ? argv[1] : "127.0.0.1:0", NULL, &listening);
  if (status == NORIA_OK) {
    noria_future_wait(listening, NORIA_FOREVER);
    status = noria_future_result(listening, &listener, sizeof listener);
    noria_future_drop(listening);
  }

  noria_task *acceptor = NULL;
  if (status == NORIA_OK) status = noria_spawn(rt, &accept_vtable, listener, &acceptor);
  if (status == NORIA_OK && argc > 1) {
    noria_future *end;
    status = noria_task_join(acceptor, &end);
    if (status == NORIA_OK) {
      printf("echo: serving on %s\n", argv[1]);
      noria_future_wait(end, NORIA_FOREVER);
      noria_future_drop(end);
    }
  } else if (status == NORIA_OK) {
    status = try_it(rt, listener);
  }
  if (status != NORIA_OK) fprintf(stderr, "echo: %s\n", noria_error_message(status));

  noria_runtime_shutdown(rt, 1000000000, NULL); /* drops every task that is left */
  if (acceptor != NULL) noria_task_detach(acceptor);
  if (listener != NULL) noria_tcp_listener_drop(listener);
  noria_runtime_release(rt);
  return status == NORIA_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
