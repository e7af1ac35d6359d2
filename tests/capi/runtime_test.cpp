// The C ABI of runtimes (A2, A11): options, references, context, block_on, turn, what it tells about itself.
#include <criterion/criterion.h>
#include <poll.h>
#include <sched.h>

#include <cstddef>
#include <cstring>
#include <set>
#include <vector>

#include "support/runtime_fixture.hpp"

using namespace noria::test;

namespace {

noria_runtime_options options_of(std::uint32_t kind, std::uint32_t workers = 0) {
  noria_runtime_options options{};
  options.size = sizeof options;
  options.kind = kind;
  options.workers = workers;
  options.seed = test_seed();
  return options;
}

int32_t try_new(const noria_runtime_options& options) {
  noria_runtime* rt = nullptr;
  int32_t status = noria_runtime_new(&options, &rt);
  if (status == NORIA_OK) NORIA_OK_CALL(noria_runtime_free(rt));
  return status;
}

int32_t ready(void*, const noria_cx*) { return NORIA_READY; }
const noria_task_vtable kReady = {sizeof(noria_task_vtable), 0, ready, nullptr, nullptr, "ready"};

}  // namespace

Test(RuntimeAbi, Default_options_give_a_multi_thread_runtime) {
  noria_runtime* rt = nullptr;
  NORIA_OK_CALL(noria_runtime_new(nullptr, &rt));
  noria_runtime_info_data info{};
  info.size = sizeof info;
  NORIA_OK_CALL(noria_runtime_info(rt, &info));
  cr_assert_eq(info.kind, NORIA_RUNTIME_MULTI_THREAD);
  cr_assert_geq(info.workers, 1);
  cpu_set_t set;
  ::sched_getaffinity(0, sizeof set, &set);
  cr_assert_leq(info.workers, static_cast<std::uint32_t>(CPU_COUNT(&set)));
  cr_assert_eq(info.max_workers, info.workers);
  cr_assert_eq(info.reactor, NORIA_REACTOR_EPOLL);
  cr_assert(info.io_enabled == 1 && info.time_enabled == 1 && info.clock_paused == 0);
  cr_assert_neq(info.seed, 0);
  NORIA_OK_CALL(noria_runtime_free(rt));
  assert_nothing_alive("defaults");
}

Test(RuntimeAbi, Option_struct_of_another_size_follows_the_size_rule) {
  struct {
    noria_runtime_options known;
    std::uint64_t tail;
  } longer = {options_of(NORIA_RUNTIME_CURRENT_THREAD), 0};
  longer.known.size = sizeof longer;
  NORIA_STATUS(try_new(longer.known), NORIA_OK);
  longer.tail = 1;
  NORIA_STATUS(try_new(longer.known), -E2BIG);
  for (std::uint32_t size = 4; size <= sizeof(noria_runtime_options); size += 4) {
    noria_runtime_options shorter = options_of(NORIA_RUNTIME_CURRENT_THREAD);
    shorter.size = size;
    if (size < 8) shorter.kind = 0xFF;  // not read
    if (size < 12) shorter.workers = 1;
    NORIA_STATUS(try_new(shorter), NORIA_OK);
  }
  noria_runtime_options none{};
  NORIA_STATUS(try_new(none), -EINVAL);
  assert_nothing_alive("sizes");
}

