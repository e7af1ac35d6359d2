/* future.h: the one noun for everything that is awaited: sleep, join, job, connect, read, lock.
 *
 * A future starts when it is created. It has one owner, whose calls on it are serialised; only
 * noria_future_cancel may come from any thread at any time (while the owner keeps it). It becomes READY
 * once; noria_future_result then tells the operation's own status and passes its typed result, once. */
#ifndef NORIA_FUTURE_H
#define NORIA_FUTURE_H

#include "noria/base.h"
#include "noria/waker.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NORIA_READY, or NORIA_PENDING with the cx's waker left (the last wins). An error means misuse; the
 * operation's own error is told by noria_future_result. Takes budget inside a task.
 * Threads: the owner.  Owner: nothing passes.  Errors: -EINVAL. */
NORIA_API int32_t noria_future_poll(noria_future *future, const noria_cx *cx);

/* NORIA_READY if it is; else leaves a clone of `waker` (the last wins) and answers NORIA_PENDING. Never wakes inline.
 * Threads: the owner.  Owner: the waker is borrowed.  Errors: -EINVAL. */
NORIA_API int32_t noria_future_on_ready(noria_future *future, const noria_waker *waker);

/* Blocks this thread until the future is ready or `timeout_ns` has passed (real time).
 * Threads: the owner, not on a worker, and not on a thread that drives a current-thread runtime.
 * Owner: nothing passes.  Errors: -ETIMEDOUT, -NORIA_ENESTED on a worker. */
NORIA_API int32_t noria_future_wait(noria_future *future, uint64_t timeout_ns);

/* The operation's status, and its result in `out` (`size` must be the size of the operation's result type;
 * NULL and 0 where it has none or it is not wanted). A result that is owned (a handle) passes once.
 * Operations that count (copy, read, write) fill `out` on failure and cancel too: what was done is told.
 * Threads: the owner.  Owner: the result passes to the caller.
 * Errors: -EAGAIN while pending, -NORIA_ECONSUMED the second time, -EINVAL for a wrong size; else the operation's. */
NORIA_API int32_t noria_future_result(noria_future *future, void *out, size_t size);

/* Asks the operation to end; the future becomes READY with -ECANCELED unless it was ready already.
 * Threads: any, while the owner keeps it.  Owner: nothing passes.  Errors: -EINVAL. */
NORIA_API int32_t noria_future_cancel(noria_future *future);

/* Cancels what is pending and gives the future back; an untaken result is given back too. Never blocks.
 * Threads: the owner.  Owner: takes the future.  Errors: -EINVAL. */
NORIA_API int32_t noria_future_drop(noria_future *future);

enum noria_delivery_kind {
  NORIA_DELIVER_WORKER = 0, /* on any worker */
  NORIA_DELIVER_STRAND = 1, /* on a worker, never at once with others of the strand */
  NORIA_DELIVER_TURN = 2,   /* on the thread that turns a current-thread runtime, or on this worker */
};

typedef struct noria_delivery {
  uint32_t size;
  uint32_t kind;                                     /* enum noria_delivery_kind */
  void (*callback)(void *arg, noria_future *future); /* the future is ready and borrowed during the call */
  void *arg;
  noria_strand *strand;       /* for NORIA_DELIVER_STRAND, borrowed during this call */
  void (*discard)(void *arg); /* instead of callback when the runtime ends first; may be NULL */
  noria_runtime *rt;          /* NULL: the current one */
} noria_delivery;

/* Hands the future to a plain callback: it runs once, when the future is ready, and the engine drops the
 * future after it. Exactly one of callback and discard is called.
 * Threads: the owner; for NORIA_DELIVER_TURN a thread that noria_spawn_local allows.
 * Owner: takes the future (on an error it stays the caller's).
 * Callback: where `kind` says, never inside this call; it may call anything that does not block.
 * Errors: -E2BIG, -NORIA_EWRONGTHREAD. */
NORIA_API int32_t noria_future_deliver(noria_future *future, const noria_delivery *delivery);

/* A future that is ready when the first of `futures` is; its result is a size_t, the index (the lowest, when
 * several are). The futures are borrowed until it is ready or dropped; losers stay pending.
 * Threads: their owner.  Owner: borrows; `*out` is the caller's.  Errors: -EINVAL for none. */
NORIA_API int32_t noria_select(noria_runtime *rt, noria_future *const *futures, size_t count, noria_future **out);

/* The poll form of select. When the budget ends at one of them, later ones are not tried.
 * Threads: their owner.  Owner: nothing passes.  Errors: -EINVAL for none. */
NORIA_API int32_t noria_select_poll(noria_future *const *futures, size_t count, const noria_cx *cx, size_t *index);

/* A future that is ready when all of `futures` are; noria_join_all_result tells each one's. Its own status is
 * NORIA_OK whatever theirs are (-ECANCELED where it was cancelled itself).
 * Threads: their owner.  Owner: takes all of them (on an error none).  Errors: -EINVAL for a NULL among them. */
NORIA_API int32_t noria_join_all(noria_runtime *rt, noria_future *const *futures, size_t count, noria_future **out);

/* The status and result of the one at `index`, as noria_future_result of it. `all` may be a noria_timeout over it.
 * What was not asked for is given back when `all` is dropped.
 * Threads: the owner.  Owner: the result passes.  Errors: -EAGAIN while pending, -EINVAL, else that operation's. */
NORIA_API int32_t noria_join_all_result(noria_future *all, size_t index, void *out, size_t size);

/* A future over `inner` that ends with -ETIMEDOUT when `timeout_ns` has passed: the inner one is then cancelled,
 * and what it had done is told in its result type. Else status and result are those of `inner`.
 * Threads: the owner.  Owner: takes `inner` (on an error not).
 * Errors: -NORIA_ENODRIVER without the time driver. */
NORIA_API int32_t noria_timeout(noria_runtime *rt, noria_future *inner, uint64_t timeout_ns, noria_future **out);

#ifdef __cplusplus
}
#endif

#endif
