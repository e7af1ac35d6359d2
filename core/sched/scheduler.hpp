// scheduler.hpp: what the workers of one runtime share: inject queue, idle word, poller's part, and the wakes between them.
// Threads:    any, unless a line says otherwise.
// Invariants: see idle_word.hpp (I1-I4). G1 the poller's part is held by one worker at a time; only it calls Driver::wait. G2 sleep_deadline_
//             is what the sleeping poller will wake for: whoever arms an earlier deadline that nobody awake looks after rings it.
// Lifetime:   owned by the runtime's core, with its workers; outlives their threads.
#pragma once

#include <cstdint>
#include <memory>

#include "base/allocated.hpp"
#include "base/slab.hpp"
#include "sched/worker.hpp"
#include "sync/idle_word.hpp"
#include "task/context.hpp"
#include "task/driver.hpp"
#include "task/home.hpp"
#include "task/inject.hpp"

namespace noria::sched {

struct Config {
  std::uint32_t workers = 1;
  bool current_thread = false;
  std::uint32_t inject_interval = 0;  // polls between two looks at the inject queue; 0: tuned to the polls' times
  std::uint64_t seed = 0;
  void (*on_park)(void*) = nullptr;
  void (*on_unpark)(void*) = nullptr;
  void* hook_data = nullptr;
};

class Scheduler final : public task::Home, public Allocated {
 public:
  // How much queued work, in estimated poll time, is worth the wake of another worker: about ten wakes across CPUs.
  static constexpr std::uint64_t kBacklogNs = 500'000;
  static constexpr std::uint64_t kSentryTickNs = 2'000'000;
  // Ticks that find all parked, and nobody polled since the one before, until the sentry sleeps too: to ring it costs as much as one or two more.
  static constexpr std::uint32_t kQuietTicks = 1;

  // `slabs`: one for each worker.
  Scheduler(runtime::Core* core, task::Driver& driver, const Config& config, const Vector<Slab*>& slabs);

  // --- Home of the tasks that any worker may poll
  void schedule(task::Task* task, task::Hint hint) override;
  void send_back(task::Task* task) override;
  void forget() override {}
  bool here() const override { return true; }

  Worker& worker(std::uint32_t index) { return *workers_[index]; }
  std::uint32_t workers() const { return config_.workers; }
  const Config& config() const { return config_; }
  task::Driver& driver() { return driver_; }
  task::Inject& inject() { return inject_; }
  sync::IdleWord& idle() { return idle_; }

  // Wakes a worker for something that was pushed from outside, if none is awake.
  void ensure_awake();
  // One more worker for a backlog that is worth it, unless somebody searches already. `from` counts it.
  void wake_for_backlog(Worker& from);
  // Wakes this worker in any case.
  void wake_worker(std::uint32_t index);
  // Lets the one who sleeps in the reactor look at the deadlines again.
  void ring_poller();
  // A deadline was armed that no awake worker looks after.
  void deadline_armed(std::uint64_t deadline_ns);
  // Lets a parked worker look at what changed. False: it is awake, or will look anyhow.
  bool ring(std::uint32_t worker);

  // --- the poller's part
  [[nodiscard]] bool take_poller(std::uint32_t worker);
  void leave_poller();
  std::uint32_t poller() const {
    // ORDER: seq_cst, after a push or an arm; pairs with take_poller.
    return poller_.load(NORIA_SEQ_CST);
  }
  // ORDER: seq_cst, before the poller's last look at the deadlines; pairs with deadline_armed.
  void set_sleep_deadline(std::uint64_t deadline_ns) { sleep_deadline_ns_.store(deadline_ns, NORIA_SEQ_CST); }
  // ORDER: release, a late one costs a ring that nobody needed.
  void clear_sleep_deadline() { sleep_deadline_ns_.store(0, NORIA_RELEASE); }
  // ORDER: seq_cst, as set_sleep_deadline.
  std::uint64_t sleep_deadline() const { return sleep_deadline_ns_.load(NORIA_SEQ_CST); }

  // --- a current-thread runtime belongs to the first thread that drives it, between turns too
  void set_owner() {
    // ORDER: release, pairs with owned_here on another thread, which sees that it is not the one.
    owner_.store(&task::t_context, NORIA_RELEASE);
  }
  // ORDER: acquire, as above.
  bool owned_here() const { return owner_.load(NORIA_ACQUIRE) == &task::t_context; }

  // --- the end
  void stop();
  // ORDER: seq_cst, read after prepare(): a worker that sleeps is seen by stop().
  bool stopping() const { return stopping_.load(NORIA_SEQ_CST); }

 private:
  void undo_wake();
  bool notify(std::uint32_t index);
  bool notify_one(bool poller_first);

  task::Driver& driver_;
  const Config config_;
  Vector<std::unique_ptr<Worker>> workers_;
  task::Inject inject_;
  alignas(kCacheLine) sync::IdleWord idle_;
  alignas(kCacheLine) Atomic<std::uint32_t> poller_{sync::IdleWord::kNobody};
  Atomic<std::uint64_t> sleep_deadline_ns_{0};
  Atomic<const task::Context*> owner_{nullptr};
  Atomic<bool> stopping_{false};
};

// What a thread numbers by itself, so that spawners share nothing.
struct ThreadIds {
  std::uint32_t number = 0;  // of this thread, from 1 on; 0: it has none yet
  std::uint64_t tasks = 0;   // made by this thread

  void number_thread();
};
extern thread_local constinit ThreadIds t_ids __attribute__((tls_model("initial-exec")));

// A number that differs between threads: spreads them over shards.
inline std::uint32_t thread_number() {
  if (NORIA_UNLIKELY(t_ids.number == 0)) t_ids.number_thread();
  return t_ids.number;
}

// Unique in the process, never zero.
inline std::uint64_t next_task_id() { return (std::uint64_t{thread_number()} << 40) + ++t_ids.tasks; }

}  // namespace noria::sched
