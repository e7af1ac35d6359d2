// Frozen layouts of the ABI (A13): what a binding has written down with numbers of its own must stay as it is.
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "noria.h"

namespace {

constexpr std::size_t kWord = sizeof(void*);

// The place of a member, and that it has the size of its type there.
#define NORIA_AT(type, member, place, width) \
  static_assert(offsetof(type, member) == (place) && sizeof(type::member) == (width), #type "." #member " is frozen")
#define NORIA_SIZE(type, bytes)                                                                  \
  static_assert(sizeof(type) == (bytes) && std::is_standard_layout_v<type>, #type " is frozen"); \
  static_assert(std::is_trivially_copyable_v<type>, #type " is frozen")

NORIA_SIZE(noria_waker, 3 * kWord);
NORIA_AT(noria_waker, vtable, 0, kWord);
NORIA_AT(noria_waker, data, kWord, kWord);
NORIA_AT(noria_waker, extra, 2 * kWord, kWord);

NORIA_SIZE(noria_waker_vtable, 4 * kWord);
NORIA_AT(noria_waker_vtable, clone, 0, kWord);
NORIA_AT(noria_waker_vtable, wake, kWord, kWord);
NORIA_AT(noria_waker_vtable, wake_by_ref, 2 * kWord, kWord);
NORIA_AT(noria_waker_vtable, drop, 3 * kWord, kWord);

NORIA_SIZE(noria_cx, 32);
NORIA_AT(noria_cx, waker, 0, kWord);
NORIA_AT(noria_cx, reserved, 8, 24);

NORIA_SIZE(noria_waiter, 8 * kWord);
NORIA_AT(noria_waiter, words, 0, 8 * kWord);

NORIA_SIZE(noria_readiness, 16);
NORIA_AT(noria_readiness, events, 0, 4);
NORIA_AT(noria_readiness, reserved, 4, 4);
NORIA_AT(noria_readiness, tick, 8, 8);

NORIA_SIZE(noria_address, 32);
NORIA_AT(noria_address, family, 0, 4);
NORIA_AT(noria_address, scope_id, 4, 4);
NORIA_AT(noria_address, port, 8, 2);
NORIA_AT(noria_address, reserved, 10, 6);
NORIA_AT(noria_address, ip, 16, 16);

NORIA_SIZE(noria_iovec, sizeof(iovec));
NORIA_AT(noria_iovec, data, offsetof(iovec, iov_base), sizeof(iovec::iov_base));
NORIA_AT(noria_iovec, length, offsetof(iovec, iov_len), sizeof(iovec::iov_len));

NORIA_SIZE(noria_io_result, 2 * kWord);
NORIA_AT(noria_io_result, count, 0, kWord);
NORIA_AT(noria_io_result, buf, kWord, kWord);

NORIA_SIZE(noria_copy_result, 16);
NORIA_AT(noria_copy_result, a_to_b, 0, 8);
NORIA_AT(noria_copy_result, b_to_a, 8, 8);

NORIA_SIZE(noria_join_result, 8);
NORIA_AT(noria_join_result, kind, 0, 4);
NORIA_AT(noria_join_result, error, 4, 4);

// These two may grow at the end, and only there: they say their size.
static_assert(sizeof(noria_task_vtable) >= 8 + 4 * kWord, "noria_task_vtable does not shrink");
NORIA_AT(noria_task_vtable, size, 0, 4);
NORIA_AT(noria_task_vtable, flags, 4, 4);
NORIA_AT(noria_task_vtable, poll, 8, kWord);
NORIA_AT(noria_task_vtable, drop, 8 + kWord, kWord);
NORIA_AT(noria_task_vtable, take, 8 + 2 * kWord, kWord);
NORIA_AT(noria_task_vtable, name, 8 + 3 * kWord, kWord);

static_assert(sizeof(noria_delivery) >= 8 + 5 * kWord, "noria_delivery does not shrink");
NORIA_AT(noria_delivery, size, 0, 4);
NORIA_AT(noria_delivery, kind, 4, 4);
NORIA_AT(noria_delivery, callback, 8, kWord);
NORIA_AT(noria_delivery, arg, 8 + kWord, kWord);
NORIA_AT(noria_delivery, strand, 8 + 2 * kWord, kWord);
NORIA_AT(noria_delivery, discard, 8 + 3 * kWord, kWord);
NORIA_AT(noria_delivery, rt, 8 + 4 * kWord, kWord);

}  // namespace
