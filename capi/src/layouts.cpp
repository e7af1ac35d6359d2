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

// The rest may grow at the end, and only there: each says its size.
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

static_assert(sizeof(noria_runtime_options) >= 72 + 9 * kWord, "noria_runtime_options does not shrink");
NORIA_AT(noria_runtime_options, size, 0, 4);
NORIA_AT(noria_runtime_options, kind, 4, 4);
NORIA_AT(noria_runtime_options, workers, 8, 4);
NORIA_AT(noria_runtime_options, max_workers, 12, 4);
NORIA_AT(noria_runtime_options, enable_io, 16, 4);
NORIA_AT(noria_runtime_options, enable_time, 20, 4);
NORIA_AT(noria_runtime_options, reactor, 24, 4);
NORIA_AT(noria_runtime_options, pool_user_threads, 28, 4);
NORIA_AT(noria_runtime_options, pool_file_threads, 32, 4);
NORIA_AT(noria_runtime_options, pool_name_threads, 36, 4);
NORIA_AT(noria_runtime_options, pool_queue_limit, 40, 4);
NORIA_AT(noria_runtime_options, inject_interval, 44, 4);
NORIA_AT(noria_runtime_options, pool_keep_alive_ns, 48, 8);
NORIA_AT(noria_runtime_options, seed, 56, 8);
NORIA_AT(noria_runtime_options, name, 64, kWord);
NORIA_AT(noria_runtime_options, affinity, 64 + kWord, kWord);
NORIA_AT(noria_runtime_options, affinity_count, 64 + 2 * kWord, 4);
NORIA_AT(noria_runtime_options, clock_paused, 68 + 2 * kWord, 4);
NORIA_AT(noria_runtime_options, clock_now, 72 + 2 * kWord, kWord);
NORIA_AT(noria_runtime_options, clock_data, 72 + 3 * kWord, kWord);
NORIA_AT(noria_runtime_options, on_thread_start, 72 + 4 * kWord, kWord);
NORIA_AT(noria_runtime_options, on_thread_stop, 72 + 5 * kWord, kWord);
NORIA_AT(noria_runtime_options, on_worker_park, 72 + 6 * kWord, kWord);
NORIA_AT(noria_runtime_options, on_worker_unpark, 72 + 7 * kWord, kWord);
NORIA_AT(noria_runtime_options, hook_data, 72 + 8 * kWord, kWord);

static_assert(sizeof(noria_shutdown_report) >= 552, "noria_shutdown_report does not shrink");
NORIA_AT(noria_shutdown_report, size, 0, 4);
NORIA_AT(noria_shutdown_report, timed_out, 4, 4);
NORIA_AT(noria_shutdown_report, tasks_dropped, 8, 8);
NORIA_AT(noria_shutdown_report, futures_cancelled, 16, 8);
NORIA_AT(noria_shutdown_report, jobs_dropped, 24, 8);
NORIA_AT(noria_shutdown_report, polls_running, 32, 4);
NORIA_AT(noria_shutdown_report, jobs_running, 36, 4);
NORIA_AT(noria_shutdown_report, names, 40, 512);

static_assert(sizeof(noria_runtime_info_data) >= 40, "noria_runtime_info_data does not shrink");
NORIA_AT(noria_runtime_info_data, size, 0, 4);
NORIA_AT(noria_runtime_info_data, kind, 4, 4);
NORIA_AT(noria_runtime_info_data, workers, 8, 4);
NORIA_AT(noria_runtime_info_data, max_workers, 12, 4);
NORIA_AT(noria_runtime_info_data, reactor, 16, 4);
NORIA_AT(noria_runtime_info_data, io_enabled, 20, 4);
NORIA_AT(noria_runtime_info_data, time_enabled, 24, 4);
NORIA_AT(noria_runtime_info_data, clock_paused, 28, 4);
NORIA_AT(noria_runtime_info_data, seed, 32, 8);

