/* time.h: sleeping, timers that can be re-armed, intervals, and the clock of a runtime.
 *
 * Time is the runtime's monotonic clock in nanoseconds (suspend does not count). A timer never fires
 * early; it is late by at most one tick of 1 ms and the wake-up itself (there is one class of timers so far, and it is
 * rounded to that tick). Any deadline up to UINT64_MAX works.
 * All need the time driver (-NORIA_ENODRIVER without it). */
#ifndef NORIA_TIME_H
#define NORIA_TIME_H

#include "noria/base.h"
#include "noria/waker.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The runtime's time.
 * Threads: any.  Owner: nothing passes.  Errors: the common ones. */
NORIA_API int32_t noria_now(noria_runtime *rt, uint64_t *out);

/* A future that is ready after `duration_ns`; no result.
 * Threads: any.  Owner: `*out` is the caller's.  Errors: -NORIA_ENODRIVER. */
NORIA_API int32_t noria_sleep(noria_runtime *rt, uint64_t duration_ns, noria_future **out);

/* A future that is ready at `deadline_ns`; no result.
 * Threads: any.  Owner: `*out` is the caller's.  Errors: -NORIA_ENODRIVER. */
NORIA_API int32_t noria_sleep_until(noria_runtime *rt, uint64_t deadline_ns, noria_future **out);

/* A timer, not armed. Its poll form is for tasks that arm it again and again without allocating.
 * Threads: any.  Owner: `*out` is the caller's, given back by noria_timer_drop.  Errors: -NORIA_ENODRIVER. */
NORIA_API int32_t noria_timer_new(noria_runtime *rt, noria_timer **out);

/* Arms the timer for `deadline_ns`, whether it was armed, has fired or was cancelled. O(1). That is an instant, not a
 * duration: in a second it is noria_now(rt, &now), then noria_timer_reset(timer, now + 1000000000).
 * Threads: any.  Owner: nothing passes.  Errors: the common ones. */
NORIA_API int32_t noria_timer_reset(noria_timer *timer, uint64_t deadline_ns);

/* Disarms the timer. `NORIA_OK`: it will not fire; -EALREADY: it has fired or was not armed. O(1).
 * Threads: any.  Owner: nothing passes.  Errors: -EALREADY. */
NORIA_API int32_t noria_timer_cancel(noria_timer *timer);

/* READY once the armed deadline has passed (and until the next reset), else PENDING with the waker left.
 * A timer that is not armed is PENDING. A shutdown wakes the waker.
 * Threads: one at a time.  Owner: nothing passes.  Errors: -NORIA_ESHUTDOWN unless it has fired. */
NORIA_API int32_t noria_timer_poll_wait(noria_timer *timer, const noria_cx *cx);

/* A future for the deadline as it is armed now (a later reset moves it); cancelled with the timer.
 * Threads: any.  Owner: `*out` is the caller's.  Errors: -NORIA_EBADSTATE if it is not armed. */
NORIA_API int32_t noria_timer_wait(noria_timer *timer, noria_future **out);

/* The armed deadline, or NORIA_FOREVER.
 * Threads: any.  Owner: nothing passes.  Errors: -EINVAL. */
NORIA_API int32_t noria_timer_deadline(const noria_timer *timer, uint64_t *out);

/* Disarms and gives it back.
 * Threads: any.  Owner: takes the timer.  Errors: -EINVAL. */
NORIA_API int32_t noria_timer_drop(noria_timer *timer);

/* What an interval does with ticks that were missed. */
enum noria_missed {
  NORIA_MISSED_BURST = 0, /* they come at once, the rhythm is kept */
  NORIA_MISSED_DELAY = 1, /* the next is a period after the late one */
  NORIA_MISSED_SKIP = 2,  /* they are left out, the next is on the old rhythm */
};

/* Ticks at `first_ns` (an instant; 0: now) and every `period_ns` from there.
 * Threads: any.  Owner: `*out` is the caller's, given back by noria_interval_drop.
 * Errors: -EINVAL for a period of zero, -NORIA_ENODRIVER. */
NORIA_API int32_t noria_interval_new(noria_runtime *rt, uint64_t first_ns, uint64_t period_ns, uint32_t missed,
                                     noria_interval **out);

/* READY at a tick; `*instant_ns` is the instant it was due. A shutdown wakes the waker.
 * Threads: one at a time.  Owner: nothing passes.  Errors: -NORIA_ESHUTDOWN. */
NORIA_API int32_t noria_interval_poll_tick(noria_interval *interval, const noria_cx *cx, uint64_t *instant_ns);

/* A future of the next tick; its result is a uint64_t, the instant it was due. One at a time.
 * Threads: one at a time.  Owner: `*out` is the caller's.  Errors: -EBUSY while another is pending. */
NORIA_API int32_t noria_interval_tick(noria_interval *interval, noria_future **out);

/* Starts the rhythm anew: the next tick is one period from now.
 * Threads: one at a time.  Owner: nothing passes.  Errors: the common ones. */
NORIA_API int32_t noria_interval_reset(noria_interval *interval);

/* Gives it back.
 * Threads: any.  Owner: takes the interval.  Errors: -EINVAL. */
NORIA_API int32_t noria_interval_drop(noria_interval *interval);

/* Freezes the runtime's time. While it is frozen and nothing is ready, time jumps to the next deadline by
 * itself, so that a test of an hour takes a millisecond. On its way it may stand at a deadline that a timer
 * was moved away from.
 * Threads: any.  Owner: nothing passes.  Errors: -NORIA_ENODRIVER, -EALREADY. */
NORIA_API int32_t noria_clock_pause(noria_runtime *rt);

/* Moves frozen time forward; what is due fires.
 * Threads: any.  Owner: nothing passes.  Errors: -NORIA_EBADSTATE if it is not paused. */
NORIA_API int32_t noria_clock_advance(noria_runtime *rt, uint64_t delta_ns);

/* Lets time run on from where it stands.
 * Threads: any.  Owner: nothing passes.  Errors: -NORIA_EBADSTATE if it is not paused. */
NORIA_API int32_t noria_clock_resume(noria_runtime *rt);

#ifdef __cplusplus
}
#endif

#endif
