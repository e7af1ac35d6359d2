// strand.hpp: a home whose tasks are polled in turn, never two at once, by one runner task on any worker.
// Threads:    schedule from anyone; the queue's tasks are polled by whoever polls the runner.
// Invariants: T1 tasks of the strand are polled inside the runner's poll only, and a task has one poll at a time; so no
//             two of the strand overlap. T2 the runner is notified whenever the queue is not empty. T3 a task
//             that is PENDING is in no queue: the strand is not held across it.
// Lifetime:   two parts: the users (handle and tasks, counted) and the runner. When the last user goes the runner is aborted;
//             when both are gone the memory goes.
#pragma once

#include <cstdint>

#include "sync/mutex.hpp"
#include "task/home.hpp"
#include "task/queue.hpp"

namespace noria::task {

class Strand final : public Home {
 public:
  Strand(runtime::Core* core, Home* base);

  // The runner's vtable; its state is the strand. Whoever makes the strand spawns it and calls bind().
  static const noria_task_vtable kRunner;
  void bind(Task* runner);

  void add_user();
  void remove_user();

  void schedule(Task* task, Hint hint) override;
  void send_back(Task* task) override;
  void forget() override { remove_user(); }
  bool here() const override { return true; }

 private:
  static constexpr std::uint32_t kPollsInTurn = 32;  // of one poll of the runner, then others have their turn

  static std::int32_t run_queue(void* state, const noria_cx* cx);
  static void drop_runner(void* state);
  Task* pop();
  void remove_part();

  Home* const base_;  // where tasks go once the runner is gone
  Task* runner_ = nullptr;
  sync::Mutex lock_;
  Queue queue_;          // guarded by lock_
  bool closed_ = false;  // guarded by lock_: the runner is gone
  Atomic<std::uint64_t> users_{1};
  Atomic<std::uint32_t> parts_{2};
};

}  // namespace noria::task
