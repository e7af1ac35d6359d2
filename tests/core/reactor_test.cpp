// The reactor and its sources, without a runtime.
#include "reactor/reactor.hpp"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <noria/runtime.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cerrno>
#include <csignal>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "support/sources.hpp"

using namespace noria;
using namespace noria::reactor;
using test::Bench;
using test::CountingWaker;
using test::PlainSource;

namespace {

struct Pair {
  int fd[2];
  Pair() { cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0); }
  ~Pair() {
    for (int& one : fd) {
      if (one >= 0) ::close(one);
    }
  }
  void close(int i) { ::close(std::exchange(fd[i], -1)); }
};

}  // namespace

Test(reactor, Kinds_that_are_not_here_are_refused) {
  std::unique_ptr<Reactor> out;
  cr_assert_eq(Reactor::create(NORIA_REACTOR_IO_URING, out), -ENOTSUP);
  cr_assert_eq(Reactor::create(NORIA_REACTOR_KQUEUE, out), -ENOTSUP);
  cr_assert_eq(Reactor::create(77, out), -EINVAL);
  cr_assert_eq(Reactor::create(NORIA_REACTOR_EPOLL, out), 0);
  cr_assert_eq(out->kind(), NORIA_REACTOR_EPOLL);
  out.reset();
  cr_assert(test::all_live_zero());
}

Test(reactor, Without_descriptors_creation_tells_and_leaks_nothing) {
  int lowest = dup(0);
  ::close(lowest);
  for (rlim_t room = 0; room < 3; ++room) {
    rlimit limit{static_cast<rlim_t>(lowest) + room, 4096};
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    std::unique_ptr<Reactor> out;
    std::int32_t error = Reactor::create(NORIA_REACTOR_AUTO, out);
    limit.rlim_cur = 4096;  // sanitizers look at objects through a pipe
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    cr_assert_eq(error, room < 2 ? -EMFILE : 0);
  }
  cr_assert(test::all_live_zero());
}

Test(reactor, Events_reach_both_sides_and_a_clear_waits_for_the_next_edge) {
  {
    Bench bench;
    Pair pair;
    PlainSource* source = bench.make(pair.fd[0]);
    cr_assert_eq(bench.reactor->add(*source), 0);
    cr_assert_eq(bench.reactor->sources(), 1);
    CountingWaker reader, writer;
    Readiness seen;
    cr_assert_eq(source->poll_ready(NORIA_READABLE, &reader.cx, seen), NORIA_PENDING);
    cr_assert_eq(source->poll_ready(NORIA_WRITABLE, &writer.cx, seen), NORIA_PENDING);
    cr_assert_eq(bench.reactor->poll(0), 1, "a socket is writable at once");
    cr_assert_eq(writer.wakes.load(), 1);
    cr_assert_eq(reader.wakes.load(), 0);
    cr_assert_eq(source->poll_ready(NORIA_WRITABLE, &writer.cx, seen), NORIA_READY);
    cr_assert_eq(seen.events, NORIA_WRITABLE);

    cr_assert_eq(write(pair.fd[1], "x", 1), 1);
    cr_assert_eq(bench.reactor->poll(kForEver), 1);
    cr_assert_eq(reader.wakes.load(), 1);
    cr_assert_eq(source->poll_ready(NORIA_READABLE, &reader.cx, seen), NORIA_READY);
    source->clear(seen, NORIA_READABLE);
    cr_assert_eq(source->poll_ready(NORIA_READABLE, &reader.cx, seen), NORIA_PENDING);
    cr_assert_eq(bench.reactor->poll(0), 0, "edges come once");
    cr_assert_eq(write(pair.fd[1], "y", 1), 1);
    cr_assert_eq(bench.reactor->poll(0), 1);
    cr_assert_eq(reader.wakes.load(), 2);

    pair.close(1);
    cr_assert_eq(bench.reactor->poll(0), 1);
    cr_assert(source->look().events & NORIA_READ_CLOSED);
    cr_assert(source->look().events & NORIA_WRITE_CLOSED);
    bench.end(source);
    cr_assert_eq(reader.clones.load() + writer.clones.load(), 0, "no waker stays behind");
  }
  cr_assert(test::all_live_zero());
}