Test(RuntimeAbi, Options_out_of_range_are_told) {
  auto refused = [](auto&& change, int32_t error) {
    noria_runtime_options options = options_of(NORIA_RUNTIME_MULTI_THREAD, 1);
    change(options);
    NORIA_STATUS(try_new(options), error);
  };
  using O = noria_runtime_options;
  refused([](O& o) { o.kind = 3; }, -EINVAL);
  refused([](O& o) { o.workers = 100000; }, -EINVAL);
  refused([](O& o) { o.workers = 4, o.max_workers = 2; }, -EINVAL);
  refused([](O& o) { o.kind = NORIA_RUNTIME_CURRENT_THREAD, o.workers = 2; }, -EINVAL);
  refused([](O& o) { o.enable_io = 7; }, -EINVAL);
  refused([](O& o) { o.enable_time = 7; }, -EINVAL);
  refused([](O& o) { o.reactor = 9; }, -EINVAL);
  refused([](O& o) { o.reactor = NORIA_REACTOR_IO_URING; }, -ENOTSUP);
  refused([](O& o) { o.reactor = NORIA_REACTOR_KQUEUE; }, -ENOTSUP);
  refused([](O& o) { o.inject_interval = 65; }, -EINVAL);
  refused([](O& o) { o.clock_paused = 2; }, -EINVAL);
  refused([](O& o) { o.affinity_count = 1; }, -EINVAL);
  NORIA_STATUS(noria_runtime_new(nullptr, nullptr), -EINVAL);
  assert_nothing_alive("refused options");
}

Test(RuntimeAbi, None_for_what_cannot_be_off_is_told) {
  std::uint32_t noria_runtime_options::*const bounds[] = {
      &noria_runtime_options::workers,           &noria_runtime_options::max_workers,
      &noria_runtime_options::pool_user_threads, &noria_runtime_options::pool_file_threads,
      &noria_runtime_options::pool_name_threads, &noria_runtime_options::pool_queue_limit,
      &noria_runtime_options::inject_interval,
  };
  for (auto bound : bounds) {
    noria_runtime_options options = options_of(NORIA_RUNTIME_MULTI_THREAD, bound == bounds[0] ? 0 : 1);
    options.*bound = NORIA_NONE;
    NORIA_STATUS(try_new(options), -EINVAL);
  }
  noria_runtime_options options = options_of(NORIA_RUNTIME_MULTI_THREAD, 1);
  options.pool_queue_limit = NORIA_UNLIMITED;
  NORIA_OK_CALL(try_new(options));
  assert_nothing_alive("bounds that are off");
}

Test(RuntimeAbi, Null_is_told_everywhere) {
  std::uint64_t word = 0;
  std::int32_t fd = 0;
  NORIA_STATUS(noria_runtime_retain(nullptr), -EINVAL);
  NORIA_STATUS(noria_runtime_release(nullptr), -EINVAL);
  NORIA_STATUS(noria_runtime_free(nullptr), -EINVAL);
  NORIA_STATUS(noria_runtime_shutdown(nullptr, 0, nullptr), -EINVAL);
  NORIA_STATUS(noria_runtime_enter(nullptr), -EINVAL);
  NORIA_STATUS(noria_runtime_leave(nullptr), -EINVAL);
  NORIA_STATUS(noria_runtime_block_on(nullptr, nullptr, nullptr, nullptr), -EINVAL);
  NORIA_STATUS(noria_runtime_block_on(nullptr, &kReady, nullptr, nullptr), -NORIA_ENOCONTEXT);
  NORIA_STATUS(noria_runtime_turn(nullptr, 0, nullptr), -NORIA_ENOCONTEXT);
  NORIA_STATUS(noria_runtime_fd(nullptr, &fd), -NORIA_ENOCONTEXT);
  NORIA_STATUS(noria_runtime_fd(nullptr, nullptr), -EINVAL);
  NORIA_STATUS(noria_runtime_next_timeout(nullptr, &word), -NORIA_ENOCONTEXT);
  NORIA_STATUS(noria_runtime_next_timeout(nullptr, nullptr), -EINVAL);
  NORIA_STATUS(noria_runtime_info(nullptr, nullptr), -EINVAL);
  NORIA_STATUS(noria_runtime_metrics(nullptr, nullptr), -EINVAL);
  NORIA_STATUS(noria_runtime_worker_metrics(nullptr, 0, nullptr), -EINVAL);
  NORIA_STATUS(noria_live_counts(nullptr), -EINVAL);
  NORIA_STATUS(noria_set_allocator(nullptr), -EINVAL);
}

