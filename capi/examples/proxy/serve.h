/* serve.h: the proxy itself: a task that accepts, and a task for each connection.
 *
 * Every connection holds one permit of a semaphore. That bounds them (without a permit nothing is
 * accepted, and the rest wait in the backlog), and it is how draining knows that all have ended: who
 * holds every permit is alone. */
#ifndef PROXY_SERVE_H
#define PROXY_SERVE_H

#include <noria/noria.h>

#include "options.h"
#include "stats.h"

typedef struct Proxy {
  const Options *options;
  noria_runtime *rt;
  noria_tcp_listener *listener;
  noria_address address; /* where it listens */
  noria_semaphore *permits;
  noria_notify *progress; /* asks the open connections to add what they have moved to the stats */
  noria_task *acceptor;
  Counter turn; /* of the upstreams */
  Counter last_id;
  Counter live_bytes; /* nonzero: the connections listen to `progress` */
  Stats stats;
} Proxy;

/* Listens and blocks this thread until that is settled. On an error nothing is left behind but what
 * proxy_close takes. */
int32_t proxy_open(Proxy *proxy, const Options *options, const char *listen, noria_runtime *rt);

/* Begins to accept. */
int32_t proxy_start(Proxy *proxy);

/* The acceptor has ended by itself: READY, and its error in `why`. */
int32_t proxy_poll_failed(Proxy *proxy, const noria_cx *cx, noria_join_result *why);

/* Accepts no more. The future tells that the last connection has ended, -ETIMEDOUT that it has not. */
int32_t proxy_drain(Proxy *proxy, noria_future **out);

/* After the runtime's shutdown: gives everything back. */
void proxy_close(Proxy *proxy);

/* Listens on an address that is known at once (it waits for a name); for this thread only. */
int32_t listen_now(noria_runtime *rt, const char *address, noria_tcp_listener **out);

#endif
