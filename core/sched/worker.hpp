// worker.hpp: one worker: its ready tasks, the loop that polls them, and how it sleeps.
// Threads:    everything is the owner's (the thread whose context names this worker), but for: take_all, steal_for, the counters, the inbox
//             of local tasks, and the park state.
// Invariants: W1 at most kLifoInARow polls in a row come from the LIFO slot while anything else is queued. W2 the inject queue is looked at
//             every kInjectInterval polls at least, the driver every kDriverInterval or millisecond. W3 a worker parks with empty ring, slot and list.
// Lifetime:   owned by the scheduler; outlives every thread that has been its owner.
#pragma once

#include <cstdint>
#include <span>

#include "base/allocated.hpp"
#include "base/clock.hpp"
#include "base/platform.hpp"
#include "base/slab.hpp"
#include "base/spare_block.hpp"
#include "sched/metrics.hpp"
#include "sync/mutex.hpp"
#include "sync/parker.hpp"
#include "sync/ring.hpp"
#include "task/home.hpp"
#include "task/queue.hpp"

namespace noria::sched {

class Scheduler;

// As a home it is that of its local tasks.
class Worker final : public task::Home, public Allocated {
 public:
  Worker(Scheduler& scheduler, std::uint32_t index, Slab* slab, std::uint64_t seed);
  ~Worker() = default;

  // --- the owner
  // Becomes, and ceases to be, the calling thread's worker.
  void attach();
  void detach();
  // Polls until the scheduler stops, or until this thread has lost the worker (block_in_place).
  void loop();
  // Polls up to `most` ready tasks; answers how many.
  std::uint32_t run_ready(std::uint32_t most);
  // Sleeps until there is something to do or `limit_ns` (an instant of the driver's clock) has come.
  void park(std::uint64_t limit_ns);
  // Puts a task into its queues.
  void push(task::Task* task, task::Hint hint);
  bool has_ready() const;
  // Looks at I/O and time without sleeping.
  void look_at_driver();
  // Counts as parked in the reactor while a foreign loop sleeps for it, and no longer. await_owner: before anybody has been its owner.
  void await_owner();
  void stand_by();
  void take_up();
  // The end of the owner: drops every local task of this worker, queued or not, on this thread. `slabs`: where they may lie.
  void drop_local_tasks(std::span<Slab* const> slabs);
  // A local task was made; forget() tells its end.
  void count_local() {
    // ORDER: relaxed, only the owner asks whether there are any.
    locals_.fetch_add(1, NORIA_RELAXED);
  }
  // ORDER: acquire, pairs with forget.
  bool has_locals() const { return locals_.load(NORIA_ACQUIRE) != 0; }
  Slab* slab() const { return slab_; }
  SpareBlock& spare_block() { return spare_block_; }
  std::uint32_t index() const { return index_; }
  Scheduler& scheduler() const { return scheduler_; }

  // --- Home of local tasks; any thread
  void schedule(task::Task* task, task::Hint hint) override;
  void send_back(task::Task* task) override;
  void forget() override {
    // ORDER: release, the task's end happens before the worker passes to another thread.
    locals_.fetch_sub(1, NORIA_RELEASE);
  }
  bool here() const override;

  // --- any thread
  // Takes everything that others may poll, for shutdown.
  void take_all(task::Queue& to);
  // Takes half of the ring, or (`slot_too`) what is in the LIFO slot, into `thief`, an empty ring of the caller's.
  task::Task* steal_for(sync::Ring<task::Task>& thief, bool slot_too, std::uint32_t& moved);
  WorkerCounters& counters() { return counters_; }
  const WorkerCounters& counters() const { return counters_; }
  std::uint32_t queue_depth() const;
  std::uint32_t stealable() const;  // of queue_depth: not the local tasks
  sync::ParkState& park_state() { return park_state_; }
  // ORDER: acquire, set before prepare(): who sees it parked knows where it sleeps.
  bool in_reactor() const { return in_reactor_.load(NORIA_ACQUIRE); }
  // ORDER: relaxed, a name for a report.
  const char* running_name() const { return running_name_.load(NORIA_RELAXED); }

 private:
  static constexpr std::uint32_t kLifoInARow = 3;
  static constexpr std::uint32_t kDriverInterval = 61;
  static constexpr std::uint32_t kHelpInterval = 16;        // looks at the driver: 16 ms at most, or a thousand polls
  static constexpr std::uint32_t kInjectInterval = 61;      // P5 allows 64
  static constexpr std::uint32_t kInjectIntervalLeast = 4;  // the lock is worth that many polls
  static constexpr std::uint64_t kInjectPatienceNs = 200'000;  // what comes from outside waits about that long at most
  static constexpr std::uint32_t kOlder = 4096;
  static constexpr std::size_t kTaken = sync::Ring<task::Task>::kHalf;  // from the inject queue at once
  static constexpr std::uint32_t kSampleInterval = 64;
  static constexpr std::uint64_t kClockReadNs = 24;  // through the vDSO

