/* runtime.h: making, driving, watching and ending a runtime.
 *
 *     noria_runtime *rt;
 *     if (noria_runtime_new(NULL, &rt) != NORIA_OK) return 1;
 *     noria_runtime_block_on(rt, &program, &state, NULL);
 *     noria_runtime_free(rt);
 *
 * A multi-thread runtime has its own workers. A current-thread runtime runs on the thread that first turns it
 * (noria_runtime_turn, noria_runtime_block_on) and belongs to that thread; others spawn into it and wake it.
 *
 * Words that the options and counters below use:
 * - ring: the queue of ready tasks that a worker has for itself, of a fixed size; others steal from it.
 * - inject queue: the queue of all workers, for what comes from outside of them or found no room in a ring.
 * - LIFO slot: holds the one task that was made ready last; it runs next on its worker, while its data is in cache.
 * - wheel: holds the armed timers of a worker.
 * - sentry: an idle worker that looks every 2 ms whether another is stuck in a long poll, and does its work then. */
#ifndef NORIA_RUNTIME_H
#define NORIA_RUNTIME_H

#include "noria/base.h"
#include "noria/task.h"

#ifdef __cplusplus
extern "C" {
#endif

enum noria_runtime_kind {
  NORIA_RUNTIME_DEFAULT = 0, /* multi-thread */
  NORIA_RUNTIME_MULTI_THREAD = 1,
  NORIA_RUNTIME_CURRENT_THREAD = 2,
};

enum noria_reactor_kind {
  NORIA_REACTOR_AUTO = 0,
  NORIA_REACTOR_EPOLL = 1,
  NORIA_REACTOR_IO_URING = 2, /* -EOPNOTSUPP until it exists */
  NORIA_REACTOR_KQUEUE = 3,   /* -EOPNOTSUPP here */
};

typedef struct noria_runtime_options {
  uint32_t size;
  uint32_t kind;               /* enum noria_runtime_kind */
  uint32_t workers;            /* 0: min(affinity, cgroup quota), at least 1; current-thread has 1 */
  uint32_t max_workers;        /* 0: as workers; the most that there can be later */
  uint32_t enable_io;          /* 0: on; NORIA_NONE: off, sockets and sources give -NORIA_ENODRIVER */
  uint32_t enable_time;        /* 0: on; NORIA_NONE: off, sleeping gives -NORIA_ENODRIVER */
  uint32_t reactor;            /* enum noria_reactor_kind */
  uint32_t pool_user_threads;  /* bound of the threads for noria_spawn_blocking, not NORIA_NONE; 0: 512 */
  uint32_t pool_file_threads;  /* bound of those for files, not NORIA_NONE; 0: 16; no operation uses it yet */
  uint32_t pool_name_threads;  /* bound of those for name look-ups, not NORIA_NONE; 0: 8 */
  uint32_t pool_queue_limit;   /* jobs queued at most, a class, not NORIA_NONE; 0: NORIA_UNLIMITED */
  uint32_t inject_interval;    /* polls between two looks at the inject queue; 0: tuned, at most 64 */
  uint64_t pool_keep_alive_ns; /* how long an idle pool thread stays; 0: 10 s */
  uint64_t seed;               /* of every random choice; 0: from the system */
  const char *name;            /* prefix of thread names, copied; NULL: "noria" */
  const uint32_t *affinity;    /* CPU of each worker, copied; NULL: not pinned */
  uint32_t affinity_count;     /* workers beyond it start over from the first */
  uint32_t clock_paused;       /* 1: start with the clock paused */
  /* Instead of CLOCK_MONOTONIC; must never go back. On any thread, whenever the engine wants the time, also inside of
   * calls that arm or ask for a timer; it must not call Noria, block or throw. */
  uint64_t (*clock_now)(void *data);
  void *clock_data;
  void (*on_thread_start)(void *data); /* on each worker and pool thread, before its first work */
  void (*on_thread_stop)(void *data);  /* on it, after its last */
  void (*on_worker_park)(void *data);  /* on a worker, before it sleeps */
  void (*on_worker_unpark)(void *data);
  void *hook_data;
} noria_runtime_options;

typedef struct noria_shutdown_report {
  uint32_t size;
  uint32_t timed_out;     /* 1: polls or jobs were still running; they are left with their own reference */
  uint64_t tasks_dropped; /* tasks that were not complete */
  uint64_t futures_cancelled;
  uint64_t jobs_dropped; /* blocking jobs that had not begun */
  uint32_t polls_running;
  uint32_t jobs_running;
  /* Of what was running: lines, each ended by a newline, as many as fit. The jobs of noria_spawn_blocking are all
   * named "blocking job". */
  char names[512];
} noria_shutdown_report;

typedef struct noria_runtime_info_data {
  uint32_t size;
  uint32_t kind;
  uint32_t workers;
  uint32_t max_workers;
  uint32_t reactor; /* the one in use; NORIA_REACTOR_AUTO when I/O is off */
  uint32_t io_enabled;
  uint32_t time_enabled;
  uint32_t clock_paused;
  uint64_t seed;
} noria_runtime_info_data;

typedef struct noria_worker_metrics {
  uint32_t size;
  uint32_t worker;
  uint64_t polls;
  uint64_t steals;   /* tasks taken from others */
  uint64_t overflow; /* tasks that the full ring gave away: to the longer ring behind it or to the inject queue */
  uint64_t parks;
  uint64_t wakes_sent;  /* other workers woken by this one */
  uint64_t busy_ns;     /* time not parked */
  uint64_t queue_depth; /* now */
  uint64_t lifo_polls;  /* tasks that came from the LIFO slot */
  uint64_t sentry_acts; /* times it took over from a stuck worker */
} noria_worker_metrics;

enum { NORIA_HISTOGRAM_BUCKETS = 32 };

typedef struct noria_metrics {
  uint32_t size;
  uint32_t workers;
  uint64_t live_tasks;
  uint64_t inject_depth;
  uint64_t pool_threads;
  uint64_t pool_idle;
  uint64_t pool_queue;
  uint64_t timers;  /* in the wheels: armed, and cancelled noria_timers that were not dropped */
  uint64_t sources; /* registered */
  uint64_t polls;   /* the rest: sums over the workers */
  uint64_t steals;
  uint64_t overflow;
  uint64_t parks;
  uint64_t wakes_sent;
  uint64_t busy_ns;
  /* Sampled poll times: bucket i counts polls of [2^i, 2^(i+1)) ns; one poll in 64 is timed. */
  uint64_t poll_time_histogram[NORIA_HISTOGRAM_BUCKETS];
} noria_metrics;

/* Makes and starts a runtime. NULL options: all defaults.
 * Threads: any.  Owner: `*out` is one reference, given back by noria_runtime_release or _free.
 * Callback: the option struct says where the hooks and the clock run; none of them may call Noria or throw.
 * Errors: -EOPNOTSUPP for a reactor that is not there, -E2BIG, -EMFILE and others of the system. */
NORIA_API int32_t noria_runtime_new(const noria_runtime_options *options, noria_runtime **out);

/* One reference more.
 * Threads: any.  Owner: the caller has one more to release.  Errors: -EINVAL. */
NORIA_API int32_t noria_runtime_retain(noria_runtime *rt);

/* One reference less. The last one shuts down with time-out 0, as noria_runtime_free does; from inside the
 * runtime (a task, a job, a callback) it starts that and lets a reaper finish.
 * Threads: any.  Owner: takes a reference (on an error not).
 * Errors: -NORIA_EWRONGTHREAD for the last reference of a current-thread runtime that noria_runtime_shutdown would
 * refuse here, or, in a job, leave to the owner: hand it to that thread. */
NORIA_API int32_t noria_runtime_release(noria_runtime *rt);

/* noria_runtime_shutdown with time-out 0, then noria_runtime_release. What is left running keeps its own reference, and
 * that is no error here: noria_runtime_shutdown tells of it.
 * Threads: any.  Owner: takes a reference (on an error not).
 * Errors: -NORIA_EWRONGTHREAD where noria_runtime_shutdown answers it. */
NORIA_API int32_t noria_runtime_free(noria_runtime *rt);

/* Ends the runtime: no new work; every task is dropped, every pending future cancelled, jobs that have not
 * begun are dropped; polls and jobs that run are waited for up to `timeout_ns`, then named in `report` (which
 * may be NULL; else its `size` is set) and left to end by themselves. They have 50 ms at least, also where the
 * time-out is less. From a worker, job or callback of this runtime it starts the end and answers NORIA_PENDING; a
 * reaper finishes, or who drives a
 * current-thread runtime when he returns (local tasks that a job finds between two turns: the next turn). `timeout_ns` and
 * `report` are not used then: the reaper waits for up to 1 s, the driver for the 50 ms. A second call, from outside, waits
 * for the end and reports it. A current-thread runtime is ended by the thread that owns it (or by anyone while no thread
 * drives it; local tasks only by the owner).
 * Threads: any.  Owner: references stay as they are.
 * Errors: -ETIMEDOUT when something was left running; -EINVAL and -E2BIG for the size of `report`, and nothing was done;
 * -NORIA_EWRONGTHREAD, and nothing was done, while another thread
 * drives a current-thread runtime or has local tasks in it. */
NORIA_API int32_t noria_runtime_shutdown(noria_runtime *rt, uint64_t timeout_ns, noria_shutdown_report *report);

/* Makes `rt` the thread's current runtime, for calls that are given NULL. Nests. Polls, jobs and deliveries have
 * their runtime for the current one without it (base.h).
 * Threads: any.  Owner: holds a reference until noria_runtime_leave.  Errors: the common ones. */
NORIA_API int32_t noria_runtime_enter(noria_runtime *rt);

/* Undoes the last noria_runtime_enter of this thread.
 * Threads: the one that entered.  Owner: gives the reference of enter back.
 * Errors: -NORIA_EBADSTATE if `rt` is not the one that was entered last; -NORIA_EWRONGTHREAD as noria_runtime_release,
 * for the last reference: it was left, and the reference is the caller's now. */
NORIA_API int32_t noria_runtime_leave(noria_runtime *rt);

/* Polls a state on this thread until it is done, while the runtime runs; on a current-thread runtime this
 * thread drives it meanwhile. `out` (may be NULL) gets how it ended: the answer is NORIA_OK also when the poll failed, or
 * was aborted because the runtime closed. `drop` is called before it returns, unless
 * the vtable has `take`: then the state stays the caller's.
 * Threads: any that is not inside a runtime; current-thread: its owner.  Owner: the state is borrowed.
 * Callback: poll and drop on this thread.
 * Errors: -NORIA_ENESTED on a worker or while this thread blocks or drives already, -NORIA_EWRONGTHREAD. */
NORIA_API int32_t noria_runtime_block_on(noria_runtime *rt, const noria_task_vtable *vtable, void *state,
                                         noria_join_result *out);

/* Runs a current-thread runtime once: what is ready, what is due, what I/O reports; when nothing is ready it
 * waits for up to `timeout_ns` first (0: does not wait), of the runtime's time: a paused clock moves by that much at
 * most. `*polls` (may be NULL) is the number of tasks polled.
 * Threads: its owner (the first to turn it).  Owner: nothing passes.
 * Callback: tasks run inside.
 * Errors: -NORIA_EWRONGKIND, -NORIA_EWRONGTHREAD, -NORIA_ENESTED from inside itself. */
NORIA_API int32_t noria_runtime_turn(noria_runtime *rt, uint64_t timeout_ns, uint32_t *polls);

/* A descriptor that polls readable when a current-thread runtime wants to be turned (I/O or a wake from
 * another thread), for embedding in a foreign loop together with noria_runtime_next_timeout.
 * Threads: any.  Owner: the descriptor stays the runtime's; do not read or close it.
 * Errors: -NORIA_EWRONGKIND. */
NORIA_API int32_t noria_runtime_fd(noria_runtime *rt, int32_t *out);

/* How long a foreign loop may sleep before it must turn the runtime: 0 if something is ready, NORIA_FOREVER if
 * only I/O or a wake can bring work. With a paused clock it is 0 while a deadline is left: turn with a time-out then,
 * for a turn of 0 moves no time.
 * Threads: its owner.  Owner: nothing passes.  Errors: -NORIA_EWRONGKIND, -NORIA_EWRONGTHREAD. */
NORIA_API int32_t noria_runtime_next_timeout(noria_runtime *rt, uint64_t *timeout_ns);

/* What the runtime was made as.
 * Threads: any.  Owner: `out` is the caller's, its `size` set.  Errors: -E2BIG. */
NORIA_API int32_t noria_runtime_info(noria_runtime *rt, noria_runtime_info_data *out);

/* Counters of the whole runtime, a snapshot in motion.
 * Threads: any.  Owner: `out` is the caller's, its `size` set.  Errors: -E2BIG. */
NORIA_API int32_t noria_runtime_metrics(noria_runtime *rt, noria_metrics *out);

/* Counters of one worker.
 * Threads: any.  Owner: `out` is the caller's, its `size` set.  Errors: -EINVAL for no such worker, -E2BIG. */
NORIA_API int32_t noria_runtime_worker_metrics(noria_runtime *rt, uint32_t worker, noria_worker_metrics *out);

#ifdef __cplusplus
}
#endif

#endif
