// home.hpp: where a woken task goes: the one door from tasks to the schedulers.
#pragma once

#include <cstdint>

namespace noria::runtime {
class Core;
}

namespace noria::task {

struct Task;

enum class Hint : std::uint8_t {
  kWake,     // somebody woke it: soon, on this worker
  kSpawn,    // it is new
  kRequeue,  // its poll ended and it was woken meanwhile (yield, end of budget): behind what is ready
};

// Implemented by the multi-thread scheduler, by each worker for its local tasks, and by strands.
class Home {
 public:
  explicit Home(runtime::Core* of) : core(of) {}
  Home(const Home&) = delete;
  Home& operator=(const Home&) = delete;

  // Queues a task that is NOTIFIED and in no queue. Any thread; must not fail, need memory (the inject queue takes more where there is some) or run foreign code but for the allocator.
  virtual void schedule(Task* task, Hint hint) = 0;

  // A local task ended elsewhere than on its thread with an output to drop: brings it there. Others: not called.
  virtual void send_back(Task* task) = 0;

  // A task that is `counted` was freed.
  virtual void forget() = 0;

  // Whether the calling thread may poll and drop this home's tasks.
  virtual bool here() const = 0;

  runtime::Core* const core;

 protected:
  ~Home() = default;
};

}  // namespace noria::task