Test(reactor, A8_last_waker_of_a_direction_wins_and_closing_tells_all_that_wait) {
  Bench bench;
  Pair pair;
  PlainSource* source = bench.make(pair.fd[0]);
  cr_assert_eq(bench.reactor->add(*source), 0);
  CountingWaker first, second;
  Readiness seen;
  cr_assert_eq(source->poll_ready(NORIA_READABLE, &first.cx, seen), NORIA_PENDING);
  cr_assert_eq(source->poll_ready(NORIA_READABLE, &second.cx, seen), NORIA_PENDING);
  cr_assert_eq(source->poll_ready(NORIA_READABLE, &second.cx, seen), NORIA_PENDING);
  cr_assert_eq(first.clones.load(), 0);
  cr_assert_eq(second.clones.load(), 1);
  struct Told : Waiter {
    int fired = 0;
  } told[3];
  for (Told& one : told) {
    one.interest = NORIA_READABLE;
    one.fire = [](Waiter* waiter) { ++static_cast<Told*>(waiter)->fired; };
    cr_assert(source->wait(one));
  }
  cr_assert(source->forget(told[1]));
  cr_assert_not(source->forget(told[1]));
  bench.reactor->remove(*source);
  cr_assert_eq(second.wakes.load(), 1);
  cr_assert_eq(first.wakes.load(), 0);
  cr_assert_eq(told[0].fired + told[2].fired, 2);
  cr_assert_eq(told[1].fired, 0);
  cr_assert_eq(source->poll_ready(NORIA_READABLE, &first.cx, seen), -EBADF);
  cr_assert_not(source->wait(told[0]), "nobody waits at what is gone");
  bench.reactor->remove(*source);
  source->unref();
}

// The one place between looking and leaving a waker where something of others runs.
Test(reactor, P1_event_that_comes_while_the_waker_is_cloned_is_seen) {
  Bench bench;
  Pair pair;
  PlainSource* source = bench.make(pair.fd[0]);
  cr_assert_eq(bench.reactor->add(*source), 0);
  cr_assert_eq(bench.reactor->poll(0), 1);
  static int far = pair.fd[1];
  static Reactor* polled = bench.reactor.get();
  noria_waker_vtable table = *CountingWaker::vtable();
  table.clone = [](const noria_waker* from, noria_waker* out) {
    CountingWaker::vtable()->clone(from, out);
    cr_assert_eq(write(far, "x", 1), 1);
    cr_assert_eq(polled->poll(0), 1);
  };
  CountingWaker waker;
  waker.raw.vtable = &table;
  Readiness seen;
  cr_assert_eq(source->poll_ready(NORIA_READABLE, &waker.cx, seen), NORIA_READY);
  cr_assert(seen.events & NORIA_READABLE);
  bench.end(source);
  cr_assert_eq(waker.clones.load(), 0);
}

Test(reactor, Waiters_are_told_in_order_and_only_of_their_side) {
  Bench bench;
  Pair pair;
  PlainSource* source = bench.make(pair.fd[0]);
  cr_assert_eq(bench.reactor->add(*source), 0);
  static std::string order;
  struct Named : Waiter {
    char name;
  } waiters[4];
  for (int i = 0; i < 4; ++i) {
    waiters[i].name = static_cast<char>('a' + i);
    waiters[i].interest = i == 1 ? NORIA_WRITABLE : NORIA_READABLE;
    waiters[i].fire = [](Waiter* waiter) { order += static_cast<Named*>(waiter)->name; };
    cr_assert(source->wait(waiters[i]));
  }
  cr_assert_eq(bench.reactor->poll(0), 1);
  cr_assert(order == "b");
  cr_assert_eq(write(pair.fd[1], "x", 1), 1);
  cr_assert_eq(bench.reactor->poll(0), 1);
  cr_assert(order == "bacd");
  bench.end(source);
}

