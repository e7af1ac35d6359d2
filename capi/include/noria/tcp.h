/* tcp.h: TCP streams and listeners, and copying between streams without passing user space.
 *
 * An address is the text HOST:PORT, the port a number: "127.0.0.1:80", "[::1]:80", "name:80" (names are looked up on
 * the blocking pool). All interfaces are "0.0.0.0:PORT" or "[::]:PORT".
 * A stream may be used by two tasks at once, one reading and one writing. Poll forms borrow caller memory only
 * during the call; future forms hold a noria_buf. A read of zero bytes is the peer's end of stream.
 * Reads, writes and readiness have both forms. Peeks and reads and writes of several pieces are poll forms only: a
 * future could not borrow the pieces, and several operations on noria_bufs, which queue up in order, do the same. */
#ifndef NORIA_TCP_H
#define NORIA_TCP_H

#include "noria/base.h"
#include "noria/waker.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct noria_address {
  uint32_t family; /* AF_INET or AF_INET6 */
  uint32_t scope_id;
  uint16_t port; /* host order */
  uint16_t reserved[3];
  uint8_t ip[16]; /* network order; IPv4 uses the first four */
} noria_address;

/* Layout of struct iovec. */
typedef struct noria_iovec {
  void *data;
  size_t length;
} noria_iovec;

/* "1.2.3.4:80" or "[::1]:80", cut to `size`.
 * Threads: any.  Owner: nothing passes.  Errors: -ENOSPC if it was cut, -EAFNOSUPPORT. */
NORIA_API int32_t noria_address_format(const noria_address *address, char *out, size_t size);

/* The numeric forms only; no look-up.
 * Threads: any.  Owner: nothing passes.  Errors: -EINVAL. */
NORIA_API int32_t noria_address_parse(const char *text, noria_address *out);

typedef struct noria_tcp_listen_options {
  uint32_t size;
  uint32_t backlog;    /* 0: 1024 */
  uint32_t reuse_port; /* 1: SO_REUSEPORT */
  uint32_t ipv6_only;  /* 1: IPV6_V6ONLY */
} noria_tcp_listen_options;

typedef struct noria_tcp_connect_options {
  uint32_t size;
  uint32_t delay;      /* 1: leave Nagle's algorithm on; 0: TCP_NODELAY is set */
  uint64_t timeout_ns; /* for the whole of look-up and connect; 0: the system's */
  const char *local;   /* bind to this numeric address first; NULL: any */
} noria_tcp_connect_options;

/* Binds and listens (SO_REUSEADDR is set). The result of the future is a noria_tcp_listener*. A numeric address
 * is ready when this returns.
 * Threads: any.  Owner: `*out` is the caller's; the text is copied.
 * Errors: -NORIA_ENODRIVER, -EINVAL for what is no address; in the result -EADDRINUSE, -NORIA_ERESOLVE, ... */
NORIA_API int32_t noria_tcp_listen(noria_runtime *rt, const char *address, const noria_tcp_listen_options *options,
                                   noria_future **out);

/* A listener around a listening socket of the caller, which becomes non-blocking.
 * Threads: any.  Owner: takes the descriptor (on an error not).  Errors: -NORIA_ENODRIVER, -ENOTSOCK, -EINVAL. */
NORIA_API int32_t noria_tcp_listener_from_fd(noria_runtime *rt, int32_t fd, noria_tcp_listener **out);

/* READY with a connection. Out of descriptors or memory (EMFILE, ENFILE, ENOBUFS, ENOMEM) the listener rests, with a
 * delay that grows from 10 ms to 1 s, stays PENDING without spinning, and goes on by itself; a connection that was reset
 * before it was accepted is passed over. TCP_NODELAY is set on what it accepts.
 * Threads: one at a time.  Owner: `*out` is the caller's.  Errors: -EBADF after close. */
NORIA_API int32_t noria_tcp_poll_accept(noria_tcp_listener *listener, const noria_cx *cx, noria_tcp **out);

/* A future of the same; its result is a noria_tcp*. Several may wait. One that is dropped loses no connection.
 * Threads: any.  Owner: `*out` is the caller's.  Errors: -EBADF after close. */