Test(RuntimeAbi, A11_enter_and_leave_nest) {
  on_each_runtime([](Lane& lane) {
    noria_runtime_options options = options_of(NORIA_RUNTIME_CURRENT_THREAD);
    noria_runtime* other = nullptr;
    NORIA_OK_CALL(noria_runtime_new(&options, &other));
    auto kind = [] {
      noria_runtime_info_data info{};
      info.size = sizeof info;
      int32_t status = noria_runtime_info(nullptr, &info);
      return status == NORIA_OK ? static_cast<int32_t>(info.workers + 100 * info.kind) : status;
    };
    int32_t mine = static_cast<int32_t>((lane.workers == 0 ? 1 : lane.workers) + (lane.workers == 0 ? 200 : 100));
    NORIA_STATUS(kind(), -NORIA_ENOCONTEXT);
    NORIA_STATUS(noria_runtime_leave(lane.rt), -NORIA_EBADSTATE);
    NORIA_OK_CALL(noria_runtime_enter(lane.rt));
    NORIA_STATUS(kind(), mine);
    NORIA_OK_CALL(noria_runtime_enter(other));
    NORIA_STATUS(kind(), 201);
    NORIA_OK_CALL(noria_runtime_enter(lane.rt));
    NORIA_STATUS(noria_runtime_leave(other), -NORIA_EBADSTATE);
    NORIA_OK_CALL(noria_runtime_leave(lane.rt));
    NORIA_STATUS(kind(), 201);
    // Entering holds a reference: the last one goes when the thread leaves.
    NORIA_OK_CALL(noria_runtime_release(other));
    NORIA_STATUS(kind(), 201);
    NORIA_OK_CALL(noria_runtime_leave(other));
    NORIA_STATUS(kind(), mine);
    NORIA_OK_CALL(noria_spawn(nullptr, &kReady, nullptr, nullptr));
    NORIA_OK_CALL(noria_runtime_leave(lane.rt));
    NORIA_STATUS(kind(), -NORIA_ENOCONTEXT);
    lane.inside([&] { NORIA_STATUS(kind(), mine); });
  });
}

Test(RuntimeAbi, Retain_keeps_it_open) {
  noria_runtime_options options = options_of(NORIA_RUNTIME_MULTI_THREAD, 2);
  noria_runtime* rt = nullptr;
  NORIA_OK_CALL(noria_runtime_new(&options, &rt));
  NORIA_OK_CALL(noria_runtime_retain(rt));
  NORIA_OK_CALL(noria_runtime_release(rt));
  NORIA_OK_CALL(noria_spawn(rt, &kReady, nullptr, nullptr));
  NORIA_OK_CALL(noria_runtime_release(rt));
  assert_nothing_alive("the last release ends it");
}

Test(RuntimeAbi, Last_references_that_go_at_once_end_it_once) {
  for (int i = 0; i < rounds(300, 10000); ++i) {
    noria_runtime_options options = options_of(NORIA_RUNTIME_MULTI_THREAD, 1);
    noria_runtime* rt = nullptr;
    NORIA_OK_CALL(noria_runtime_new(&options, &rt));
    NORIA_OK_CALL(noria_runtime_retain(rt));
    std::atomic<int> ready_threads{0};
    auto leave = [&] {
      ++ready_threads;
      while (ready_threads < 2) std::this_thread::yield();
      NORIA_OK_CALL(noria_runtime_release(rt));
    };
    std::thread one(leave), two(leave);
    one.join();
    two.join();
    await_nothing_alive("two last references");
  }
}

