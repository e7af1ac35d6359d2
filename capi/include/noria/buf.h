/* buf.h: reference-counted memory that operations in flight may hold.
 *
 * Future forms of reads and writes take a buffer instead of borrowing caller memory, so that a cancel or a drop at
 * any point leaves no one writing into memory that is gone. A slice shares its parent's bytes. */
#ifndef NORIA_BUF_H
#define NORIA_BUF_H

#include "noria/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A buffer of `capacity` bytes, length 0.
 * Threads: any.  Owner: `*out` is one reference.  Errors: the common ones. */
NORIA_API int32_t noria_buf_new(noria_runtime *rt, size_t capacity, noria_buf **out);

/* A buffer around the caller's memory, its length and capacity `size`.
 * Threads: any.  Owner: the memory is lent until `release(data, arg)` is called (it may be NULL).
 * Callback: release once, on whichever thread gives the last reference back; it must not block.
 * Errors: the common ones. */
NORIA_API int32_t noria_buf_wrap(noria_runtime *rt, void *data, size_t size, void (*release)(void *data, void *arg),
                                 void *arg, noria_buf **out);

/* One reference more.
 * Threads: any.  Owner: the caller has one more.  Errors: -EINVAL. */
NORIA_API int32_t noria_buf_retain(noria_buf *buf);

/* One reference less; the last frees (a slice holds its parent).
 * Threads: any.  Owner: takes a reference.  Errors: -EINVAL. */
NORIA_API int32_t noria_buf_release(noria_buf *buf);

/* A buffer over the bytes [offset, offset + length) of another's capacity; its length and capacity are `length`.
 * Threads: any.  Owner: `*out` is one reference and holds `buf`.  Errors: -EINVAL beyond the capacity. */
NORIA_API int32_t noria_buf_slice(noria_buf *buf, size_t offset, size_t length, noria_buf **out);

/* Where the bytes are.
 * Threads: any.  Owner: valid while the reference is held.  Errors: -EINVAL. */
NORIA_API int32_t noria_buf_data(const noria_buf *buf, void **out);

/* How many bytes are meaningful: what a read filled, what a write sends.
 * Threads: any.  Owner: nothing passes.  Errors: -EINVAL. */
NORIA_API int32_t noria_buf_length(const noria_buf *buf, size_t *out);

/* Says how many bytes are meaningful.
 * Threads: one at a time, not while an operation holds it.  Owner: nothing passes.
 * Errors: -EINVAL beyond the capacity. */
NORIA_API int32_t noria_buf_set_length(noria_buf *buf, size_t length);

/* How many bytes there is room for.
 * Threads: any.  Owner: nothing passes.  Errors: -EINVAL. */
NORIA_API int32_t noria_buf_capacity(const noria_buf *buf, size_t *out);

#ifdef __cplusplus
}
#endif

#endif
