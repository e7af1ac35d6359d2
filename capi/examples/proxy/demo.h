/* demo.h: an echo server and clients that check every byte, in the proxy's own process.
 *
 * What goes through a connection is a stream whose every byte follows from its place, so that a byte
 * that is wrong, lost, doubled, out of order or another connection's is found. */
#ifndef PROXY_DEMO_H
#define PROXY_DEMO_H

#include <noria/async.h>
#include <noria/noria.h>
#include <stdio.h>

#include "serve.h"
#include "stats.h"

enum { DEMO_CONNECTIONS = 200, DEMO_CLASSES = 4 };

typedef struct Demo {
  Proxy *proxy;
  noria_tcp_listener *echo; /* the embedded upstream; NULL when the user named one */
  noria_task *echo_task;
  noria_task *clients[DEMO_CONNECTIONS];
  uint8_t *stream;
  char echo_address[64];
  char target[64]; /* the proxy's address */
  uint64_t began_ns;
  uint64_t ends_ns; /* no new round trip after it */
  uint64_t ended_ns;
  Counter stopped; /* nonzero: ends_ns is now */
  /* Counted by the clients. */
  Counter connections;
  Counter half_closes; /* ends of stream that came back after everything else had */
  Counter wrong_bytes;
  Counter lost_bytes; /* sent, and never came back */
  Counter errors;
  Counter unfinished; /* clients that had not ended in time */
  Counter echoed_bytes;
  Counter by_class[DEMO_CLASSES]; /* round trips by size */
  Histogram round_trip;
  Histogram connect;
} Demo;

/* Opens the echo server; its address goes to echo_address. */
int32_t demo_open(Demo *demo, noria_runtime *rt);

/* Starts the clients against the proxy. */
int32_t demo_start(Demo *demo, Proxy *proxy, uint64_t duration_ns);

/* A future of the end of all clients, with an end of its own when some hang. */
int32_t demo_join(Demo *demo, noria_future **out);

/* Ends it early: clients finish the round trip that they are in. */
void demo_stop(Demo *demo);

/* Looks at how the clients ended, after demo_join. */
void demo_finish(Demo *demo);

/* 1 if every byte came back as it was sent. */
int demo_passed(const Demo *demo);

void demo_print(Demo *demo, FILE *out);
void demo_print_json(Demo *demo, FILE *out);

/* After the runtime's shutdown. */
void demo_close(Demo *demo);

#endif