static_assert(sizeof(noria_worker_metrics) >= 80, "noria_worker_metrics does not shrink");
NORIA_AT(noria_worker_metrics, size, 0, 4);
NORIA_AT(noria_worker_metrics, worker, 4, 4);
NORIA_AT(noria_worker_metrics, polls, 8, 8);
NORIA_AT(noria_worker_metrics, steals, 16, 8);
NORIA_AT(noria_worker_metrics, overflow, 24, 8);
NORIA_AT(noria_worker_metrics, parks, 32, 8);
NORIA_AT(noria_worker_metrics, wakes_sent, 40, 8);
NORIA_AT(noria_worker_metrics, busy_ns, 48, 8);
NORIA_AT(noria_worker_metrics, queue_depth, 56, 8);
NORIA_AT(noria_worker_metrics, lifo_polls, 64, 8);
NORIA_AT(noria_worker_metrics, sentry_acts, 72, 8);

static_assert(sizeof(noria_metrics) >= 368, "noria_metrics does not shrink");
NORIA_AT(noria_metrics, size, 0, 4);
NORIA_AT(noria_metrics, workers, 4, 4);
NORIA_AT(noria_metrics, live_tasks, 8, 8);
NORIA_AT(noria_metrics, inject_depth, 16, 8);
NORIA_AT(noria_metrics, pool_threads, 24, 8);
NORIA_AT(noria_metrics, pool_idle, 32, 8);
NORIA_AT(noria_metrics, pool_queue, 40, 8);
NORIA_AT(noria_metrics, timers, 48, 8);
NORIA_AT(noria_metrics, sources, 56, 8);
NORIA_AT(noria_metrics, polls, 64, 8);
NORIA_AT(noria_metrics, steals, 72, 8);
NORIA_AT(noria_metrics, overflow, 80, 8);
NORIA_AT(noria_metrics, parks, 88, 8);
NORIA_AT(noria_metrics, wakes_sent, 96, 8);
NORIA_AT(noria_metrics, busy_ns, 104, 8);
NORIA_AT(noria_metrics, poll_time_histogram, 112, 256);

static_assert(sizeof(noria_counts) >= 72, "noria_counts does not shrink");
NORIA_AT(noria_counts, size, 0, 4);
NORIA_AT(noria_counts, reserved, 4, 4);
NORIA_AT(noria_counts, tasks, 8, 8);
NORIA_AT(noria_counts, wakers, 16, 8);
NORIA_AT(noria_counts, futures, 24, 8);
NORIA_AT(noria_counts, timers, 32, 8);
NORIA_AT(noria_counts, sources, 40, 8);
NORIA_AT(noria_counts, buffers, 48, 8);
NORIA_AT(noria_counts, allocations, 56, 8);
NORIA_AT(noria_counts, descriptors, 64, 8);

static_assert(sizeof(noria_allocator) >= 8 + 3 * kWord, "noria_allocator does not shrink");
NORIA_AT(noria_allocator, size, 0, 4);
NORIA_AT(noria_allocator, reserved, 4, 4);
NORIA_AT(noria_allocator, alloc, 8, kWord);
NORIA_AT(noria_allocator, free, 8 + kWord, kWord);
NORIA_AT(noria_allocator, data, 8 + 2 * kWord, kWord);

static_assert(sizeof(noria_tcp_listen_options) >= 16, "noria_tcp_listen_options does not shrink");
NORIA_AT(noria_tcp_listen_options, size, 0, 4);
NORIA_AT(noria_tcp_listen_options, backlog, 4, 4);
NORIA_AT(noria_tcp_listen_options, reuse_port, 8, 4);
NORIA_AT(noria_tcp_listen_options, ipv6_only, 12, 4);

static_assert(sizeof(noria_tcp_connect_options) >= 16 + kWord, "noria_tcp_connect_options does not shrink");
NORIA_AT(noria_tcp_connect_options, size, 0, 4);
NORIA_AT(noria_tcp_connect_options, delay, 4, 4);
NORIA_AT(noria_tcp_connect_options, timeout_ns, 8, 8);
NORIA_AT(noria_tcp_connect_options, local, 16, kWord);

static_assert(sizeof(noria_copy_options) >= 16, "noria_copy_options does not shrink");
NORIA_AT(noria_copy_options, size, 0, 4);
NORIA_AT(noria_copy_options, reserved, 4, 4);
NORIA_AT(noria_copy_options, idle_timeout_ns, 8, 8);

}  // namespace