Test(RuntimeAbi, Block_on_gives_how_the_state_ended) {
  on_each_runtime([](Lane& lane) {
    struct State {
      int32_t answer;
      int polls = 0;
      int drops = 0;
    };
    noria_task_vtable vtable = {sizeof vtable,
                                0,
                                [](void* state, const noria_cx* cx) -> int32_t {
                                  auto* self = static_cast<State*>(state);
                                  return self->polls++ < 3 ? noria_yield(cx) : self->answer;
                                },
                                [](void* state) { ++static_cast<State*>(state)->drops; },
                                nullptr,
                                "block_on test"};
    for (int32_t answer : {int32_t{NORIA_READY}, int32_t{-EIO}, int32_t{-NORIA_ESHUTDOWN}}) {
      State state{answer};
      noria_join_result how{};
      NORIA_OK_CALL(noria_runtime_block_on(lane.rt, &vtable, &state, &how));
      cr_assert_eq(how.kind, answer == 0 ? NORIA_JOIN_DONE : NORIA_JOIN_FAILED);
      cr_assert_eq(how.error, answer);
      cr_assert(state.drops == 1 && state.polls == 4);
    }
    vtable.take = [](void*, void*) {};
    State kept{NORIA_READY};
    NORIA_OK_CALL(noria_runtime_block_on(lane.rt, &vtable, &kept, nullptr));
    cr_assert_eq(kept.drops, 0, "with take the state stays the caller's");
  });
}

Test(RuntimeAbi, Nested_block_on_is_refused) {
  on_each_runtime([](Lane& lane) {
    auto nested = [&] {
      NORIA_STATUS(noria_runtime_block_on(lane.rt, &kReady, nullptr, nullptr), -NORIA_ENESTED);
      noria_future* future = nullptr;
      NORIA_OK_CALL(noria_sleep(lane.rt, kSecond, &future));
      NORIA_STATUS(noria_future_wait(future, 0), -NORIA_ENESTED);
      NORIA_OK_CALL(noria_future_drop(future));
      NORIA_STATUS(noria_runtime_turn(lane.rt, 0, nullptr), lane.current_thread() ? -NORIA_ENESTED : -NORIA_EWRONGKIND);
    };
    lane.inside(nested);
    lane.run([&](const noria_cx*) -> int32_t {
      nested();
      return NORIA_READY;
    });
  });
}

Test(RuntimeAbi, A11_current_thread_runtime_belongs_to_who_first_drives_it) {
  on_runtime(kCurrentThread, [](Lane& lane) {
    NORIA_OK_CALL(noria_runtime_turn(lane.rt, 0, nullptr));
    std::thread([&] {
      std::uint64_t timeout = 0;
      NORIA_STATUS(noria_runtime_turn(lane.rt, 0, nullptr), -NORIA_EWRONGTHREAD);
      NORIA_STATUS(noria_runtime_block_on(lane.rt, &kReady, nullptr, nullptr), -NORIA_EWRONGTHREAD);
      NORIA_STATUS(noria_runtime_next_timeout(lane.rt, &timeout), -NORIA_EWRONGTHREAD);
      NORIA_OK_CALL(noria_spawn(lane.rt, &kReady, nullptr, nullptr));
    }).join();
    std::uint32_t polls = 0;
    NORIA_OK_CALL(noria_runtime_turn(lane.rt, 0, &polls));
    cr_assert_eq(polls, 1);
  });
  on_runtime(kTwoWorkers, [](Lane& lane) {
    std::uint64_t timeout = 0;
    std::int32_t fd = 0;
    NORIA_STATUS(noria_runtime_turn(lane.rt, 0, nullptr), -NORIA_EWRONGKIND);
    NORIA_STATUS(noria_runtime_next_timeout(lane.rt, &timeout), -NORIA_EWRONGKIND);
    NORIA_STATUS(noria_runtime_fd(lane.rt, &fd), -NORIA_EWRONGKIND);
  });
}