Test(reactor, More_wakers_than_a_batch_holds_are_all_woken) {
  Bench bench;
  constexpr int kSources = 600;
  std::vector<PlainSource*> sources;
  std::vector<std::unique_ptr<CountingWaker>> wakers;
  for (int i = 0; i < kSources; ++i) {
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    cr_assert_geq(fd, 0);
    sources.push_back(bench.make(fd));
    cr_assert_eq(bench.reactor->add(*sources.back()), 0);
    wakers.push_back(std::make_unique<CountingWaker>());
    Readiness seen;
    cr_assert_eq(sources.back()->poll_ready(NORIA_READABLE | NORIA_WRITABLE, &wakers.back()->cx, seen), NORIA_PENDING);
  }
  int reported = 0;
  for (int polls = 0; polls < 4; ++polls) reported += bench.reactor->poll(0);
  cr_assert_eq(reported, kSources);
  for (int i = 0; i < kSources; ++i) {
    cr_assert_eq(wakers[i]->clones.load(), 1, "the reading side still waits");
    int fd = sources[i]->fd();
    bench.end(sources[i]);
    cr_assert_eq(wakers[i]->wakes.load(), 2);
    ::close(fd);
  }
}

Test(reactor, Descriptors_that_cannot_be_watched_are_refused) {
  Bench bench;
  int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  struct {
    int fd, error;
  } rows[] = {{file, -EPERM}, {1000, -EBADF}, {-1, -EBADF}, {bench.reactor->fd(), -EINVAL}};
  for (auto row : rows) {
    PlainSource* source = bench.make(row.fd);
    cr_assert_eq(bench.reactor->add(*source), row.error, "fd %d", row.fd);
    source->unref();
  }
  Pair pair;
  PlainSource* first = bench.make(pair.fd[0]);
  PlainSource* second = bench.make(pair.fd[0]);
  cr_assert_eq(bench.reactor->add(*first), 0);
  cr_assert_eq(bench.reactor->add(*second), -EEXIST);
  cr_assert_eq(bench.reactor->sources(), 1);
  bench.reactor->remove(*second);
  cr_assert_eq(bench.reactor->sources(), 1, "the registration is the first one's");
  bench.end(first);
  second->unref();
  cr_assert_eq(bench.reactor->sources(), 0);
  ::close(file);
}

