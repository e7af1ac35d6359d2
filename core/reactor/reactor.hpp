// reactor.hpp: the one interface of epoll, io_uring and kqueue: who is ready, and a place to sleep.
// Threads:    poll: one at a time, the poller, whoever that is now; handing the part over must order the old poller's
//             last poll before the new one's first. The rest: any.
// Invariants: an unpark() is never lost: it ends the sleep that is or the next one that would begin, and makes fd()
//             readable until somebody polls. A poll that does not sleep leaves it owed to the next that would.
// Lifetime:   outlives its sources (each is a slot that keeps the runtime).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "reactor/source.hpp"

namespace noria::reactor {

inline constexpr std::uint64_t kForEver = UINT64_MAX;

class Reactor {
 public:
  // `kind` is of enum noria_reactor_kind. -ENOTSUP for one that is not here, -ENOMEM, -EMFILE and others of the system.
  [[nodiscard]] static std::int32_t create(std::uint32_t kind, std::unique_ptr<Reactor>& out);

  Reactor() = default;
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;
  virtual ~Reactor() = default;

  // Waits for up to `timeout_ns` (0: only looks, kForEver: without end), gives sources their events and wakes who waits
  // for them. How many sources had events, 0 also for a signal and an unpark; negative: the system's error. Wakers and
  // waiters run on this thread, no lock held.
  [[nodiscard]] virtual int poll(std::uint64_t timeout_ns) = 0;

  // Ends the poller's sleep, or its next one. A system call only where no unpark is pending.
  virtual void unpark() = 0;

  // A descriptor that polls readable when there is something to poll for; do not read it.
  virtual std::int32_t fd() const = 0;

  // enum noria_reactor_kind, resolved.
  virtual std::uint32_t kind() const = 0;

  // Registers for everything at once, edge by edge: interest never changes. -EPERM: not pollable, -EBADF, -EEXIST,
  // -ENOSPC and -ENOMEM: out of watches or memory. The source stays the caller's and must be removed before it ends.
  [[nodiscard]] virtual std::int32_t add(Source& source) = 0;

  // Deregisters and tells who waits. No event reaches the source after this, except from a batch that the poller has
  // begun (it holds a reference then). Twice is once. The descriptor must be open or this source must not own it.
  virtual void remove(Source& source) = 0;

  // Fires `waiter` (not queued) in a poll to come (in this call once closed), for work that is cut short so that others get their turn. Whoever
  // defers keeps the waiter alive until then. Any thread.
  void defer(Waiter& waiter);

  // How many are registered.
  virtual std::uint64_t sources() const = 0;

  // Tells all that wait that nothing will come any more, for the end of a runtime. Sources stay registered.
  void close();
  bool closed() const {
    // ORDER: seq_cst, see defer.
    return closed_.load(NORIA_SEQ_CST);
  }

  static void* operator new(std::size_t size, const std::nothrow_t&) noexcept;
  static void operator delete(void* p, std::size_t size) noexcept;

 protected:
  // The poller: hands over what was deferred, in order.
  void take_deferred(Fired& fired);

  virtual void close_all() = 0;

 private:
  Atomic<Waiter*> deferred_{nullptr};  // newest first
  Atomic<bool> closed_{false};
};

}  // namespace noria::reactor
