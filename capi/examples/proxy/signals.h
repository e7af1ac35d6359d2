/* signals.h: SIGINT and SIGTERM as something to await: a signalfd behind a noria_source. */
#ifndef PROXY_SIGNALS_H
#define PROXY_SIGNALS_H

#include <noria/noria.h>

typedef struct Signals {
  int32_t fd;
  noria_source *source;
  uint32_t last; /* number of the signal that came last */
} Signals;

/* Blocks both signals in this thread and in those that it starts: call it before the runtime is
 * made. */
int32_t signals_block(Signals *signals);

/* Begins to watch. */
int32_t signals_watch(Signals *signals, noria_runtime *rt);

/* READY once for each signal that came; its number is in `last`. */
int32_t signals_poll(Signals *signals, const noria_cx *cx);

void signals_close(Signals *signals);

#endif
