// A runtime that was inherited through fork: every call on its handles tells so, and touches nothing (A15, P9).
#include <criterion/criterion.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "support/pending.hpp"

using namespace noria::test;

namespace {

struct Handles {
  noria_runtime* rt = nullptr;
  noria_semaphore* semaphore = nullptr;
  noria_notify* notify = nullptr;
  noria_oneshot_sender* tx = nullptr;
  noria_oneshot_receiver* rx = nullptr;
  noria_timer* timer = nullptr;
  noria_interval* interval = nullptr;
  noria_buf* buf = nullptr;
  noria_future* future = nullptr;
  noria_waiter queued{};

  explicit Handles(noria_runtime* of, const noria_cx* cx) : rt(of) {
    NORIA_OK_CALL(noria_semaphore_new(rt, 0, &semaphore));
    NORIA_OK_CALL(noria_notify_new(rt, &notify));
    NORIA_OK_CALL(noria_oneshot_new(rt, nullptr, &tx, &rx));
    NORIA_OK_CALL(noria_timer_new(rt, &timer));
    NORIA_OK_CALL(noria_interval_new(rt, 0, 1, NORIA_MISSED_SKIP, &interval));
    NORIA_OK_CALL(noria_buf_new(rt, 10, &buf));
    NORIA_OK_CALL(noria_semaphore_acquire(semaphore, 1, &future));
    NORIA_STATUS(noria_semaphore_poll_acquire(semaphore, 1, cx, &queued), NORIA_PENDING);
  }
  void drop() {
    NORIA_OK_CALL(noria_waiter_drop(&queued));
    NORIA_OK_CALL(noria_future_drop(future));
    NORIA_OK_CALL(noria_buf_release(buf));
    NORIA_OK_CALL(noria_interval_drop(interval));
    NORIA_OK_CALL(noria_timer_drop(timer));
    NORIA_OK_CALL(noria_oneshot_sender_drop(tx));
    NORIA_OK_CALL(noria_oneshot_receiver_drop(rx));
    NORIA_OK_CALL(noria_notify_drop(notify));
    NORIA_OK_CALL(noria_semaphore_drop(semaphore));
  }
};

int32_t never(void*) { return 0; }

void call_locks(Handles& h, const noria_cx* cx) {
  constexpr int32_t kForked = -NORIA_EFORKED;
  noria_waiter waiter{};
  noria_future* future = nullptr;
  std::uint64_t count = 0;
  void* value = nullptr;
  NORIA_STATUS(noria_semaphore_new(h.rt, 1, &h.semaphore), kForked);
  NORIA_STATUS(noria_semaphore_try_acquire(h.semaphore, 1), kForked);
  NORIA_STATUS(noria_semaphore_poll_acquire(h.semaphore, 1, cx, &waiter), kForked);
  NORIA_STATUS(noria_semaphore_acquire(h.semaphore, 1, &future), kForked);
  NORIA_STATUS(noria_semaphore_release(h.semaphore, 1), kForked);
  NORIA_STATUS(noria_semaphore_available(h.semaphore, &count), kForked);
  NORIA_STATUS(noria_semaphore_close(h.semaphore), kForked);
  NORIA_STATUS(noria_semaphore_drop(h.semaphore), kForked);
  NORIA_STATUS(noria_waiter_drop(&h.queued), kForked);
  NORIA_STATUS(noria_notify_new(h.rt, &h.notify), kForked);
  NORIA_STATUS(noria_notify_poll_wait(h.notify, cx, &waiter), kForked);
  NORIA_STATUS(noria_notify_wait(h.notify, &future), kForked);
  NORIA_STATUS(noria_notify_one(h.notify), kForked);
  NORIA_STATUS(noria_notify_all(h.notify), kForked);
  NORIA_STATUS(noria_notify_drop(h.notify), kForked);
  NORIA_STATUS(noria_oneshot_new(h.rt, nullptr, &h.tx, &h.rx), kForked);
  NORIA_STATUS(noria_oneshot_send(h.tx, nullptr), kForked);
  NORIA_STATUS(noria_oneshot_poll_closed(h.tx, cx), kForked);
  NORIA_STATUS(noria_oneshot_closed(h.tx, &future), kForked);
  NORIA_STATUS(noria_oneshot_sender_drop(h.tx), kForked);
  NORIA_STATUS(noria_oneshot_poll_receive(h.rx, cx, &value), kForked);
  NORIA_STATUS(noria_oneshot_receive(h.rx, &future), kForked);
  NORIA_STATUS(noria_oneshot_try_receive(h.rx, &value), kForked);
  NORIA_STATUS(noria_oneshot_close(h.rx), kForked);
  NORIA_STATUS(noria_oneshot_receiver_drop(h.rx), kForked);
}

void call_time(Handles& h, const noria_cx* cx) {
  constexpr int32_t kForked = -NORIA_EFORKED;
  noria_future* future = nullptr;
  std::uint64_t instant = 0;
  NORIA_STATUS(noria_now(h.rt, &instant), kForked);
  NORIA_STATUS(noria_sleep(h.rt, 1, &future), kForked);
  NORIA_STATUS(noria_sleep_until(h.rt, 1, &future), kForked);
  NORIA_STATUS(noria_timer_new(h.rt, &h.timer), kForked);
  NORIA_STATUS(noria_timer_reset(h.timer, 1), kForked);
  NORIA_STATUS(noria_timer_cancel(h.timer), kForked);
  NORIA_STATUS(noria_timer_poll_wait(h.timer, cx), kForked);
  NORIA_STATUS(noria_timer_wait(h.timer, &future), kForked);
  NORIA_STATUS(noria_timer_deadline(h.timer, &instant), kForked);
  NORIA_STATUS(noria_timer_drop(h.timer), kForked);
  NORIA_STATUS(noria_interval_new(h.rt, 0, 1, 0, &h.interval), kForked);
  NORIA_STATUS(noria_interval_poll_tick(h.interval, cx, &instant), kForked);
  NORIA_STATUS(noria_interval_tick(h.interval, &future), kForked);
  NORIA_STATUS(noria_interval_reset(h.interval), kForked);
  NORIA_STATUS(noria_interval_drop(h.interval), kForked);
  NORIA_STATUS(noria_clock_pause(h.rt), kForked);
  NORIA_STATUS(noria_clock_advance(h.rt, 1), kForked);
  NORIA_STATUS(noria_clock_resume(h.rt), kForked);
}

void call_futures(Handles& h, const noria_cx* cx) {
  constexpr int32_t kForked = -NORIA_EFORKED;
  noria_future* future = nullptr;
  noria_buf* slice = nullptr;
  std::size_t size = 0;
  void* data = nullptr;
  noria_delivery delivery{};
  delivery.size = sizeof delivery;
  delivery.callback = [](void*, noria_future*) {};
  delivery.rt = h.rt;
  NORIA_STATUS(noria_future_poll(h.future, cx), kForked);
  NORIA_STATUS(noria_future_on_ready(h.future, cx->waker), kForked);
  NORIA_STATUS(noria_future_wait(h.future, 0), kForked);
  NORIA_STATUS(noria_future_result(h.future, nullptr, 0), kForked);
  NORIA_STATUS(noria_future_cancel(h.future), kForked);
  NORIA_STATUS(noria_future_deliver(h.future, &delivery), kForked);
  NORIA_STATUS(noria_select(h.rt, &h.future, 1, &future), kForked);
  NORIA_STATUS(noria_select_poll(&h.future, 1, cx, &size), kForked);
  NORIA_STATUS(noria_join_all(h.rt, &h.future, 1, &future), kForked);
  NORIA_STATUS(noria_join_all_result(h.future, 0, nullptr, 0), kForked);
  NORIA_STATUS(noria_timeout(h.rt, h.future, 1, &future), kForked);
  NORIA_STATUS(noria_future_drop(h.future), kForked);
  NORIA_STATUS(noria_spawn_blocking(h.rt, never, nullptr, nullptr, &future), kForked);
  NORIA_STATUS(noria_buf_new(h.rt, 1, &h.buf), kForked);
  NORIA_STATUS(noria_buf_wrap(h.rt, &size, 1, nullptr, nullptr, &h.buf), kForked);
  NORIA_STATUS(noria_buf_retain(h.buf), kForked);
  NORIA_STATUS(noria_buf_slice(h.buf, 0, 1, &slice), kForked);
  NORIA_STATUS(noria_buf_data(h.buf, &data), kForked);
  NORIA_STATUS(noria_buf_length(h.buf, &size), kForked);
  NORIA_STATUS(noria_buf_set_length(h.buf, 1), kForked);
  NORIA_STATUS(noria_buf_capacity(h.buf, &size), kForked);
  NORIA_STATUS(noria_buf_release(h.buf), kForked);
}

}  // namespace

Test(Fork, Every_call_on_inherited_locks_timers_futures_and_buffers_is_refused) {
  on_runtimes(kCurrent | kTwo, [](Lane& lane) {
    ForeignWaker waker;
    Handles handles(lane.rt, waker.cx());
    pid_t child = ::fork();
    if (child == 0) {
      Watchdog watchdog("the child");
      call_locks(handles, waker.cx());
      call_time(handles, waker.cx());
      call_futures(handles, waker.cx());
      ::_exit(0);
    }
    int status = 0;
    cr_assert_eq(::waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with %d", status);
    handles.drop();
    lane.inside([] {});
  });
}