Test(reactor, Priority_data_is_told) {
  Bench bench;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 room{};
  socklen_t size = sizeof room;
  cr_assert_eq(listen(listener, 1), 0);
  cr_assert_eq(getsockname(listener, reinterpret_cast<sockaddr*>(&room), &size), 0);
  int a = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  cr_assert_eq(connect(a, reinterpret_cast<sockaddr*>(&room), size), 0);
  int b = accept(listener, nullptr, nullptr);
  PlainSource* source = bench.make(a);
  cr_assert_eq(bench.reactor->add(*source), 0);
  cr_assert_eq(bench.reactor->poll(0), 1);
  CountingWaker waker;
  Readiness seen;
  cr_assert_eq(source->poll_ready(NORIA_PRIORITY, &waker.cx, seen), NORIA_PENDING);
  cr_assert_eq(send(b, "!", 1, MSG_OOB), 1);
  cr_assert_eq(bench.reactor->poll(1'000'000'000), 1);
  cr_assert_eq(waker.wakes.load(), 1);
  cr_assert(source->look().events & NORIA_PRIORITY);
  bench.end(source);
  for (int fd : {a, b, listener}) ::close(fd);
}

Test(reactor, Unpark_ends_the_sleep_that_is_and_the_one_to_come) {
  Bench bench;
  for (int i = 0; i < 3; ++i) bench.reactor->unpark();
  cr_assert_eq(bench.reactor->poll(kForEver), 0, "pending when the sleep begins");
  bench.reactor->unpark();
  cr_assert_eq(bench.reactor->poll(0), 0);
  cr_assert_eq(bench.reactor->poll(kForEver), 0, "one that only looked leaves it owed");
  std::thread other([&] { bench.reactor->unpark(); });
  while (bench.reactor->poll(60'000'000'000) != 0) {
  }
  other.join();
}

Test(reactor, Unpark_makes_the_descriptor_readable_each_time) {
  Bench bench;
  epoll_event event;
  int outer = epoll_create1(EPOLL_CLOEXEC);
  event = {EPOLLIN, {.u64 = 0}};
  cr_assert_eq(epoll_ctl(outer, EPOLL_CTL_ADD, bench.reactor->fd(), &event), 0);
  for (int i = 0; i < 5; ++i) {
    cr_assert_eq(epoll_wait(outer, &event, 1, 0), 0);
    bench.reactor->unpark();
    bench.reactor->unpark();
    cr_assert_eq(epoll_wait(outer, &event, 1, 0), 1);
    cr_assert_eq(bench.reactor->poll(0), 0);
  }
  ::close(outer);
}

Test(reactor, Deferred_waiters_fire_in_order_in_the_next_poll) {
  Bench bench;
  static std::string order;
  static Reactor* again = bench.reactor.get();
  struct Named : Waiter {
    char name;
  } waiters[3];
  for (int i = 0; i < 3; ++i) {
    waiters[i].name = static_cast<char>('a' + i);
    waiters[i].fire = [](Waiter* waiter) {
      order += static_cast<Named*>(waiter)->name;
      if (order.size() == 1) again->defer(*waiter);
    };
    bench.reactor->defer(waiters[i]);
  }
  cr_assert_eq(bench.reactor->poll(kForEver), 0);
  cr_assert(order == "abc");
  cr_assert_eq(bench.reactor->poll(kForEver), 0, "what is deferred again comes in the poll after");
  cr_assert(order == "abca");
}

Test(reactor, Sleep_lasts_as_long_as_asked) {
  Bench bench;
  for (std::uint64_t ns : {1'000ull, 100'000ull, 1'500'000ull, 20'000'000ull}) {
    std::uint64_t begin = monotonic_ns();
    cr_assert_eq(bench.reactor->poll(ns), 0);
    cr_assert_geq(monotonic_ns() - begin, ns);
  }
}

Test(reactor, Close_tells_every_waiter_and_sources_stay_usable_for_removal) {
  Bench bench;
  std::vector<PlainSource*> sources;
  CountingWaker waker;
  constexpr int kSources = 300;
  for (int i = 0; i < kSources; ++i) {
    sources.push_back(bench.make(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)));
    cr_assert_eq(bench.reactor->add(*sources.back()), 0);
    Readiness seen;
    cr_assert_eq(sources.back()->poll_ready(NORIA_READABLE, &waker.cx, seen), NORIA_PENDING);
  }
  bench.reactor->close();
  cr_assert_eq(waker.wakes.load(), kSources);
  for (PlainSource* source : sources) {
    int fd = source->fd();
    bench.end(source);
    ::close(fd);
  }
}

// Removal races with a poller that has the source's event in hand, on both sides of the look-up.
Test(reactor, Removed_source_is_freed_while_its_events_are_in_flight) {
  {
    Bench bench;
    std::latch ready(2);
    Atomic<bool> stop{false};
    std::thread poller([&] {
      ready.arrive_and_wait();
      while (!stop.load()) cr_assert_geq(bench.reactor->poll(50'000), 0);
    });
    ready.arrive_and_wait();
    for (int i = 0; i < 5000; ++i) {
      Pair pair;
      CountingWaker waker;
      PlainSource* source = bench.make(pair.fd[0]);
      cr_assert_eq(bench.reactor->add(*source), 0);
      Readiness seen;
      std::int32_t polled = source->poll_ready(NORIA_READABLE, &waker.cx, seen);
      cr_assert_eq(write(pair.fd[1], "x", 1), 1);
      if (polled == NORIA_PENDING && i % 4 == 0) {
        while (waker.wakes.load() == 0) std::this_thread::yield();
      }
      bench.end(source);
      while (waker.clones.load() != 0) std::this_thread::yield();
    }
    stop.store(true);
    poller.join();
  }
  cr_assert(test::all_live_zero());
}