// A foreign loop around poll(2): everything that can happen must end its sleep.
Test(RuntimeAbi, A11_turn_fd_and_next_timeout_embed_in_a_foreign_loop) {
  on_runtime(kCurrentThread, [](Lane& lane) {
    Watchdog watchdog("the foreign loop");
    std::int32_t fd = -1;
    NORIA_OK_CALL(noria_runtime_fd(lane.rt, &fd));
    int sleeps = 0;
    auto loop_until = [&](auto&& condition) {
      while (!condition()) {
        NORIA_OK_CALL(noria_runtime_turn(lane.rt, 0, nullptr));
        if (condition()) return;
        std::uint64_t timeout = 0;
        NORIA_OK_CALL(noria_runtime_next_timeout(lane.rt, &timeout));
        pollfd watched{fd, POLLIN, 0};
        int wait = timeout == NORIA_FOREVER ? -1 : static_cast<int>((timeout + kMilli - 1) / kMilli);
        if (wait != 0) ++sleeps;
        ::poll(&watched, 1, wait);
      }
    };
    std::uint64_t timeout = 0;
    NORIA_OK_CALL(noria_runtime_turn(lane.rt, 0, nullptr));
    NORIA_OK_CALL(noria_runtime_next_timeout(lane.rt, &timeout));
    cr_assert_eq(timeout, NORIA_FOREVER);
    NORIA_OK_CALL(noria_spawn(lane.rt, &kReady, nullptr, nullptr));
    NORIA_OK_CALL(noria_runtime_next_timeout(lane.rt, &timeout));
    cr_assert_eq(timeout, 0, "something is ready");
    // A timer.
    noria_future* sleep = nullptr;
    NORIA_OK_CALL(noria_sleep(lane.rt, 20 * kMilli, &sleep));
    loop_until([&] { return noria_future_result(sleep, nullptr, 0) == NORIA_OK; });
    NORIA_OK_CALL(noria_future_drop(sleep));
    cr_assert(sleeps > 0 && sleeps < 10, "%d sleeps for one timer", sleeps);
    // A wake and a spawn from another thread.
    KeptWaker kept;
    std::atomic<bool> woken{false};
    std::atomic<int> ends{0};
    spawn_detached(lane.rt, [&](const noria_cx* cx) -> int32_t {
      if (woken) return ++ends, NORIA_READY;
      kept.keep(cx);
      return NORIA_PENDING;
    });
    loop_until([&] { return kept.kept(); });
    std::thread other([&] {
      woken = true;
      kept.wake();
      spawn_detached(lane.rt, [&](const noria_cx*) -> int32_t { return ++ends, NORIA_READY; });
    });
    loop_until([&] { return ends == 2; });
    other.join();
    // More tasks than one turn polls.
    std::atomic<int> polls{0};
    for (int i = 0; i < 5000; ++i)
      spawn_detached(lane.rt, [&](const noria_cx*) -> int32_t { return ++polls, NORIA_READY; });
    loop_until([&] { return polls == 5000; });
  });
}

Test(RuntimeAbi, Turn_waits_for_no_longer_than_it_was_told) {
  on_runtime(kCurrentThread, [](Lane& lane) {
    Watchdog watchdog("turn");
    std::uint64_t before = 0, after = 0;
    NORIA_OK_CALL(noria_now(lane.rt, &before));
    std::uint32_t polls = 99;
    NORIA_OK_CALL(noria_runtime_turn(lane.rt, 30 * kMilli, &polls));
    NORIA_OK_CALL(noria_now(lane.rt, &after));
    cr_assert_eq(polls, 0);
    cr_assert_geq(after - before, 30 * kMilli);
  });
}

Test(RuntimeAbi, Drivers_that_are_off_are_told) {
  noria_runtime_options options{};
  options.enable_io = NORIA_NONE;
  options.enable_time = NORIA_NONE;
  on_each_runtime(
      [](Lane& lane) {
        noria_future* future = nullptr;
        noria_timer* timer = nullptr;
        noria_source* source = nullptr;
        NORIA_STATUS(noria_sleep(lane.rt, 1, &future), -NORIA_ENODRIVER);
        NORIA_STATUS(noria_timer_new(lane.rt, &timer), -NORIA_ENODRIVER);
        NORIA_STATUS(noria_source_new(lane.rt, 0, &source), -NORIA_ENODRIVER);
        noria_runtime_info_data info{};
        info.size = sizeof info;
        NORIA_OK_CALL(noria_runtime_info(lane.rt, &info));
        cr_assert(info.io_enabled == 0 && info.time_enabled == 0 && info.reactor == NORIA_REACTOR_AUTO);
        lane.inside([] {});
      },
      options);
}

