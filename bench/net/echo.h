/* echo.h: one echo connection of the load, as the closed and the open loop use it. */
#ifndef NORIA_BENCH_ECHO_H
#define NORIA_BENCH_ECHO_H

#include "net/load.h"

typedef struct echo_connection {
  int fd;
  uint32_t sequence; /* counts its messages; chooses which part of the pattern is sent */
  size_t sent;
  size_t received;
  uint64_t begin_ns; /* of the request's latency */
  uint64_t backlog;  /* open loop: messages that are due behind the one that is out */
  bool out;          /* a message is on its way */
} echo_connection;

/* load.connections of them, connected and watched, none of which has sent anything. */
echo_connection* echo_connect_all(void);
/* Sends the next message; its latency counts from `begin_ns`. */
void echo_send(echo_connection* c, uint64_t begin_ns);
/* Goes on with what the events say; true if the message has come back whole. */
bool echo_progress(echo_connection* c, uint32_t events);
/* Counts a message that came back: as one of the warm-up or with its latency. */
void echo_finish(echo_connection* c);
uint64_t echo_finished(void);
/* Half-closes each connection and waits for the server's end of stream, so that the server has counted all. */
void echo_hang_up(echo_connection* connections);

#endif
