/* sync.h: semaphore, notify and oneshot: waiting for each other without blocking a worker.
 *
 * All are first come, first served. Poll forms take a caller-owned noria_waiter and allocate nothing. */
#ifndef NORIA_SYNC_H
#define NORIA_SYNC_H

#include "noria/base.h"
#include "noria/waker.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A semaphore with `permits`, UINT64_MAX / 4 at most.
 * Threads: any.  Owner: `*out` is the caller's, given back by noria_semaphore_drop.
 * Errors: -EINVAL for more, and the common ones. */
NORIA_API int32_t noria_semaphore_new(noria_runtime *rt, uint64_t permits, noria_semaphore **out);

/* Takes `count` permits if they are there and nobody waits.
 * Threads: any.  Owner: the caller has the permits.  Errors: -EAGAIN, -NORIA_ECLOSED. */
NORIA_API int32_t noria_semaphore_try_acquire(noria_semaphore *semaphore, uint64_t count);

/* READY with `count` permits.
 * Threads: any, each with its own waiter.  Owner: the waiter stays the caller's, pinned until READY or noria_waiter_drop.
 * Errors: -NORIA_ECLOSED. */
NORIA_API int32_t noria_semaphore_poll_acquire(noria_semaphore *semaphore, uint64_t count, const noria_cx *cx,
                                               noria_waiter *waiter);

/* A future of `count` permits; no result. Permits that were granted to a future that is dropped without
 * noria_future_result go back.
 * Threads: any.  Owner: `*out` is the caller's.  Errors: in the result -NORIA_ECLOSED. */
NORIA_API int32_t noria_semaphore_acquire(noria_semaphore *semaphore, uint64_t count, noria_future **out);

/* Gives permits back, or adds new ones.
 * Threads: any.  Owner: takes the permits.  Errors: -EOVERFLOW. */
NORIA_API int32_t noria_semaphore_release(noria_semaphore *semaphore, uint64_t count);

/* How many are free now.
 * Threads: any.  Owner: nothing passes.  Errors: -EINVAL. */
NORIA_API int32_t noria_semaphore_available(const noria_semaphore *semaphore, uint64_t *out);

/* Who waits and who comes later gets -NORIA_ECLOSED; releasing goes on.
 * Threads: any.  Owner: nothing passes.  Errors: -EINVAL. */
NORIA_API int32_t noria_semaphore_close(noria_semaphore *semaphore);

/* Closes and gives it back; futures that wait end with -NORIA_ECLOSED.
 * Threads: any, no waiter of a poll form pending.  Owner: takes the semaphore.  Errors: -EINVAL. */
NORIA_API int32_t noria_semaphore_drop(noria_semaphore *semaphore);

/* A notify: wakes one or all who wait; one that comes when nobody waits is kept (once).
 * Threads: any.  Owner: `*out` is the caller's, given back by noria_notify_drop.  Errors: the common ones. */
NORIA_API int32_t noria_notify_new(noria_runtime *rt, noria_notify **out);

/* READY when notified since this waiter began.
 * Threads: any, each with its own waiter.  Owner: as noria_semaphore_poll_acquire.  Errors: the common ones. */
NORIA_API int32_t noria_notify_poll_wait(noria_notify *notify, const noria_cx *cx, noria_waiter *waiter);

/* A future of the same; no result. A notification that reached a future dropped without its result goes to the next.
 * Threads: any.  Owner: `*out` is the caller's.  Errors: in the result -NORIA_ECLOSED. */
NORIA_API int32_t noria_notify_wait(noria_notify *notify, noria_future **out);

/* Wakes the longest waiting one, or is kept for the next.
 * Threads: any.  Owner: nothing passes.  Errors: -EINVAL. */
NORIA_API int32_t noria_notify_one(noria_notify *notify);

/* Wakes all who wait now; nothing is kept.
 * Threads: any.  Owner: nothing passes.  Errors: -EINVAL. */
NORIA_API int32_t noria_notify_all(noria_notify *notify);

/* Gives it back; futures that wait end with -NORIA_ECLOSED.
 * Threads: any, no waiter of a poll form pending.  Owner: takes it.  Errors: -EINVAL. */
NORIA_API int32_t noria_notify_drop(noria_notify *notify);

/* One pointer from one side to the other. `discard(value)` is called for a value that nobody took; it may be NULL.
 * Threads: any.  Owner: both ends are the caller's; each is dropped by its own function.
 * Callback: discard on the thread that drops the last end; must not block.  Errors: the common ones. */
NORIA_API int32_t noria_oneshot_new(noria_runtime *rt, void (*discard)(void *value), noria_oneshot_sender **sender,
                                    noria_oneshot_receiver **receiver);

/* Sends and gives the sender back.
 * Threads: any.  Owner: takes the sender and the value; when the receiver is gone the value stays the caller's and
 * the sender is given back all the same.  Errors: -NORIA_ECLOSED. */
NORIA_API int32_t noria_oneshot_send(noria_oneshot_sender *sender, void *value);

/* READY once the receiver is gone or closed.
 * Threads: one at a time.  Owner: nothing passes.  Errors: -EBUSY while a future of noria_oneshot_closed waits. */
NORIA_API int32_t noria_oneshot_poll_closed(noria_oneshot_sender *sender, const noria_cx *cx);

/* A future of the same; no result. It ends with -ECANCELED when the sender sends or goes first. One at a time.
 * Threads: one at a time.  Owner: `*out` is the caller's; the sender stays the caller's.
 * Errors: -EBUSY until the future before it has failed, its result was asked for, or it was dropped. */
NORIA_API int32_t noria_oneshot_closed(noria_oneshot_sender *sender, noria_future **out);

/* Gives the sender back without sending; the receiver gets -NORIA_ECLOSED.
 * Threads: any.  Owner: takes the sender.  Errors: -EINVAL. */
NORIA_API int32_t noria_oneshot_sender_drop(noria_oneshot_sender *sender);

/* READY with the value.
 * Threads: one at a time.  Owner: the value passes.  Errors: -NORIA_ECLOSED if the sender went without sending,
 * -NORIA_ECONSUMED after the value was taken, -EBUSY as noria_oneshot_receive. */
NORIA_API int32_t noria_oneshot_poll_receive(noria_oneshot_receiver *receiver, const noria_cx *cx, void **value);

/* A future of the value; its result is a void*. A value that a dropped future had not passed on is kept.
 * Until its result was asked for, or it has failed or was dropped, the value is meant for it: one at a time.
 * Threads: one at a time.  Owner: `*out` is the caller's; the receiver stays the caller's.
 * Errors: -EBUSY while the value is meant for another future; in the result as above. */
NORIA_API int32_t noria_oneshot_receive(noria_oneshot_receiver *receiver, noria_future **out);

/* The value if it is there.
 * Threads: one at a time.  Owner: the value passes.  Errors: -EAGAIN, and as noria_oneshot_poll_receive. */
NORIA_API int32_t noria_oneshot_try_receive(noria_oneshot_receiver *receiver, void **value);

/* Refuses values from now on; one that was sent can still be received.
 * Threads: one at a time.  Owner: nothing passes.  Errors: -EINVAL. */
NORIA_API int32_t noria_oneshot_close(noria_oneshot_receiver *receiver);

/* Gives the receiver back; a value that is there is discarded.
 * Threads: any.  Owner: takes the receiver.  Errors: -EINVAL. */
NORIA_API int32_t noria_oneshot_receiver_drop(noria_oneshot_receiver *receiver);

#ifdef __cplusplus
}
#endif

#endif