Test(RuntimeAbi, Hooks_names_and_affinity_reach_every_thread) {
  struct Seen {
    std::atomic<int> starts{0}, stops{0}, parks{0}, unparks{0}, bad_names{0}, bad_cpus{0};
  } seen;
  noria_runtime_options options = options_of(NORIA_RUNTIME_MULTI_THREAD, 2);
  cpu_set_t set;
  ::sched_getaffinity(0, sizeof set, &set);
  std::uint32_t cpu = 0;
  while (!CPU_ISSET(cpu, &set)) ++cpu;
  options.name = "buckets";
  options.affinity = &cpu;
  options.affinity_count = 1;
  options.hook_data = &seen;
  options.on_thread_start = [](void* data) {
    char name[32] = "";
    pthread_getname_np(pthread_self(), name, sizeof name);
    auto* self = static_cast<Seen*>(data);
    if (std::strncmp(name, "buckets", 7) != 0) ++self->bad_names;
    if (std::strncmp(name, "buckets-p", 9) != 0) {
      cpu_set_t mine;
      ::sched_getaffinity(0, sizeof mine, &mine);
      if (CPU_COUNT(&mine) != 1) ++self->bad_cpus;
    }
    ++self->starts;
  };
  options.on_thread_stop = [](void* data) { ++static_cast<Seen*>(data)->stops; };
  options.on_worker_park = [](void* data) { ++static_cast<Seen*>(data)->parks; };
  options.on_worker_unpark = [](void* data) { ++static_cast<Seen*>(data)->unparks; };
  noria_runtime* rt = nullptr;
  NORIA_OK_CALL(noria_runtime_new(&options, &rt));
  noria_future* job = nullptr;
  NORIA_OK_CALL(noria_spawn_blocking(
      rt, [](void*) { return 0; }, nullptr, nullptr, &job));
  NORIA_OK_CALL(noria_future_wait(job, 10 * kSecond));
  NORIA_OK_CALL(noria_future_drop(job));
  NORIA_OK_CALL(noria_runtime_shutdown(rt, 5 * kSecond, nullptr));
  NORIA_OK_CALL(noria_runtime_release(rt));
  cr_assert_geq(seen.starts, 3);
  cr_assert_eq(seen.starts, seen.stops);
  cr_assert_eq(seen.parks, seen.unparks);
  cr_assert_eq(seen.bad_names, 0);
  cr_assert_eq(seen.bad_cpus, 0);
  assert_nothing_alive("hooks");
}

Test(RuntimeAbi, Injected_clock_is_the_runtimes_clock) {
  std::atomic<std::uint64_t> time{5 * kSecond};
  noria_runtime_options options{};
  options.clock_now = [](void* data) { return static_cast<std::atomic<std::uint64_t>*>(data)->load(); };
  options.clock_data = &time;
  on_each_runtime(
      [&](Lane& lane) {
        std::uint64_t now = 0;
        NORIA_OK_CALL(noria_now(lane.rt, &now));
        cr_assert_eq(now, time.load());
        noria_future* sleep = nullptr;
        NORIA_OK_CALL(noria_sleep(lane.rt, 100 * kSecond, &sleep));
        for (int i = 0; i < 20; ++i) lane.inside([] {});
        NORIA_STATUS(noria_future_result(sleep, nullptr, 0), -EAGAIN);
        time += 101 * kSecond;
        cr_assert_eq(lane.await(sleep), NORIA_OK);
      },
      options);
}