  using Taken = task::Task* [kTaken];

  bool execute(task::Task* task);
  bool run_timed(task::Task* task);
  void requeue(task::Task* task);
  task::Task* next();
  task::Task* next_from_afar();
  task::Task* take_lifo();
  task::Task* take_local();
  task::Task* run_local(task::Task* task);
  task::Task* take_inject();
  task::Task* take_queued();
  task::Task* take_in_order();
  task::Task* refill();
  static void fetch(std::span<task::Task* const> tasks);
  task::Task* keep(std::span<task::Task* const> taken);
  task::Task* search();
  task::Task* steal(bool slot_too);
  void end_search();
  void push_ring(task::Task* task, task::Hint hint);
  void overflow(task::Task* task, task::Hint hint);
  void overflow_to_shard();
  std::size_t backlog() const;
  void count_busy();
  void count_poll_time(std::uint64_t elapsed_ns);

  // park.cpp
  struct Sleep;
  bool sorts_timers(std::uint64_t limit_ns);
  void begin_sleep(Sleep& sleep);
  void announce_sleep(Sleep& sleep);
  void sleep_in_reactor(Sleep& sleep);
  std::uint64_t publish_deadline(std::uint64_t limit_ns);
  void jump_or_wait(std::uint64_t deadline_ns, const Sleep& sleep);
  void sleep_in_futex(Sleep& sleep);
  void end_sleep(Sleep& sleep);
  void hear_bell(Sleep& sleep);
  void hand_over_sentry();
  bool must_stay_awake() const;
  void pace_driver(std::uint64_t now_ns);
  std::uint64_t nearest_deadline(std::uint64_t limit_ns) const;
  void fire_for_sleepers(std::uint64_t now_ns);
  // sentry.cpp
  bool tick(Sleep& sleep);
  bool must_act();
  void help_beside_work();
  std::uint64_t steps_since_tick(std::uint32_t index);
  bool stuck_worker_needs_help(Worker& worker, std::uint64_t now_ns);
  std::uint64_t cap_ns(const Sleep& sleep) const;
  void serve_the_stuck();

  Scheduler& scheduler_;
  const std::uint32_t index_;
  Slab* const slab_;
  SpareBlock spare_block_;
  std::uint64_t random_;
  std::uint32_t lifo_polls_ = 0;
  std::uint32_t inject_interval_;
  std::uint32_t until_inject_;
  std::uint32_t until_driver_ = kDriverInterval;
  std::uint32_t until_help_ = kHelpInterval;  // looks at the driver
  std::uint32_t driver_interval_ = kDriverInterval;
  std::uint32_t until_sample_ = kSampleInterval;
  std::uint32_t rotation_ = 0;
  std::uint32_t wake_length_ = 256;    // ring length whose work is worth another worker's wake
  std::uint64_t mean_poll_ns_ = 1000;  // of the sampled polls, weighted towards the last
  std::uint64_t awake_since_ns_;       // or since busy_ns was counted last
  std::uint64_t looked_ns_ = 0;        // when it looked at the driver last
  bool fresh_ = true;                  // it has slept since, so the time between says nothing
  bool searching_ = false;             // counted as searching in the idle word
  bool acting_ = false;                // as the sentry, for a stuck worker: what is due first
  bool helping_ = false;               // then what it has queued
  bool local_turn_ = false;
  std::size_t spilled_ = 0;  // so many of what spilled over into the own shard, at most, are older than ring_
  task::Queue local_;
  Vector<std::uint64_t> seen_steps_;  // polls and parks of each worker at this one's last tick as the sentry
  std::uint64_t ticked_ns_;           // when that was, real time

  alignas(kCacheLine) Atomic<task::Task*> lifo_{nullptr};  // set by the owner, taken by anyone
  Atomic<const char*> running_name_{nullptr};
  WorkerCounters counters_;
  sync::Ring<task::Task> ring_;           // where tasks are pushed
  sync::Ring<task::Task, kOlder> older_;  // what did not fit: older than ring_, and than what is in the own shard

  alignas(kCacheLine) sync::ParkState park_state_;
  Atomic<bool> in_reactor_{false};
  sync::Mutex inbox_lock_;
  task::Queue inbox_;  // guarded by inbox_lock_: local tasks woken elsewhere
  Atomic<std::size_t> inbox_size_{0};
  Atomic<std::uint32_t> locals_{0};  // local tasks whose memory is in use
};

}  // namespace noria::sched
