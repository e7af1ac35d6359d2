// A6: every asynchronous operation has a future form, and all futures are used alike: polled, asked to tell, cancelled, dropped; the
// result passes once. Each operation of the library goes through each of these here; what the operations do is tested elsewhere.
// tests/lint/promises.py asserts that no future form is left out.
#include <sys/eventfd.h>
#include <unistd.h>

#include <functional>
#include <memory>

#include "support/pending.hpp"
#include "support/tcp.hpp"

using namespace noria::test;

namespace {

constexpr std::uint64_t kHour = 3600 * kSecond;
std::atomic<std::uint64_t> g_now{kHour};

// An operation that has begun, and what the test may do to it.
struct Begun {
  noria_future* future = nullptr;
  std::function<void()> complete;  // null: it is ready soon by itself
  std::function<void()> end;       // gives back what is beside the future
  size_t size = 0;                 // of the result
  bool counts = false;             // the result is told on cancel too
  std::function<void(void*)> give_back = [](void*) {};
};

Begun in_an_hour(
    noria_future* future, std::function<void()> end = [] {}) {
  return {future, [] { g_now += 2 * kHour; }, std::move(end)};
}

Begun sleep(Lane& lane) {
  noria_future* future = nullptr;
  assert_ok(noria_sleep(lane.rt, kHour, &future), "sleep");
  return in_an_hour(future);
}

Begun sleep_until(Lane& lane) {
  noria_future* future = nullptr;
  assert_ok(noria_sleep_until(lane.rt, g_now + kHour, &future), "sleep_until");
  return in_an_hour(future);
}

Begun timer_wait(Lane& lane) {
  noria_timer* timer = nullptr;
  noria_future* future = nullptr;
  assert_ok(noria_timer_new(lane.rt, &timer), "timer_new");
  assert_ok(noria_timer_reset(timer, g_now + kHour), "timer_reset");
  assert_ok(noria_timer_wait(timer, &future), "timer_wait");
  return in_an_hour(future, [timer] { assert_ok(noria_timer_drop(timer), "timer_drop"); });
}

Begun interval_tick(Lane& lane) {
  noria_interval* interval = nullptr;
  noria_future* future = nullptr;
  assert_ok(noria_interval_new(lane.rt, g_now + kHour, kHour, NORIA_MISSED_SKIP, &interval), "interval_new");
  assert_ok(noria_interval_tick(interval, &future), "interval_tick");
  Begun begun = in_an_hour(future, [interval] { assert_ok(noria_interval_drop(interval), "interval_drop"); });
  begun.size = sizeof(std::uint64_t);
  return begun;
}

Begun task_join(Lane& lane) {
  auto done = std::make_shared<std::atomic<bool>>(false);
  auto polled = std::make_shared<std::atomic<bool>>(false);
  auto kept = std::make_shared<KeptWaker>();
  noria_task* task = spawn(lane.rt, [done, polled, kept](const noria_cx* cx) -> int32_t {
    if (*done) return NORIA_READY;
    kept->keep(cx);
    *polled = true;
    return NORIA_PENDING;
  });
  lane.until([&] { return polled->load(); }, "the first poll");
  lane.inside([] {});
  noria_future* future = nullptr;
  assert_ok(noria_task_join(task, &future), "task_join");
  auto complete = [done, kept] {
    *done = true;
    kept->wake_by_ref();
  };
  auto end = [task, kept] {
    assert_ok(noria_task_detach(task), "detach");
    kept->drop();
  };
  return {future, complete, end, sizeof(noria_join_result)};
}

Begun spawn_blocking(Lane& lane) {
  auto* latch = new Latch;
  noria_future* future = nullptr;
  auto wait = [](void* arg) -> int32_t {
    auto* end = static_cast<std::shared_ptr<Latch>*>(arg);
    (*end)->wait("the end of the job");
    delete end;
    return 7;
  };
  auto discard = [](void* arg) { delete static_cast<std::shared_ptr<Latch>*>(arg); };
  std::shared_ptr<Latch> end(latch);
  assert_ok(noria_spawn_blocking(lane.rt, wait, discard, new std::shared_ptr<Latch>(end), &future), "spawn_blocking");
  auto let_go = [end] { end->count_down(); };
  return {future, let_go, let_go, sizeof(int32_t)};
}

Begun semaphore_acquire(Lane& lane) {
  noria_semaphore* semaphore = nullptr;
  noria_future* future = nullptr;
  assert_ok(noria_semaphore_new(lane.rt, 0, &semaphore), "semaphore_new");
  assert_ok(noria_semaphore_acquire(semaphore, 1, &future), "semaphore_acquire");
  return {future, [semaphore] { assert_ok(noria_semaphore_release(semaphore, 1), "semaphore_release"); },
          [semaphore] { assert_ok(noria_semaphore_drop(semaphore), "semaphore_drop"); }};
}

Begun notify_wait(Lane& lane) {
  noria_notify* notify = nullptr;
  noria_future* future = nullptr;
  assert_ok(noria_notify_new(lane.rt, &notify), "notify_new");
  assert_ok(noria_notify_wait(notify, &future), "notify_wait");
  return {future, [notify] { assert_ok(noria_notify_one(notify), "notify_one"); },
          [notify] { assert_ok(noria_notify_drop(notify), "notify_drop"); }};
}

Begun oneshot_receive(Lane& lane) {
  auto pending = std::make_shared<Pending>(lane.rt);
  return {pending->future, [pending] { pending->complete(); }, [] {}, sizeof(void*)};
}

Begun oneshot_closed(Lane& lane) {
  noria_oneshot_sender* tx = nullptr;
  noria_oneshot_receiver* rx = nullptr;
  noria_future* future = nullptr;
  assert_ok(noria_oneshot_new(lane.rt, nullptr, &tx, &rx), "oneshot_new");
  assert_ok(noria_oneshot_closed(tx, &future), "oneshot_closed");
  auto end = [tx, rx] {
    assert_ok(noria_oneshot_sender_drop(tx), "sender_drop");
    assert_ok(noria_oneshot_receiver_drop(rx), "receiver_drop");
  };
  return {future, [rx] { assert_ok(noria_oneshot_close(rx), "oneshot_close"); }, end};
}

// The composites over one future that is pending.
Begun select(Lane& lane) {
  auto pending = std::make_shared<Pending>(lane.rt);
  noria_future* future = nullptr;
  assert_ok(noria_select(lane.rt, &pending->future, 1, &future), "select");
  return {future, [pending] { pending->complete(); },
          [pending] { assert_ok(noria_future_drop(pending->future), "drop"); }, sizeof(std::size_t)};
}

Begun join_all(Lane& lane) {
  auto pending = std::make_shared<Pending>(lane.rt);
  noria_future* future = nullptr;
  assert_ok(noria_join_all(lane.rt, &pending->future, 1, &future), "join_all");
  return {future, [pending] { pending->complete(); }, [] {}};
}

Begun timeout(Lane& lane) {
  auto pending = std::make_shared<Pending>(lane.rt);
  noria_future* future = nullptr;
  assert_ok(noria_timeout(lane.rt, pending->future, kHour, &future), "timeout");
  return {future, [pending] { pending->complete(); }, [] {}, sizeof(void*)};
}

Begun source_ready(Lane& lane) {
  int fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  noria_source* source = nullptr;
  noria_future* future = nullptr;
  assert_ok(noria_source_new(lane.rt, fd, &source), "source_new");
  assert_ok(noria_source_ready(source, NORIA_READABLE, &future), "source_ready");
  auto end = [source, fd] {
    assert_ok(noria_source_drop(source), "source_drop");
    ::close(fd);
  };
  return {future, [fd] { cr_assert_eq(::eventfd_write(fd, 1), 0); }, end, sizeof(noria_readiness)};
}

void drop_listener(void* result) {
  assert_ok(noria_tcp_listener_drop(*static_cast<noria_tcp_listener**>(result)), "listener drop");
}
void drop_stream(void* result) { assert_ok(noria_tcp_drop(*static_cast<noria_tcp**>(result)), "tcp drop"); }
void release_buffer(void* result) {
  assert_ok(noria_buf_release(static_cast<noria_io_result*>(result)->buf), "release");
}

Begun tcp_listen(Lane& lane) {
  noria_future* future = nullptr;
  assert_ok(noria_tcp_listen(lane.rt, "127.0.0.1:0", nullptr, &future), "tcp_listen");
  return {future, nullptr, [] {}, sizeof(noria_tcp_listener*), false, drop_listener};
}

Begun tcp_connect(Lane& lane) {
  noria_tcp_listener* listener = listen(lane);
  noria_future* future = nullptr;
  assert_ok(noria_tcp_connect(lane.rt, address_of(listener).c_str(), nullptr, &future), "tcp_connect");
  return {future, nullptr, [listener]() mutable { drop_listener(&listener); }, sizeof(noria_tcp*), false, drop_stream};
}

Begun tcp_accept(Lane& lane) {
  noria_tcp_listener* listener = listen(lane);
  auto client = std::make_shared<noria_tcp*>(nullptr);
  noria_future* future = nullptr;
  assert_ok(noria_tcp_accept(listener, &future), "tcp_accept");
  auto end = [listener, client]() mutable {
    if (*client != nullptr) drop_stream(client.get());
    drop_listener(&listener);
  };
  return {
      future, [&lane, listener, client] { assert_ok(connect(lane, address_of(listener).c_str(), client.get()), ""); },
      end,    sizeof(noria_tcp*),
      false,  drop_stream};
}

Begun tcp_ready(Lane& lane) {
  auto link = std::make_shared<Link>(lane);
  noria_future* future = nullptr;
  for (;;) {  // the first report of a fresh stream may say that it is worth a try
    char byte;
    size_t count = 0;
    cr_assert_eq(noria_tcp_try_read(link->b, &byte, 1, &count), -EAGAIN);
    assert_ok(noria_tcp_ready(link->b, NORIA_READABLE, &future), "tcp_ready");
    if (noria_future_result(future, nullptr, 0) == -EAGAIN) break;
    assert_ok(noria_future_drop(future), "drop");
  }
  return {future, [&lane, link] { write_all(lane, link->a, "x"); }, [link] {}};
}

Begun tcp_read(Lane& lane) {
  auto link = std::make_shared<Link>(lane);
  noria_future* future = nullptr;
  assert_ok(noria_tcp_read(link->b, buffer(lane, 4), &future), "tcp_read");
  return {future,        [&lane, link] { write_all(lane, link->a, "text"); }, [link] {}, sizeof(noria_io_result), true,
          release_buffer};
}

constexpr size_t kBig = 16 << 20;  // more than the kernel takes

Begun tcp_write(Lane& lane) {
  auto link = std::make_shared<Link>(lane);
  noria_future* future = nullptr;
  assert_ok(noria_tcp_write(link->a, buffer(lane, std::string(kBig, 'x')), &future), "tcp_write");
  return {future,    [&lane, link] { cr_assert_eq(read_exactly(lane, link->b, kBig).size(), kBig); },
          [link] {}, sizeof(noria_io_result),
          true,      release_buffer};
}

Begun begin_copy(Lane& lane, decltype(noria_copy)* copy) {
  auto from = std::make_shared<Link>(lane), to = std::make_shared<Link>(lane);
  noria_future* future = nullptr;
  assert_ok(copy(from->b, to->a, nullptr, &future), "copy");
  auto complete = [from, to] {
    assert_ok(noria_tcp_shutdown(from->a, NORIA_SHUTDOWN_WRITE), "shutdown");
    assert_ok(noria_tcp_shutdown(to->b, NORIA_SHUTDOWN_WRITE), "shutdown");
  };
  return {future, complete, [from, to] {}, sizeof(noria_copy_result), true};
}
Begun copy(Lane& lane) { return begin_copy(lane, noria_copy); }
Begun copy_bidirectional(Lane& lane) { return begin_copy(lane, noria_copy_bidirectional); }

#define OPERATION(name) \
  { "noria_" #name, name }
constexpr std::pair<const char*, Begun (*)(Lane&)> kOperations[] = {
    OPERATION(sleep),
    OPERATION(sleep_until),
    OPERATION(timer_wait),
    OPERATION(interval_tick),
    OPERATION(task_join),
    OPERATION(spawn_blocking),
    OPERATION(semaphore_acquire),
    OPERATION(notify_wait),
    OPERATION(oneshot_receive),
    OPERATION(oneshot_closed),
    OPERATION(select),
    OPERATION(join_all),
    OPERATION(timeout),
    OPERATION(source_ready),
    OPERATION(tcp_listen),
    OPERATION(tcp_connect),
    OPERATION(tcp_accept),
    OPERATION(tcp_ready),
    OPERATION(tcp_read),
    OPERATION(tcp_write),
    OPERATION(copy),
    OPERATION(copy_bidirectional),
};
#undef OPERATION

alignas(16) char g_room[64];

// Begins each operation on each kind of runtime, and ends what is beside it.
void on_each_operation(const std::function<void(Lane&, const char*, Begun&)>& body) {
  noria_runtime_options options{};
  options.clock_now = [](void*) -> std::uint64_t { return g_now; };
  on_each_runtime(
      [&](Lane& lane) {
        for (auto [name, begin] : kOperations) {
          Begun begun = begin(lane);
          body(lane, name, begun);
          begun.end();
        }
      },
      options);
}

void await_ready(Lane& lane, const Begun& begun) {
  assert_ok(lane.run([&](const noria_cx* cx) { return noria_future_poll(begun.future, cx); }), "future_poll");
}

}  // namespace

Test(FutureForms, A6_pending_then_told_once_then_ready_and_its_result_passes_once, .timeout = 120) {
  on_each_operation([](Lane& lane, const char* name, Begun& begun) {
    ForeignWaker first, second;
    if (begun.complete) {
      NORIA_CHECK(noria_future_result(begun.future, g_room, begun.size) == -EAGAIN, "%s is pending", name);
      NORIA_CHECK(noria_future_poll(begun.future, first.cx()) == NORIA_PENDING, "%s is pending", name);
      NORIA_CHECK(noria_future_on_ready(begun.future, second.waker()) == NORIA_PENDING, "%s is pending", name);
      NORIA_CHECK(first.alive() == 0, "%s: the last waker wins", name);
      begun.complete();
      Watchdog watchdog(name);
      while (second.wakes() == 0)
        lane.inside([] {});  // not a turn that waits: its time-out would be of the clock that stands still
    } else {
      await_ready(lane, begun);
    }
    NORIA_CHECK(noria_future_poll(begun.future, first.cx()) == NORIA_READY, "%s is ready", name);
    NORIA_CHECK(noria_future_on_ready(begun.future, first.waker()) == NORIA_READY, "%s is ready", name);
    NORIA_CHECK(first.wakes() == 0 && first.alive() == 0, "%s: nothing is called inline", name);
    NORIA_CHECK(second.wakes() <= 1, "%s: told %d times", name, second.wakes());
    NORIA_CHECK(noria_future_result(begun.future, g_room, begun.size + 1) == -EINVAL, "%s: a wrong size", name);
    int32_t status = noria_future_result(begun.future, begun.size != 0 ? g_room : nullptr, begun.size);
    NORIA_CHECK(status == NORIA_OK, "%s: %s", name, noria_error_name(status));
    begun.give_back(g_room);
    status = noria_future_result(begun.future, begun.size != 0 ? g_room : nullptr, begun.size);
    NORIA_CHECK(status == -NORIA_ECONSUMED, "%s, again: %s", name, noria_error_name(status));
    NORIA_OK_CALL(noria_future_drop(begun.future));
  });
}

Test(FutureForms, A6_cancelled_from_another_thread_reports_its_status_and_what_it_had_done, .timeout = 120) {
  on_each_operation([](Lane& lane, const char* name, Begun& begun) {
    std::thread([&] { NORIA_OK_CALL(noria_future_cancel(begun.future)); }).join();
    await_ready(lane, begun);
    std::memset(g_room, 0x55, sizeof g_room);
    int32_t status = noria_future_result(begun.future, begun.size != 0 ? g_room : nullptr, begun.size);
    if (begun.complete) {
      NORIA_CHECK(status == -ECANCELED, "%s: %s", name, noria_error_name(status));
      char untouched[sizeof g_room];
      std::memset(untouched, 0x55, sizeof untouched);
      bool told = std::memcmp(g_room, untouched, sizeof g_room) != 0;
      NORIA_CHECK(told == begun.counts, "%s %s what it had done", name, told ? "tells" : "does not tell");
    }
    if (status == NORIA_OK || begun.counts) begun.give_back(g_room);
    status = noria_future_result(begun.future, begun.size != 0 ? g_room : nullptr, begun.size);
    NORIA_CHECK(status == -NORIA_ECONSUMED, "%s, again: %s", name, noria_error_name(status));
    NORIA_OK_CALL(noria_future_drop(begun.future));
  });
}

// What is left alive of a dropped one, or told to its waker, is seen at the end (P11).
Test(FutureForms, A6_P8_dropped_while_pending_and_dropped_untaken, .timeout = 120) {
  on_each_operation([](Lane& lane, const char* name, Begun& begun) {
    ForeignWaker waker;
    (void)noria_future_poll(begun.future, waker.cx());
    NORIA_OK_CALL(noria_future_drop(begun.future));
    NORIA_CHECK(waker.alive() == 0 && (waker.wakes() == 0 || !begun.complete), "%s: dropped and told", name);
    (void)lane;
  });
  on_each_operation([](Lane& lane, const char*, Begun& begun) {
    if (begun.complete) begun.complete();
    await_ready(lane, begun);
    NORIA_OK_CALL(noria_future_drop(begun.future));
  });
}
