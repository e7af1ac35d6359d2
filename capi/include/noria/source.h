/* source.h: readiness of any pollable descriptor.
 *
 * A source watches a descriptor of the caller (socket, pipe, eventfd, signalfd, terminal). Readiness is kept with a
 * tick: wait for it, try the system call, and when that says EAGAIN clear with the readiness that was told;
 * a clear with an old tick does nothing, so that no event is eaten. One waker a direction (the last wins). */
#ifndef NORIA_SOURCE_H
#define NORIA_SOURCE_H

#include "noria/base.h"
#include "noria/waker.h"

#ifdef __cplusplus
extern "C" {
#endif

enum noria_events {
  NORIA_READABLE = 1,
  NORIA_WRITABLE = 2,
  NORIA_READ_CLOSED = 4,
  NORIA_WRITE_CLOSED = 8,
  NORIA_ERROR = 16,
  NORIA_PRIORITY = 32, /* urgent data */
};

typedef struct noria_readiness {
  uint32_t events; /* of enum noria_events */
  uint32_t reserved;
  uint64_t tick;
} noria_readiness;

/* Registers a descriptor, which should be non-blocking.
 * Threads: any.  Owner: the descriptor stays the caller's, who closes it after noria_source_drop; `*out` is
 * the caller's.  Errors: -NORIA_ENODRIVER, -EPERM for a descriptor that is not pollable, -EBADF, -EEXIST if it is
 * registered already. */
NORIA_API int32_t noria_source_new(noria_runtime *rt, int32_t fd, noria_source **out);

/* READY when one of `interest` (NORIA_READABLE, NORIA_WRITABLE, NORIA_PRIORITY, or both directions) holds, with
 * what is known in `out`; closed and error count as ready for both. Else PENDING with the waker left.
 * Threads: one at a time for each direction.  Owner: nothing passes.
 * Errors: -EBADF after noria_source_close. */
NORIA_API int32_t noria_source_poll_ready(noria_source *source, uint32_t interest, const noria_cx *cx,
                                          noria_readiness *out);

/* A future of the same; its result is a noria_readiness.
 * Threads: any; several may wait.  Owner: `*out` is the caller's.  Errors: as noria_source_poll_ready. */
NORIA_API int32_t noria_source_ready(noria_source *source, uint32_t interest, noria_future **out);

/* Forgets `events` of the readiness `seen`, unless something newer was reported since.
 * Threads: any.  Owner: nothing passes.  Errors: -EINVAL. */
NORIA_API int32_t noria_source_clear(noria_source *source, const noria_readiness *seen, uint32_t events);

/* Deregisters; waiting polls and futures end with -EBADF, later ones too. The handle stays.
 * Threads: any.  Owner: nothing passes.  Errors: -EINVAL. */
NORIA_API int32_t noria_source_close(noria_source *source);

/* Deregisters if need be and gives it back; the descriptor stays the caller's.
 * Threads: any.  Owner: takes the source.  Errors: -EINVAL. */
NORIA_API int32_t noria_source_drop(noria_source *source);

#ifdef __cplusplus
}
#endif

#endif
