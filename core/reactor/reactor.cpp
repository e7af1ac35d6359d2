#include "reactor/reactor.hpp"

#include <cerrno>

#include <noria/runtime.h>
#include "base/allocator.hpp"
#include "reactor/epoll.hpp"

namespace noria::reactor {

std::int32_t Reactor::create(std::uint32_t kind, std::unique_ptr<Reactor>& out) {
  switch (kind) {
    case NORIA_REACTOR_AUTO:
    case NORIA_REACTOR_EPOLL:
      return Epoll::create(out);
    case NORIA_REACTOR_IO_URING:
    case NORIA_REACTOR_KQUEUE:
      return -ENOTSUP;
    default:
      return -EINVAL;
  }
}

void Reactor::defer(Waiter& waiter) {
  // ORDER: relaxed, the compare-and-swap checks it.
  waiter.next = deferred_.load(NORIA_RELAXED);
  // ORDER: seq_cst, hands the waiter to take_deferred, and closes the race with close(): that sets the flag and then takes
  // the list, this adds to the list and then reads the flag, so one of both sees the other. Failure is retried.
  while (!deferred_.compare_exchange_weak(waiter.next, &waiter, NORIA_SEQ_CST, NORIA_RELAXED)) {
  }
  unpark();
  if (!closed()) return;
  Fired fired;
  take_deferred(fired);
}

void Reactor::close() {
  // ORDER: seq_cst, see defer.
  closed_.store(true, NORIA_SEQ_CST);
  close_all();
  Fired fired;
  take_deferred(fired);
}

void Reactor::take_deferred(Fired& fired) {
  // ORDER: seq_cst, see defer. On the way of every poll it is a plain load.
  if (deferred_.load(NORIA_SEQ_CST) == nullptr) return;
  // ORDER: acquire, pairs with defer.
  Waiter* newest = deferred_.exchange(nullptr, NORIA_ACQUIRE);
  Waiter* oldest = nullptr;
  while (newest != nullptr) {
    Waiter* next = newest->next;
    newest->next = oldest;
    oldest = newest;
    newest = next;
  }
  while (oldest != nullptr) {
    Waiter* next = oldest->next;
    fired.add(oldest);
    oldest = next;
  }
}

void* Reactor::operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return raw_alloc(size, alignof(std::max_align_t));
}

void Reactor::operator delete(void* p, std::size_t size) noexcept { raw_free(p, size, alignof(std::max_align_t)); }

}  // namespace noria::reactor
