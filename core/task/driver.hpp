// driver.hpp: what a worker does about I/O and time, as the schedulers see it; the runtime implements it with the reactor and
// the wheels. Wheels are numbered like the workers; the one behind them all is the guests'.
#pragma once

#include <cstdint>

namespace noria::task {

class Driver {
 public:
  Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // Sleeps in the reactor until an event, interrupt() or the time-out (in the driver's time; 0: only looks; kNever: without end),
  // but for `cap_ns` of real time at most, and dispatches the events. One thread at a time.
  virtual void wait(std::uint64_t timeout_ns, std::uint64_t cap_ns) = 0;
  // Ends a wait() that runs or the next one. Any thread.
  virtual void interrupt() = 0;
  // Whether wait(0) could bring anything.
  virtual bool has_sources() const = 0;

  virtual std::uint64_t now_ns() const = 0;
  // Not later than the first deadline in the wheel; kNever: there is none. Any thread.
  virtual std::uint64_t next_deadline_ns(std::uint32_t wheel) const = 0;
  // Whether fire_due would find something: a deadline, cancelled timers to let go, or many that it has still to sort.
  virtual bool due(std::uint32_t wheel, std::uint64_t now_ns) const = 0;
  // Fires what is due. `owner`: the calling worker's own wheel; others are tried, and left if somebody is at them.
  virtual void fire_due(std::uint32_t wheel, std::uint64_t now_ns, bool owner) = 0;

  // Before the owner of a wheel sleeps: true as long as there was something to sort in it, a little at a time.
  virtual bool sort_some(std::uint32_t wheel) = 0;

  // All workers sleep, nothing is ready and the clock is paused: moves it to `deadline_ns`. False: it is not paused, or
  // something that runs elsewhere (a blocking job, a thread in block_on) holds it.
  virtual bool jump(std::uint64_t deadline_ns) = 0;
  // As jump would answer, without moving.
  virtual bool would_jump() const = 0;

  // A task was pushed to the inject queue after the workers had been told to stop. Any thread.
  virtual void pushed_late() = 0;

 protected:
  ~Driver() = default;
};

}  // namespace noria::task
