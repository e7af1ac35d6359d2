/* async.h: straight-line C on top of poll functions. Included by itself: #include <noria/async.h>.
 *
 * A poll function is called again and again until it is done, and returns whenever it cannot go on. These
 * macros let it read like a plain one: they note in a noria_frame where it stopped, and the next call goes
 * on from there. Nothing is allocated, there is no second stack: it is one `switch` over line numbers.
 *
 *     struct echo { noria_frame frame; noria_tcp *tcp; char data[4096]; size_t have, sent, count; };
 *
 *     static int32_t echo_poll(void *state, const noria_cx *cx) {
 *       struct echo *e = state;
 *       NORIA_BEGIN(&e->frame, cx);
 *       for (;;) {
 *         NORIA_TRY(&e->frame, noria_tcp_poll_read(e->tcp, cx, e->data, sizeof e->data, &e->have));
 *         if (e->have == 0) break;
 *         for (e->sent = 0; e->sent < e->have; e->sent += e->count)
 *           NORIA_TRY(&e->frame, noria_tcp_poll_write(e->tcp, cx, e->data + e->sent, e->have - e->sent, &e->count));
 *       }
 *       NORIA_END(&e->frame);
 *     }
 *     static void echo_drop(void *state) { struct echo *e = state; noria_tcp_drop(e->tcp); free(e); }
 *     static const noria_task_vtable echo = {sizeof echo, 0, echo_poll, echo_drop, NULL, "echo"};
 *
 * Rules.
 * - Locals do not live across an await: what is needed after it belongs in the state struct, beside the
 *   frame. (A C++ compiler refuses a jump over an initialiser; a C compiler may only warn.)
 * - The frame is zero before the first poll: calloc, `= {0}`, or noria_frame_reset to begin anew.
 * - What is awaited is evaluated again at each poll, so it must be a poll form or something like it: READY,
 *   PENDING with a waker left, or an error. A call that never answers PENDING may stand in it too
 *   (NORIA_TRY around one that can only fail). Arguments with side effects (`i++`) do not belong in it.
 * - Awaits may stand in loops, in branches and in blocks, but not inside a `switch` of your own, and only one a line.
 * - A function made so is a poll form itself: give it a frame of its own inside the caller's state and await
 *   it: NORIA_AWAIT(&s->frame, child_poll(&s->child, cx)).
 *
 * The task is aborted in the middle: poll is not called again, the vtable's `drop` is, with the state as it
 * stood at the await (frame.point is its line, 0 if it never began). So keep every handle in the state, NULL
 * when there is none, and let `drop` give back what it finds: it is the one place for cleaning up, for the
 * normal end too. The same holds for a failed NORIA_TRY. Futures go before the objects that they use. */
#ifndef NORIA_ASYNC_H
#define NORIA_ASYNC_H

#include "noria/base.h"
#include "noria/future.h"
#include "noria/waker.h"

typedef struct noria_frame {
  const noria_cx *cx; /* of the poll that runs; set by NORIA_BEGIN */
  int32_t point;      /* the line of the await where it stopped; 0 before the first, -1 after the end */
  int32_t status;     /* of the last await: NORIA_READY or an error */
} noria_frame;

/* Makes the frame begin anew at the next poll. */
static inline void noria_frame_reset(noria_frame *frame) {
  frame->cx = NULL;
  frame->point = 0;
  frame->status = NORIA_READY;
}

/* Takes the result of a future that was polled with `status` and gives the future back. */
static inline int32_t noria_frame_take_(int32_t status, noria_future **future, void *out, size_t size) {
  if (status == NORIA_READY) status = noria_future_result(*future, out, size);
  (void)noria_future_drop(*future);
  *future = NULL;
  return status;
}

/* How a frame that stands at no await answers: as it ended, or that it was never zeroed. */
static inline int32_t noria_frame_ended_(const noria_frame *frame) {
  return frame->point == -1 ? frame->status : (int32_t)-NORIA_EBADSTATE;
}

/* Opens the body, first statement after the declarations. `frame` is a noria_frame*. */
#define NORIA_BEGIN(frame, cx_of_poll) \
  (frame)->cx = (cx_of_poll);          \
  switch ((frame)->point) {            \
    case 0:

/* Closes the body: done, NORIA_READY. The function ends here. */
#define NORIA_END(frame)         \
  (frame)->status = NORIA_READY; \
  (frame)->point = -1;           \
  break;                         \
  default:                       \
    break;                       \
    }                            \
    return noria_frame_ended_(frame)

/* Leaves the function for good with NORIA_READY or an error. */
#define NORIA_RETURN(frame, how) \
  do {                           \
    (frame)->status = (how);     \
    (frame)->point = -1;         \
    return (frame)->status;      \
  } while (0)

/* Goes on when `poll_form` is not PENDING; (frame)->status tells READY or the error. */
#define NORIA_AWAIT(frame, poll_form)              \
  do {                                             \
    for (;;) {                                     \
      (frame)->status = (poll_form);               \
      if ((frame)->status != NORIA_PENDING) break; \
      (frame)->point = __LINE__;                   \
      return NORIA_PENDING;                        \
      case __LINE__:;                              \
    }                                              \
  } while (0)

/* NORIA_AWAIT, and an error ends the function with it (`drop` cleans up). */
#define NORIA_TRY(frame, poll_form)                                           \
  do {                                                                        \
    NORIA_AWAIT(frame, poll_form);                                            \
    if ((frame)->status != NORIA_READY) NORIA_RETURN(frame, (frame)->status); \
  } while (0)

/* Awaits `future`, a variable of the state: when it is ready its result goes to `out` (NULL and 0: not wanted),
 * the future is dropped and the variable is NULL. (frame)->status is the operation's own. */
#define NORIA_AWAIT_FUTURE(frame, future, out, size)                                \
  do {                                                                              \
    NORIA_AWAIT(frame, noria_future_poll((future), (frame)->cx));                   \
    (frame)->status = noria_frame_take_((frame)->status, &(future), (out), (size)); \
  } while (0)

/* NORIA_AWAIT_FUTURE of what `call` creates in `future`; when the call itself fails, that is the status.
 *     NORIA_AWAIT_CALL(f, s->op, noria_sleep(NULL, 1000000, &s->op), NULL, 0); */
#define NORIA_AWAIT_CALL(frame, future, call, out, size)                           \
  do {                                                                             \
    (frame)->status = (call);                                                      \
    if ((frame)->status == NORIA_OK) NORIA_AWAIT_FUTURE(frame, future, out, size); \
  } while (0)

/* NORIA_AWAIT_CALL, and an error ends the function with it. */
#define NORIA_TRY_CALL(frame, future, call, out, size)                        \
  do {                                                                        \
    NORIA_AWAIT_CALL(frame, future, call, out, size);                         \
    if ((frame)->status != NORIA_READY) NORIA_RETURN(frame, (frame)->status); \
  } while (0)

/* Lets what is ready now run first. */
#define NORIA_YIELD(frame)           \
  do {                               \
    (frame)->point = __LINE__;       \
    return noria_yield((frame)->cx); \
    case __LINE__:;                  \
  } while (0)

#endif
