// A current-thread runtime in a foreign loop: the descriptor that says when to turn it, and its owner between turns (A11).
#include <criterion/criterion.h>
#include <poll.h>

#include <thread>

#include <noria/noria.h>

namespace {

struct Embedded {
  noria_runtime* rt = nullptr;
  int32_t fd = -1;
  int polls = 0;
  std::thread::id polled_on;

  Embedded() {
    noria_runtime_options options{};
    options.size = sizeof options;
    options.kind = NORIA_RUNTIME_CURRENT_THREAD;
    cr_assert_eq(noria_runtime_new(&options, &rt), NORIA_OK);
    cr_assert_eq(noria_runtime_fd(rt, &fd), NORIA_OK);
    turn();
  }
  ~Embedded() { cr_assert_eq(noria_runtime_free(rt), NORIA_OK); }
  void turn() { cr_assert_eq(noria_runtime_turn(rt, 0, nullptr), NORIA_OK); }
  bool wants_a_turn(int wait_ms) const {
    pollfd watched{fd, POLLIN, 0};
    return poll(&watched, 1, wait_ms) == 1;
  }
};

int32_t count_poll(void* state, const noria_cx*) {
  auto* self = static_cast<Embedded*>(state);
  ++self->polls;
  self->polled_on = std::this_thread::get_id();
  return NORIA_READY;
}
const noria_task_vtable kCount = {sizeof(noria_task_vtable), 0, count_poll, nullptr, nullptr, "count"};

}  // namespace

Test(Embed, Ring_from_another_thread_is_heard_once_without_sources) {
  Embedded loop;
  cr_assert_not(loop.wants_a_turn(0));
  for (int i = 1; i <= 3; ++i) {
    int32_t status = 1;
    std::thread([&] { status = noria_spawn(loop.rt, &kCount, &loop, nullptr); }).join();
    cr_assert_eq(status, NORIA_OK);
    cr_assert(loop.wants_a_turn(10000));
    loop.turn();
    cr_assert_eq(loop.polls, i);
    cr_assert_not(loop.wants_a_turn(0), "the descriptor stays readable with nothing to do");
  }
}

Test(Embed, Owner_may_spawn_local_tasks_between_turns) {
  Embedded loop;
  cr_assert_eq(noria_spawn_local(loop.rt, &kCount, &loop, nullptr), NORIA_OK);
  uint64_t timeout_ns = 1;
  cr_assert_eq(noria_runtime_next_timeout(loop.rt, &timeout_ns), NORIA_OK);
  cr_assert_eq(timeout_ns, 0);
  cr_assert(loop.wants_a_turn(10000));
  loop.turn();
  cr_assert_eq(loop.polls, 1);
  cr_assert(loop.polled_on == std::this_thread::get_id());
  int32_t status = 1;
  std::thread([&] { status = noria_spawn_local(loop.rt, &kCount, &loop, nullptr); }).join();
  cr_assert_eq(status, -NORIA_EWRONGTHREAD);
}

// The foreign loop sleeps for what next_timeout said: who arms an earlier deadline elsewhere rings it, and a later one does not.
Test(Embed, Earlier_deadline_armed_from_another_thread_rings_the_descriptor) {
  Embedded loop;
  constexpr uint64_t kMinute = 60u * UINT64_C(1000000000), kHour = 60 * kMinute;
  noria_future* sleeps[3];
  int count = 0;
  auto arm_elsewhere = [&](uint64_t duration_ns) {
    std::thread([&] { cr_assert_eq(noria_sleep(loop.rt, duration_ns, &sleeps[count++]), NORIA_OK); }).join();
    return loop.wants_a_turn(0);
  };
  uint64_t timeout_ns = 0;
  cr_assert_eq(noria_runtime_next_timeout(loop.rt, &timeout_ns), NORIA_OK);
  cr_assert_eq(timeout_ns, NORIA_FOREVER);
  cr_assert(arm_elsewhere(2 * kHour), "the first deadline");
  loop.turn();
  cr_assert_not(loop.wants_a_turn(0));
  cr_assert_eq(noria_runtime_next_timeout(loop.rt, &timeout_ns), NORIA_OK);
  cr_assert(timeout_ns > kMinute && timeout_ns < 3 * kHour, "%llu ns", static_cast<unsigned long long>(timeout_ns));
  cr_assert(arm_elsewhere(kMinute), "an earlier one");
  loop.turn();
  cr_assert_eq(noria_runtime_next_timeout(loop.rt, &timeout_ns), NORIA_OK);
  cr_assert(timeout_ns < 2 * kMinute);
  cr_assert_not(arm_elsewhere(3 * kHour), "a later one changes nothing");
  for (noria_future* sleep : sleeps) cr_assert_eq(noria_future_drop(sleep), NORIA_OK);
}