NORIA_API int32_t noria_tcp_accept(noria_tcp_listener *listener, noria_future **out);

/* The address it listens on.
 * Threads: any.  Owner: nothing passes.  Errors: -EBADF after close. */
NORIA_API int32_t noria_tcp_listener_address(const noria_tcp_listener *listener, noria_address *out);

/* How often the listener had to rest for want of descriptors or memory.
 * Threads: any.  Owner: nothing passes.  Errors: -EINVAL. */
NORIA_API int32_t noria_tcp_listener_rests(const noria_tcp_listener *listener, uint64_t *out);

/* Stops listening; who waits gets -EBADF. The handle stays.
 * Threads: any.  Owner: nothing passes.  Errors: -EINVAL. */
NORIA_API int32_t noria_tcp_listener_close(noria_tcp_listener *listener);

/* Closes if need be and gives it back.
 * Threads: any.  Owner: takes the listener.  Errors: -EINVAL. */
NORIA_API int32_t noria_tcp_listener_drop(noria_tcp_listener *listener);

/* Connects. The result of the future is a noria_tcp*. Addresses of a name are tried in turn.
 * Threads: any.  Owner: `*out` is the caller's; the text is copied.
 * Errors: -NORIA_ENODRIVER, -EINVAL; in the result -ECONNREFUSED, -ETIMEDOUT, -NORIA_ERESOLVE, ... */
NORIA_API int32_t noria_tcp_connect(noria_runtime *rt, const char *address, const noria_tcp_connect_options *options,
                                    noria_future **out);

/* A stream around a connected socket (TCP or Unix) of the caller, which becomes non-blocking.
 * Threads: any.  Owner: takes the descriptor (on an error not).
 * Errors: -NORIA_ENODRIVER, -EBADF, -ENOTSOCK, -EINVAL for one that listens or is no stream, -ENOTCONN. */
NORIA_API int32_t noria_tcp_from_fd(noria_runtime *rt, int32_t fd, noria_tcp **out);

/* Reads up to `size` bytes; `*count` is how many, 0 at the end of stream.
 * Threads: one reader at a time.  Owner: `data` is borrowed during the call.  Errors: -ECONNRESET, -EBADF after close, ... */
NORIA_API int32_t noria_tcp_poll_read(noria_tcp *tcp, const noria_cx *cx, void *data, size_t size, size_t *count);

/* Reads into several pieces.
 * Threads: one reader at a time.  Owner: as noria_tcp_poll_read.  Errors: as noria_tcp_poll_read. */
NORIA_API int32_t noria_tcp_poll_readv(noria_tcp *tcp, const noria_cx *cx, const noria_iovec *pieces,
                                       size_t pieces_count, size_t *count);

/* Looks at what can be read without taking it.
 * Threads: one reader at a time.  Owner: as noria_tcp_poll_read.  Errors: as noria_tcp_poll_read. */
NORIA_API int32_t noria_tcp_poll_peek(noria_tcp *tcp, const noria_cx *cx, void *data, size_t size, size_t *count);

/* Writes up to `size` bytes; `*count` is how many were accepted. Never raises SIGPIPE.
 * Threads: one writer at a time.  Owner: `data` is borrowed during the call.  Errors: -EPIPE, -ECONNRESET, -EBADF after close, ... */
NORIA_API int32_t noria_tcp_poll_write(noria_tcp *tcp, const noria_cx *cx, const void *data, size_t size,
                                       size_t *count);

/* Writes from several pieces.
 * Threads: one writer at a time.  Owner: as noria_tcp_poll_write.  Errors: as noria_tcp_poll_write. */
NORIA_API int32_t noria_tcp_poll_writev(noria_tcp *tcp, const noria_cx *cx, const noria_iovec *pieces,
                                        size_t pieces_count, size_t *count);

/* Reads or writes what can be without waiting; outside of tasks too, and without budget. -EAGAIN: nothing now, or
 * a dropped read, write or copy has yet to end; noria_tcp_poll_ready waits for it.
 * Threads: as the poll forms.  Owner: as the poll forms.  Errors: -EAGAIN, as the poll forms. */
