/* task.h: tasks: a vtable, a state, and a handle to join, take, abort or detach it.
 *
 *     static int32_t hello_poll(void *state, const noria_cx *cx) {
 *       (void)cx;
 *       puts((const char *)state);
 *       return NORIA_READY;
 *     }
 *     static const noria_task_vtable hello = {sizeof hello, 0, hello_poll, NULL, NULL, "hello"};
 *     noria_spawn(rt, &hello, "hello", NULL);
 *
 * A task is polled by one thread at a time. `poll` answers NORIA_READY (done), NORIA_PENDING (it left its
 * waker with whoever will know) or a negative error (done, failed); another positive number is a mistake, and the
 * task has failed with -EINVAL. `drop` runs exactly once on a thread
 * that may run it, never before a running poll has ended and never under an engine lock. */
#ifndef NORIA_TASK_H
#define NORIA_TASK_H

#include "noria/base.h"
#include "noria/waker.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct noria_task_vtable {
  uint32_t size;  /* sizeof(noria_task_vtable) */
  uint32_t flags; /* zero */
  int32_t (*poll)(void *state, const noria_cx *cx);
  void (*drop)(void *state); /* may be NULL */
  /* With `take` the state lives after completion until its output was taken (moved into `out`) or the
   * handle is released; without it `drop` follows completion at once. After `take`, `drop` still runs. */
  void (*take)(void *state, void *out);
  const char *name; /* the default name of such tasks, static; may be NULL */
} noria_task_vtable;

enum noria_join_kind {
  NORIA_JOIN_DONE = 0,    /* poll answered READY */
  NORIA_JOIN_FAILED = 1,  /* poll answered an error (or threw: -NORIA_ETHROWN) */
  NORIA_JOIN_ABORTED = 2, /* aborted, or dropped by shutdown, before it was done */
};

typedef struct noria_join_result {
  uint32_t kind; /* enum noria_join_kind */
  int32_t error; /* FAILED: what poll answered, or -EINVAL where that is no answer; else 0 */
} noria_join_result;

/* Spawns a task around a plain pointer. On an error the state stays the caller's and `drop` is not called.
 * A NULL `out` detaches the task from the start.
 * Threads: any.  Owner: the state passes to the task; `*out` is the caller's, given back by
 * noria_task_detach; the vtable must outlive the task.
 * Callback: poll and drop on workers; they may call anything that does not block.
 * Errors: the common ones. */
NORIA_API int32_t noria_spawn(noria_runtime *rt, const noria_task_vtable *vtable, void *state, noria_task **out);

/* Spawns a task that stays on this thread: on the worker that calls, or on the current-thread runtime
 * (whose owner calls). Its poll and drop run on that thread only.
 * Threads: a worker of `rt`, or the thread that turns it.  Owner: as noria_spawn.
 * Callback: as noria_spawn, on this thread.
 * Errors: -NORIA_EWRONGTHREAD from elsewhere. */
NORIA_API int32_t noria_spawn_local(noria_runtime *rt, const noria_task_vtable *vtable, void *state, noria_task **out);

/* Makes a task with `size` uninitialised bytes aligned to `align` in its own allocation, for the caller to
 * construct its state in; then noria_task_start or noria_task_discard.
 * Threads: any.  Owner: `*out` is the caller's, `*state` is inside it.
 * Callback: as noria_spawn, once it is started.
 * Errors: -EINVAL where align is not a power of two up to NORIA_MAX_ALIGN. */
NORIA_API int32_t noria_task_new(noria_runtime *rt, const noria_task_vtable *vtable, size_t size, size_t align,
                                 void **state, noria_task **out);

/* Starts a task made by noria_task_new; on success its state belongs to the task. The handle stays the
 * caller's (noria_task_detach gives it back). On an error the task is as before: discard it.
 * Threads: any.  Owner: the state passes.  Errors: -NORIA_EBADSTATE if it was started. */
NORIA_API int32_t noria_task_start(noria_task *task);

/* Frees a task that was not started, without calling `drop`.
 * Threads: any.  Owner: takes the handle.  Errors: -NORIA_EBADSTATE if it was started. */
NORIA_API int32_t noria_task_discard(noria_task *task);

/* A future that is ready when the task is; its result is a noria_join_result. Any number of them may wait.
 * Threads: any.  Owner: the handle stays the caller's; `*out` is the caller's.
 * Errors: -NORIA_EBADSTATE if it was not started. */
NORIA_API int32_t noria_task_join(noria_task *task, noria_future **out);

/* The poll form of join, one waker a task: the last wins. `out` is filled when READY.
 * Threads: any, one at a time.  Owner: nothing passes.  Errors: -NORIA_EBADSTATE if it was not started. */
NORIA_API int32_t noria_task_poll_join(noria_task *task, const noria_cx *cx, noria_join_result *out);