Test(RuntimeAbi, Metrics_add_up) {
  on_each_runtime([](Lane& lane) {
    constexpr int kTasks = 2000;
    for (int i = 0; i < kTasks; ++i) {
      spawn_detached(lane.rt, [polls = 0](const noria_cx* cx) mutable -> int32_t {
        return ++polls < 3 ? noria_yield(cx) : NORIA_READY;
      });
    }
    auto read = [&] {
      noria_metrics sum{};
      sum.size = sizeof sum;
      NORIA_OK_CALL(noria_runtime_metrics(lane.rt, &sum));
      return sum;
    };
    lane.until([&] { return read().live_tasks == 0; }, "the tasks");
    noria_metrics sum = read();
    std::uint32_t workers = lane.workers == 0 ? 1 : lane.workers;
    cr_assert_eq(sum.workers, workers);
    cr_assert_geq(sum.polls, 3 * kTasks);
    cr_assert_eq(sum.inject_depth, 0);
    cr_assert_eq(sum.timers, 0);
    cr_assert_eq(sum.sources, 0);
    std::uint64_t sampled = 0;
    for (std::uint64_t bucket : sum.poll_time_histogram) sampled += bucket;
    cr_assert(sampled > 0 && sampled <= sum.polls / 32, "%llu samples", static_cast<unsigned long long>(sampled));
    lane.until([&] { return lane.current_thread() || read().parks > 0; }, "a park");
    std::uint64_t polls = 0, steals = 0, overflow = 0, parks = 0;
    for (std::uint32_t i = 0; i < workers; ++i) {
      noria_worker_metrics one{};
      one.size = sizeof one;
      NORIA_OK_CALL(noria_runtime_worker_metrics(lane.rt, i, &one));
      cr_assert_eq(one.worker, i);
      cr_assert_eq(one.queue_depth, 0);
      polls += one.polls, steals += one.steals, overflow += one.overflow, parks += one.parks;
    }
    sum = read();
    cr_assert_eq(polls, sum.polls);
    cr_assert_eq(steals, sum.steals);
    cr_assert_eq(overflow, sum.overflow);
    cr_assert_leq(parks, sum.parks);
    noria_worker_metrics none{};
    none.size = sizeof none;
    NORIA_STATUS(noria_runtime_worker_metrics(lane.rt, workers, &none), -EINVAL);
    none.size = 0;
    NORIA_STATUS(noria_runtime_worker_metrics(lane.rt, 0, &none), -EINVAL);
  });
}

// A current-thread runtime is busy while it is turned, and only once; what nobody has turned yet has not parked either.
Test(RuntimeAbi, Busy_time_and_parks_of_a_current_thread_runtime_are_those_of_its_turns) {
  struct Hooks {
    std::uint64_t parks = 0, unparks = 0;
  } hooks;
  auto now_ns = [] {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * kSecond + static_cast<std::uint64_t>(now.tv_nsec);
  };
  noria_runtime_options options{};
  options.hook_data = &hooks;
  options.on_worker_park = [](void* data) { ++static_cast<Hooks*>(data)->parks; };
  options.on_worker_unpark = [](void* data) { ++static_cast<Hooks*>(data)->unparks; };
  std::uint64_t began_ns = now_ns();
  on_runtimes(
      kCurrent,
      [&](Lane& lane) {
        auto read = [&] {
          noria_worker_metrics one{};
          one.size = sizeof one;
          NORIA_OK_CALL(noria_runtime_worker_metrics(lane.rt, 0, &one));
          return one;
        };
        cr_assert_eq(read().busy_ns, 0);
        cr_assert_eq(read().parks, 0);
        cr_assert(hooks.parks == 0 && hooks.unparks == 0);
        for (std::uint64_t turns = 1; turns <= 3; ++turns) {
          spawn_detached(lane.rt, [&](const noria_cx*) -> int32_t {
            for (std::uint64_t until_ns = now_ns() + 5 * kMilli; now_ns() < until_ns;) {
            }
            return NORIA_READY;
          });
          NORIA_OK_CALL(noria_runtime_turn(lane.rt, 0, nullptr));
          std::uint64_t elapsed_ns = now_ns() - began_ns, busy_ns = read().busy_ns;
          cr_assert(busy_ns >= turns * 5 * kMilli && busy_ns <= elapsed_ns, "%llu ns busy in %llu",
                    static_cast<unsigned long long>(busy_ns), static_cast<unsigned long long>(elapsed_ns));
          cr_assert_eq(read().parks, turns);
          cr_assert(hooks.parks == turns && hooks.unparks + 1 == turns);
        }
      },
      options);
}