NORIA_API int32_t noria_tcp_try_read(noria_tcp *tcp, void *data, size_t size, size_t *count);

/* See noria_tcp_try_read.
 * Threads: as the poll forms.  Owner: as the poll forms.  Errors: -EAGAIN, as the poll forms. */
NORIA_API int32_t noria_tcp_try_write(noria_tcp *tcp, const void *data, size_t size, size_t *count);

/* READY when reading (NORIA_READABLE) or writing (NORIA_WRITABLE) is worth a try, or urgent data is there
 * (NORIA_PRIORITY); of several bits, when one of them is so.
 * Threads: one at a time for each direction.  Owner: nothing passes.  Errors: -EBADF after close. */
NORIA_API int32_t noria_tcp_poll_ready(noria_tcp *tcp, uint32_t interest, const noria_cx *cx);

/* A future of the same, for one of the two. It queues up behind the reads or the writes in future form. No result.
 * Threads: any; several queue up.  Owner: `*out` is the caller's.  Errors: -EINVAL for both at once, -EBADF after close. */
NORIA_API int32_t noria_tcp_ready(noria_tcp *tcp, uint32_t interest, noria_future **out);

/* Reads once into the capacity of `buf` and sets its length, 0 at the end of stream. What noria_tcp_read does, without
 * allocating.
 * Threads: one reader at a time; nobody else uses `buf`.  Owner: `buf` is borrowed during the call.
 * Errors: as noria_tcp_poll_read, -EINVAL for a buffer without room. */
NORIA_API int32_t noria_tcp_poll_read_buf(noria_tcp *tcp, const noria_cx *cx, noria_buf *buf);

/* Writes all of the length of `buf`. `*count` is how many of its bytes were accepted so far: set it to 0 before the first
 * call, and pass it again after PENDING. What noria_tcp_write does, without allocating.
 * Threads: one writer at a time.  Owner: `buf` is borrowed during the call.
 * Errors: as noria_tcp_poll_write, -EINVAL for a count beyond the length. */
NORIA_API int32_t noria_tcp_poll_write_buf(noria_tcp *tcp, const noria_cx *cx, noria_buf *buf, size_t *count);

/* The result of noria_tcp_read and noria_tcp_write. The buffer comes back whatever happened. */
typedef struct noria_io_result {
  size_t count;
  noria_buf *buf;
} noria_io_result;

/* Reads once into the capacity of `buf` and sets its length. The result is a noria_io_result. Bytes that came for a read that was
 * dropped are kept for the next read of the stream, which waits for them where they are still on their way.
 * Threads: any; several queue up.  Owner: takes a reference of `buf` (on an error not), the result gives it back.
 * Errors: -EINVAL for a buffer without room, -EBADF after close; in the result, as noria_tcp_poll_read. */
NORIA_API int32_t noria_tcp_read(noria_tcp *tcp, noria_buf *buf, noria_future **out);

/* Writes all of the length of `buf`. The result is a noria_io_result, its count true on failure and cancel too.
 * Threads: any; several queue up.  Owner: takes a reference of `buf` (on an error not), the result gives it back.
 * Errors: -EBADF after close; in the result, as noria_tcp_poll_write. */
NORIA_API int32_t noria_tcp_write(noria_tcp *tcp, noria_buf *buf, noria_future **out);

enum noria_shutdown_how {
  NORIA_SHUTDOWN_READ = 1,
  NORIA_SHUTDOWN_WRITE = 2, /* half-close: the peer reads its end of stream, this side reads on */
  NORIA_SHUTDOWN_BOTH = 3,
};

/* Shuts one or both sides down.
 * Threads: any.  Owner: nothing passes.  Errors: -ENOTCONN, -EBADF after close. */
NORIA_API int32_t noria_tcp_shutdown(noria_tcp *tcp, uint32_t how);