/* Moves the output of a task that is DONE into `out` through the vtable's `take`, then drops the state.
 * Threads: any, one at a time.  Owner: the output passes.
 * Callback: `take` and `drop` on this thread.
 * Errors: -EAGAIN if it is not complete, -NORIA_ECONSUMED the second time, -EINVAL without `take` or `out`,
 * -ECANCELED if it was aborted, the task's own error if it failed, -NORIA_EWRONGTHREAD for a local task elsewhere than on
 * its thread. */
NORIA_API int32_t noria_task_take(noria_task *task, void *out);

/* Asks the task to end: it is not polled again, its state is dropped by a thread that may run it, and
 * join tells ABORTED. A poll that runs ends first. Too late on a complete task: nothing happens.
 * Threads: any.  Owner: nothing passes.  Errors: -NORIA_EBADSTATE if it was not started. */
NORIA_API int32_t noria_task_abort(noria_task *task);

/* Releases the handle; the task goes on.
 * Threads: any.  Owner: takes the handle.  Errors: -NORIA_EBADSTATE if it was not started. */
NORIA_API int32_t noria_task_detach(noria_task *task);

/* Whether the task is complete: 1 or 0.
 * Threads: any.  Owner: nothing passes.  Errors: -EINVAL. */
NORIA_API int32_t noria_task_is_complete(const noria_task *task);

/* The task's id, unique in its runtime and never zero.
 * Threads: any.  Owner: nothing passes.  Errors: -EINVAL. */
NORIA_API int32_t noria_task_id(const noria_task *task, uint64_t *out);

/* The task's name: what noria_task_set_name gave, else the vtable's, else "".
 * Threads: any.  Owner: the text is the giver's.  Errors: -EINVAL. */
NORIA_API int32_t noria_task_name(const noria_task *task, const char **out);

/* Names one task, for reports and traces.
 * Threads: before noria_task_start only.  Owner: the text is borrowed and must outlive the task.
 * Errors: -NORIA_EBADSTATE if it was started. */
NORIA_API int32_t noria_task_set_name(noria_task *task, const char *name);

/* Runs `run(arg)` on the blocking pool. The future's result is an int32_t, what `run` answered. Cancelling it
 * before the job began means that it never begins (`discard(arg)` is called, if given); a running job
 * goes on, and the future tells -ECANCELED at once.
 * Threads: any.  Owner: `arg` passes to the job; on an error it stays the caller's. A NULL `out` detaches.
 * Callback: run on a pool thread, where it may block; discard on whichever thread gives it up.
 * Errors: -EAGAIN when the pool's queue is full. */
NORIA_API int32_t noria_spawn_blocking(noria_runtime *rt, int32_t (*run)(void *arg), void (*discard)(void *arg),
                                       void *arg, noria_future **out);

/* Runs `run(arg)` on this thread, which may block in it: when the thread is a worker, its queue, wheel and
 * reactor part pass to another thread meanwhile. Elsewhere it is a plain call. `*result` is what it answered.
 * Threads: any.  Owner: nothing passes.  Callback: run on this thread, once, where it may block.
 * Errors: -NORIA_EWRONGKIND in a task of a strand or of a current-thread runtime, or on a worker that has local tasks;
 * -NORIA_ENESTED in a callback of a worker outside of a poll; -EAGAIN if no thread can be had. */
NORIA_API int32_t noria_block_in_place(int32_t (*run)(void *arg), void *arg, int32_t *result);

/* A strand: its tasks are polled first come, first served, and never two at once, while the runtime's
 * workers run everything else. It is not held across PENDING.
 * Threads: any.  Owner: `*out` is the caller's, given back by noria_strand_drop.  Errors: the common ones. */
NORIA_API int32_t noria_strand_new(noria_runtime *rt, noria_strand **out);

/* Spawns a task on the strand; otherwise as noria_spawn.
 * Threads: any.  Owner: as noria_spawn.  Callback: as noria_spawn, never two of one strand at once.
 * Errors: the common ones. */
NORIA_API int32_t noria_strand_spawn(noria_strand *strand, const noria_task_vtable *vtable, void *state,
                                     noria_task **out);

/* As noria_task_new, for a task that belongs to the strand.
 * Threads: any.  Owner: as noria_task_new.  Callback: as noria_strand_spawn.  Errors: as noria_task_new. */
NORIA_API int32_t noria_strand_task_new(noria_strand *strand, const noria_task_vtable *vtable, size_t size,
                                        size_t align, void **state, noria_task **out);

/* Gives the handle back; tasks of the strand go on.
 * Threads: any.  Owner: takes the handle.  Errors: -EINVAL. */
NORIA_API int32_t noria_strand_drop(noria_strand *strand);

#ifdef __cplusplus
}
#endif

#endif
