/* signals.c: SIGINT and SIGTERM as something to await. */
#include "signals.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

int32_t signals_block(Signals *signals) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  int error = pthread_sigmask(SIG_BLOCK, &set, NULL);
  if (error != 0) return -error;
  signals->source = NULL;
  signals->last = 0;
  signals->fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  return signals->fd < 0 ? -errno : NORIA_OK;
}

int32_t signals_watch(Signals *signals, noria_runtime *rt) {
  return noria_source_new(rt, signals->fd, &signals->source);
}

int32_t signals_poll(Signals *signals, const noria_cx *cx) {
  for (;;) {
    noria_readiness seen;
    int32_t status = noria_source_poll_ready(signals->source, NORIA_READABLE, cx, &seen);
    if (status != NORIA_READY) return status;
    struct signalfd_siginfo info;
    ssize_t count = read(signals->fd, &info, sizeof info);
    if (count == (ssize_t)sizeof info) {
      signals->last = info.ssi_signo;
      return NORIA_READY;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno != EAGAIN) return -errno;
    /* Nothing there after all: forget the readiness that was seen, not one that came since. */
    status = noria_source_clear(signals->source, &seen, NORIA_READABLE);
    if (status != NORIA_OK) return status;
  }
}

void signals_close(Signals *signals) {
  if (signals->source != NULL) noria_source_drop(signals->source);
  if (signals->fd >= 0) close(signals->fd);
}
