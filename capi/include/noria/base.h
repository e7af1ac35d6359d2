/* base.h: the conventions that every Noria header follows.
 *
 * - Returns: every function returns int32_t: NORIA_OK = NORIA_READY = 0, NORIA_PENDING = 1, a negative
 *   value is an error: `-errno` of the system, or `-NORIA_E...` (errors.def), below -4096.
 *   What a function creates comes back through its last argument. Three that answer a question say 1 for
 *   yes and 0 for no, beside their errors: noria_task_is_complete, noria_waker_will_wake,
 *   noria_budget_spent; the texts of errors and noria_version() answer what their names say.
 * - Forms: an operation whose last argument is a `noria_future **` gives a future; what is called in a loop has
 *   a poll form too, `noria_X_poll_Y(x, cx, ...)`, which allocates nothing. noria_select, which has no X, has
 *   noria_select_poll; cx stands behind what is asked for in noria_source_poll_ready,
 *   noria_tcp_poll_ready and noria_semaphore_poll_acquire.
 * - Handles: opaque pointers; made by `_new` and its like, given back by `_drop` (or `_release` where
 *   they are counted). NULL is told by -EINVAL. A handle that was dropped must not be used again;
 *   that cannot be told at sane cost. A handle may outlive its runtime: to drop it stays right, and what needs the
 *   runtime answers -NORIA_ESHUTDOWN, or -ECANCELED where it had begun.
 * - The current runtime is what a NULL runtime means. In a poll it is the task's own, noria_runtime_block_on's too;
 *   in a blocking job that of its pool; in a callback of noria_future_deliver the one that delivers. Elsewhere it is
 *   the one that the thread entered last (noria_runtime_enter); entering another inside of these goes before. A `drop`,
 *   `take` or `discard` that one of your calls runs finds what your thread has.
 * - Options: plain structs that begin with `uint32_t size` (sizeof of the struct); zero in a field means
 *   the default; NORIA_NONE says "off", NORIA_UNLIMITED "no bound", NORIA_FOREVER is the
 *   duration without end. A longer struct than the library knows is taken when its tail is
 *   zero, else -E2BIG.
 * - Time: durations and instants are uint64_t nanoseconds of the runtime's monotonic clock.
 * - Comments: each function tells `Threads:` (who may call), `Owner:` (what passes to whom), `Errors:`
 *   beyond the common ones, and with a callback `Callback:` (which thread, may it call back).
 * - Common errors, not repeated below: -EINVAL (NULL or out of range), -ENOMEM, -NORIA_EFORKED (a runtime
 *   inherited through fork), -NORIA_ENOCONTEXT (NULL runtime and no current one),
 *   -NORIA_ESHUTDOWN (the runtime is closing).
 * - Usual causes of -EINVAL: a struct whose `size` was not set, of options or to be filled; a vtable without `size` or
 *   `poll`, or with flags; a result of another size than the operation's; an address without port; no place for the
 *   future or handle that is to be made.
 * - Exceptions never cross this boundary: one that leaves a callback is caught, and the task fails. */
#ifndef NORIA_BASE_H
#define NORIA_BASE_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define NORIA_API
#else
#define NORIA_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum { NORIA_OK = 0, NORIA_READY = 0, NORIA_PENDING = 1 };

/* Errors of Noria's own, positive; functions return them negated. */
enum noria_error {
#define NORIA_X(name, value, message) NORIA_##name = value,
#include "noria/errors.def"
#undef NORIA_X
  NORIA_ERROR_FIRST_ = 4097
};

#define NORIA_NONE ((uint32_t)0xFFFFFFFEu)      /* an option's "off" */
#define NORIA_UNLIMITED ((uint32_t)0xFFFFFFFFu) /* an option's "no bound" */
#define NORIA_FOREVER UINT64_MAX                /* a duration without end, an instant that never comes */

/* Largest alignment that noria_task_new serves. */
#define NORIA_MAX_ALIGN 4096u

typedef struct noria_runtime noria_runtime;
typedef struct noria_task noria_task;
typedef struct noria_future noria_future;
typedef struct noria_strand noria_strand;
typedef struct noria_buf noria_buf;
typedef struct noria_timer noria_timer;
typedef struct noria_interval noria_interval;
typedef struct noria_source noria_source;
typedef struct noria_tcp noria_tcp;
typedef struct noria_tcp_listener noria_tcp_listener;
typedef struct noria_semaphore noria_semaphore;
typedef struct noria_notify noria_notify;
typedef struct noria_oneshot_sender noria_oneshot_sender;
typedef struct noria_oneshot_receiver noria_oneshot_receiver;

/* The name of an error ("ENODRIVER", "ECONNRESET"), or "OK", "PENDING", "UNKNOWN".
 * Takes a returned value, negative as it came.
 * Threads: any.  Owner: the text is static.  Errors: none; never NULL. */
NORIA_API const char *noria_error_name(int32_t error);

/* One sentence that tells a person what an error means.
 * Threads: any.  Owner: the text is static.  Errors: none; never NULL. */
NORIA_API const char *noria_error_message(int32_t error);

/* The version of the library that runs: major * 1000000 + minor * 1000 + patch; NORIA_VERSION is the
 * version that was compiled against.
 * Threads: any.  Owner: nothing passes.  Errors: none. */
NORIA_API int32_t noria_version(void);

/* What is alive in the process, over all runtimes: after the last reference to the last runtime is gone
 * and all handles are dropped, every field is zero. */
typedef struct noria_counts {
  uint32_t size;
  uint32_t reserved;
  int64_t tasks;
  int64_t wakers; /* clones of engine wakers that are held */
  int64_t futures;
  int64_t timers;
  int64_t sources;
  int64_t buffers;
  int64_t allocations; /* blocks taken from the allocator */
  int64_t descriptors; /* file descriptors that Noria opened or was given */
} noria_counts;

/* Fills `out` (its `size` set by the caller). Exact when nothing runs, else a snapshot in motion.
 * Threads: any.  Owner: `out` is the caller's.  Errors: -EINVAL, -E2BIG. */
NORIA_API int32_t noria_live_counts(noria_counts *out);

/* Memory from elsewhere. alloc gives `size` bytes aligned to `align` (a power of two) or NULL; free gets
 * the same numbers back. Both are called from any thread, inside the engine. */
typedef struct noria_allocator {
  uint32_t size;
  uint32_t reserved;
  void *(*alloc)(size_t size, size_t align, void *data);
  void (*free)(void *block, size_t size, size_t align, void *data);
  void *data;
} noria_allocator;

/* Sets the process's allocator, before anything else of Noria is used.
 * Threads: any, before first use.  Owner: the functions and data must live as long as the process.
 * Callback: on any thread, inside of any call, maybe under a lock of the engine: must not call Noria, wait for another
 * thread that does, or throw.
 * Errors: -EBUSY once anything was allocated, -EINVAL, -E2BIG. */
NORIA_API int32_t noria_set_allocator(const noria_allocator *allocator);

#ifdef __cplusplus
}
#endif

#endif
