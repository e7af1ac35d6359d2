// What must not change under a binding: layouts, values and conventions of the ABI (A2, A3, A4), on 64-bit systems.
#include <criterion/criterion.h>

#include <cstddef>
#include <cstring>
#include <set>
#include <string>

#include "support/runtime_fixture.hpp"

// A4: three words, passed by pointer; four functions in this order.
static_assert(sizeof(noria_waker) == 3 * sizeof(void*));
static_assert(offsetof(noria_waker, vtable) == 0 && offsetof(noria_waker, data) == sizeof(void*));
static_assert(offsetof(noria_waker, extra) == 2 * sizeof(void*));
static_assert(sizeof(noria_waker_vtable) == 4 * sizeof(void*));
static_assert(offsetof(noria_waker_vtable, clone) == 0 && offsetof(noria_waker_vtable, wake) == sizeof(void*));
static_assert(offsetof(noria_waker_vtable, wake_by_ref) == 2 * sizeof(void*));
static_assert(offsetof(noria_waker_vtable, drop) == 3 * sizeof(void*));
static_assert(offsetof(noria_cx, waker) == 0 && sizeof(noria_cx) == sizeof(void*) + 24);
static_assert(sizeof(noria_waiter) == 8 * sizeof(void*));

// A5
static_assert(offsetof(noria_task_vtable, size) == 0 && offsetof(noria_task_vtable, flags) == 4);
static_assert(offsetof(noria_task_vtable, poll) == 8 && offsetof(noria_task_vtable, drop) == 8 + sizeof(void*));
static_assert(offsetof(noria_task_vtable, take) == 8 + 2 * sizeof(void*));
static_assert(offsetof(noria_task_vtable, name) == 8 + 3 * sizeof(void*));
static_assert(sizeof(noria_join_result) == 8 && offsetof(noria_join_result, error) == 4);

// A2: every option struct begins with its size; fields that exist keep their place.
#ifdef __LP64__
static_assert(offsetof(noria_runtime_options, size) == 0 && offsetof(noria_runtime_options, kind) == 4);
static_assert(offsetof(noria_runtime_options, pool_keep_alive_ns) == 48 && offsetof(noria_runtime_options, seed) == 56);
static_assert(offsetof(noria_runtime_options, name) == 64 && offsetof(noria_runtime_options, clock_now) == 88);
static_assert(offsetof(noria_runtime_options, on_thread_start) == 104 &&
              offsetof(noria_runtime_options, hook_data) == 136);
static_assert(sizeof(noria_runtime_options) >= 144);
static_assert(offsetof(noria_shutdown_report, tasks_dropped) == 8 && offsetof(noria_shutdown_report, names) == 40);
static_assert(offsetof(noria_counts, tasks) == 8 && sizeof(noria_counts) == 72);
static_assert(offsetof(noria_allocator, alloc) == 8 && sizeof(noria_allocator) == 32);
static_assert(offsetof(noria_delivery, callback) == 8 && offsetof(noria_delivery, rt) == 40);
#endif

// A3
static_assert(NORIA_OK == 0 && NORIA_READY == 0 && NORIA_PENDING == 1);
static_assert(NORIA_NONE == 0xFFFFFFFEu && NORIA_UNLIMITED == 0xFFFFFFFFu && NORIA_FOREVER == UINT64_MAX);
static_assert(NORIA_ENODRIVER == 4097 && NORIA_ENOCONTEXT == 4098 && NORIA_EWRONGTHREAD == 4099);
static_assert(NORIA_EWRONGKIND == 4100 && NORIA_ECONSUMED == 4101 && NORIA_EFORKED == 4102 && NORIA_ESHUTDOWN == 4103);
static_assert(NORIA_ENESTED == 4104 && NORIA_ECLOSED == 4105 && NORIA_ETHROWN == 4106 && NORIA_EBADSTATE == 4107);
static_assert(NORIA_ERESOLVE == 4108);
static_assert(NORIA_RUNTIME_MULTI_THREAD == 1 && NORIA_RUNTIME_CURRENT_THREAD == 2 && NORIA_REACTOR_EPOLL == 1);
static_assert(NORIA_JOIN_DONE == 0 && NORIA_JOIN_FAILED == 1 && NORIA_JOIN_ABORTED == 2);

