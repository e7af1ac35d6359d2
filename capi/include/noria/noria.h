/* noria.h: the whole of Noria. Read base.h first: it states the conventions.
 *
 * - base.h: conventions, errors, live counts
 * - task.h: tasks, strands, blocking jobs
 * - runtime.h: runtimes
 * - waker.h: wakers, contexts, budget
 * - future.h: futures, select, join_all, time-out, delivery
 * - time.h: sleeps, timers, intervals, the clock
 * - tcp.h: streams, listeners, copying
 * - source.h: readiness of descriptors
 * - buf.h: buffers
 * - sync.h: semaphore, notify, oneshot
 * - async.h (included by itself): straight-line C on top of poll functions */
#ifndef NORIA_H
#define NORIA_H

#define NORIA_VERSION_MAJOR 0
#define NORIA_VERSION_MINOR 1
#define NORIA_VERSION_PATCH 0
#define NORIA_VERSION (NORIA_VERSION_MAJOR * 1000000 + NORIA_VERSION_MINOR * 1000 + NORIA_VERSION_PATCH)

#include "noria/base.h"
#include "noria/buf.h"
#include "noria/future.h"
#include "noria/runtime.h"
#include "noria/source.h"
#include "noria/sync.h"
#include "noria/task.h"
#include "noria/tcp.h"
#include "noria/time.h"
#include "noria/waker.h"

#endif
