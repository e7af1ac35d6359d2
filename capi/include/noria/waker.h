/* waker.h: the one channel between the parts: who cannot go on leaves a waker, who knows wakes it.
 *
 * Layouts here are frozen. A waker may come from anywhere: the engine's own stand for tasks; a foreign
 * one (of Rust, of Python, of a test) brings its own vtable. Any of its functions may be called from
 * any thread, inside or outside the engine, never under an engine lock, and may call back into any
 * Noria function that does not block. Cloning an engine waker allocates nothing. */
#ifndef NORIA_WAKER_H
#define NORIA_WAKER_H

#include "noria/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct noria_waker_vtable noria_waker_vtable;

typedef struct noria_waker {
  const noria_waker_vtable *vtable;
  void *data;
  void *extra;
} noria_waker;

/* None of them may throw: what leaves one ends the process. */
struct noria_waker_vtable {
  void (*clone)(const noria_waker *waker, noria_waker *out);
  void (*wake)(noria_waker *waker); /* wakes and consumes */
  void (*wake_by_ref)(const noria_waker *waker);
  void (*drop)(noria_waker *waker);
};

/* What a poll is given. Anyone can build one on the stack around a waker (combinators do):
 * zero the reserved words. It is valid during the poll only. */
typedef struct noria_cx {
  const noria_waker *waker;
  uint64_t reserved[3];
} noria_cx;

/* A place in the queue of a lock or channel for one pending poll form. The caller owns it, zeroes it
 * before first use, keeps it where it is (pinned) while it is pending, and drops it before it goes. */
typedef struct noria_waiter {
  uintptr_t words[8];
} noria_waiter;

/* Makes `out` a second waker for the same target.
 * Threads: any.  Owner: `out` is the caller's, to be woken or dropped once.  Errors: -EINVAL. */
NORIA_API int32_t noria_waker_clone(const noria_waker *waker, noria_waker *out);

/* Wakes and consumes. After completion or shutdown of the target it only consumes.
 * Threads: any, at any time.  Owner: takes the waker.  Errors: -EINVAL. */
NORIA_API int32_t noria_waker_wake(noria_waker *waker);

/* Wakes without consuming.
 * Threads: any, at any time.  Owner: nothing passes.  Errors: -EINVAL. */
NORIA_API int32_t noria_waker_wake_by_ref(const noria_waker *waker);

/* Gives a waker back unused.
 * Threads: any.  Owner: takes the waker.  Errors: -EINVAL. */
NORIA_API int32_t noria_waker_drop(noria_waker *waker);

/* 1 if both wake the same target for sure, 0 if that is not known.
 * Threads: any.  Owner: nothing passes.  Errors: -EINVAL. */
NORIA_API int32_t noria_waker_will_wake(const noria_waker *a, const noria_waker *b);

/* Wakes the task that is being polled, so that it is polled again.
 * Threads: any, during the poll.  Owner: nothing passes.  Errors: -EINVAL. */
NORIA_API int32_t noria_cx_wake(const noria_cx *cx);

/* Lets other tasks run: arranges a wake behind what is ready now and returns NORIA_PENDING, which the
 * caller returns from its poll; the next poll goes on.
 * Threads: the polling thread.  Owner: nothing passes.  Errors: -EINVAL. */
NORIA_API int32_t noria_yield(const noria_cx *cx);

/* Takes one unit of the running poll's budget of 128. NORIA_READY: go on. NORIA_PENDING: it is spent; a
 * wake is arranged and the caller returns PENDING. Poll forms of Noria do this by themselves.
 * What noria_runtime_block_on polls on a thread has that budget too; outside of both it is always READY.
 * Threads: the polling thread.  Owner: nothing passes.  Errors: -EINVAL. */
NORIA_API int32_t noria_budget_poll(const noria_cx *cx);

/* Gives back the unit that noria_budget_poll took, when the operation turned out to be pending.
 * Threads: the polling thread.  Owner: nothing passes.  Errors: none. */
NORIA_API int32_t noria_budget_restore(void);

/* 1 if a PENDING of this poll came from the end of the budget (a combinator then returns PENDING
 * and does not try its later branches), else 0.
 * Threads: the polling thread.  Owner: nothing passes.  Errors: none. */
NORIA_API int32_t noria_budget_spent(void);

/* Takes a waiter out of whatever queue it stands in; what was granted and not yet reported goes back.
 * On a zeroed waiter it does nothing.
 * Threads: any, serialised with the poll that uses it.  Owner: the memory stays the caller's.
 * Errors: -EINVAL. */
NORIA_API int32_t noria_waiter_drop(noria_waiter *waiter);

#ifdef __cplusplus
}
#endif

#endif