enum noria_tcp_option {
  NORIA_TCP_NODELAY = 1,
  NORIA_TCP_KEEPALIVE = 2,    /* 0 off, else idle seconds before the first probe */
  NORIA_TCP_LINGER = 3,       /* -1 off, else seconds; 0 makes close send a reset */
  NORIA_TCP_RECV_BUFFER = 4,  /* bytes */
  NORIA_TCP_SEND_BUFFER = 5,  /* bytes */
  NORIA_TCP_USER_TIMEOUT = 6, /* ms that sent data may stay unacknowledged */
  NORIA_TCP_ERROR = 7,        /* get only: takes the pending error */
  NORIA_TCP_QUICKACK = 8,
};

/* Sets an option.
 * Threads: any.  Owner: nothing passes.  Errors: -EINVAL for an unknown one, -EBADF after close, the system's. */
NORIA_API int32_t noria_tcp_set_option(noria_tcp *tcp, uint32_t option, int32_t value);

/* Reads an option.
 * Threads: any.  Owner: nothing passes.  Errors: as noria_tcp_set_option. */
NORIA_API int32_t noria_tcp_get_option(const noria_tcp *tcp, uint32_t option, int32_t *value);

/* This side's address.
 * Threads: any.  Owner: nothing passes.  Errors: -EBADF after close, -EAFNOSUPPORT for a Unix socket. */
NORIA_API int32_t noria_tcp_local_address(const noria_tcp *tcp, noria_address *out);

/* The peer's address.
 * Threads: any.  Owner: nothing passes.  Errors: as noria_tcp_local_address, -ENOTCONN. */
NORIA_API int32_t noria_tcp_peer_address(const noria_tcp *tcp, noria_address *out);

/* Takes the descriptor out, deregistered, and gives the handle back.
 * Threads: any, no operation pending.  Owner: takes the handle (on an error not); the descriptor is the caller's.
 * Errors: -EBUSY while operations, copies or kept bytes are pending, -EBADF after close. */
NORIA_API int32_t noria_tcp_into_fd(noria_tcp *tcp, int32_t *fd);

/* Closes; who waits gets -EBADF, later calls too. The handle stays.
 * Threads: any.  Owner: nothing passes.  Errors: -EINVAL. */
NORIA_API int32_t noria_tcp_close(noria_tcp *tcp);

/* Closes if need be and gives it back. Never blocks.
 * Threads: any.  Owner: takes the handle.  Errors: -EINVAL. */
NORIA_API int32_t noria_tcp_drop(noria_tcp *tcp);

typedef struct noria_copy_options {
  uint32_t size;
  uint32_t reserved;
  uint64_t idle_timeout_ns; /* ends with -ETIMEDOUT when no byte moved (either way) for so long; 0: never */
} noria_copy_options;

typedef struct noria_copy_result {
  uint64_t a_to_b; /* bytes delivered to b; of noria_copy: all */
  uint64_t b_to_a; /* of noria_copy: 0 */
} noria_copy_result;

/* Moves bytes from one stream to the other until its end of stream, through splice(2) where much comes at once. The result is a
 * noria_copy_result, true on failure and cancel too. Bytes that a copy has taken and not delivered go back to `from`; what
 * is read or written after it was dropped waits for its end.
 * Threads: any.  Owner: the streams are borrowed until the future is ready or dropped; `*out` is the caller's.
 * Errors: in the result, the reads' and writes'. */
NORIA_API int32_t noria_copy(noria_tcp *from, noria_tcp *to, const noria_copy_options *options, noria_future **out);

/* Both ways at once, until both have ended; an end of stream is passed on as a half-close. An error on one way ends both.
 * Threads: any.  Owner: as noria_copy.  Errors: as noria_copy. */
NORIA_API int32_t noria_copy_bidirectional(noria_tcp *a, noria_tcp *b, const noria_copy_options *options,
                                           noria_future **out);

/* What a copy in flight has done so far.
 * Threads: any, while the owner keeps the future.  Owner: nothing passes.  Errors: -EINVAL if it is no copy. */
NORIA_API int32_t noria_copy_progress(const noria_future *copy, noria_copy_result *out);

#ifdef __cplusplus
}
#endif

#endif