Test(Abi, A3_every_error_has_a_name_and_a_message_of_its_own) {
  std::set<std::string> names, messages;
  int count = 0;
#define NORIA_X(name, value, message)                       \
  cr_assert_gt(value, 4096);                                \
  cr_assert_str_eq(noria_error_name(-(value)), #name);      \
  cr_assert_str_eq(noria_error_message(-(value)), message); \
  names.insert(#name), messages.insert(message), ++count;
#include "noria/errors.def"
#undef NORIA_X
  cr_assert_eq(names.size(), static_cast<std::size_t>(count));
  cr_assert_eq(messages.size(), static_cast<std::size_t>(count));
  cr_assert_str_eq(noria_error_name(-ECONNRESET), "ECONNRESET");
  cr_assert_str_eq(noria_error_name(NORIA_OK), "OK");
  cr_assert_str_eq(noria_error_name(NORIA_PENDING), "PENDING");
  cr_assert_str_eq(noria_error_name(77777), "UNKNOWN");
  for (std::int32_t error :
       {std::int32_t{INT32_MIN}, std::int32_t{INT32_MAX}, std::int32_t{-4096}, std::int32_t{-5000}}) {
    cr_assert_str_eq(noria_error_name(error), "UNKNOWN");
    cr_assert_not_null(noria_error_message(error));
  }
}

Test(Abi, A2_structs_that_are_filled_follow_the_size_rule) {
  struct {
    noria_counts known;
    std::uint64_t tail;
  } longer{};
  longer.known.size = sizeof longer;
  NORIA_OK_CALL(noria_live_counts(&longer.known));
  cr_assert_eq(longer.known.size, sizeof longer);
  longer.tail = 7;
  NORIA_STATUS(noria_live_counts(&longer.known), -E2BIG);
  noria_counts shorter;
  std::memset(&shorter, 0x55, sizeof shorter);
  shorter.size = 16;
  NORIA_OK_CALL(noria_live_counts(&shorter));
  cr_assert_eq(shorter.tasks, 0);
  cr_assert_eq(shorter.wakers, 0x5555555555555555, "nothing behind the caller's size is written");
  shorter.size = 0;
  NORIA_STATUS(noria_live_counts(&shorter), -EINVAL);
}

Test(Abi, A13_the_version_is_the_one_compiled_against) { cr_assert_eq(noria_version(), NORIA_VERSION); }

Test(Abi, A4_waker_functions_check_what_they_are_given) {
  noria_waker empty{}, out{};
  NORIA_STATUS(noria_waker_clone(nullptr, &out), -EINVAL);
  NORIA_STATUS(noria_waker_clone(&empty, &out), -EINVAL);
  NORIA_STATUS(noria_waker_wake(&empty), -EINVAL);
  NORIA_STATUS(noria_waker_wake_by_ref(nullptr), -EINVAL);
  NORIA_STATUS(noria_waker_drop(&empty), -EINVAL);
  noria::test::ForeignWaker foreign, other;
  NORIA_STATUS(noria_waker_clone(foreign.waker(), nullptr), -EINVAL);
  NORIA_STATUS(noria_waker_will_wake(foreign.waker(), nullptr), -EINVAL);
  NORIA_STATUS(noria_waker_will_wake(foreign.waker(), other.waker()), 0);
  NORIA_OK_CALL(noria_waker_clone(foreign.waker(), &out));
  NORIA_STATUS(noria_waker_will_wake(foreign.waker(), &out), 1);
  NORIA_OK_CALL(noria_waker_wake_by_ref(&out));
  NORIA_OK_CALL(noria_waker_wake(&out));
  cr_assert(foreign.wakes() == 2 && foreign.alive() == 0 && foreign.clones() == 1);
  NORIA_STATUS(noria_yield(foreign.cx()), NORIA_PENDING);
  cr_assert_eq(foreign.wakes(), 3);
}
