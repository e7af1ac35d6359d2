#include "sched/worker.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "sched/scheduler.hpp"
#include "task/context.hpp"

namespace noria::sched {

using task::Hint;
using task::t_context;
using task::Task;

Worker::Worker(Scheduler& scheduler, std::uint32_t index, Slab* slab, std::uint64_t seed)
    : Home(scheduler.core),
      scheduler_(scheduler),
      index_(index),
      slab_(slab),
      random_(seed * 0x9E3779B97F4A7C15u + 0x2545F4914F6CDD1Du),
      inject_interval_(scheduler.config().inject_interval != 0 ? scheduler.config().inject_interval : kInjectInterval),
      until_inject_(inject_interval_),
      awake_since_ns_(monotonic_ns()),
      seen_steps_(scheduler.config().workers),
      ticked_ns_(monotonic_ns()) {}

void Worker::attach() {
  t_context.core = core;
  t_context.worker_core = core;
  t_context.worker = this;
  t_context.slab = slab_;
  Slab::set_current(slab_);
  awake_since_ns_ = monotonic_ns();
}

void Worker::detach() {
  count_busy();
  // ORDER: relaxed, read for reports only; the poll that gives the worker away is counted as blocked in place.
  running_name_.store(nullptr, NORIA_RELAXED);
  t_context.core = nullptr;
  t_context.worker_core = nullptr;
  t_context.worker = nullptr;
  t_context.slab = nullptr;
  Slab::set_current(nullptr);
}

// What was awake is counted once, whoever ends it.
void Worker::count_busy() {
  std::uint64_t now_ns = monotonic_ns();
  counters_.busy_ns.add(now_ns - awake_since_ns_);
  awake_since_ns_ = now_ns;
}

// --- the path of every poll, in one piece

inline Task* Worker::take_lifo() {
  // ORDER: relaxed, only the owner makes it non-null.
  if (lifo_.load(NORIA_RELAXED) == nullptr) return nullptr;
  // ORDER: acq_rel, takes it from thieves.
  Task* task = lifo_.exchange(nullptr, NORIA_ACQ_REL);
  if (task == nullptr) return nullptr;
  ++lifo_polls_;
  counters_.lifo_polls.add(1);
  return task;
}

inline Task* Worker::take_in_order() {
  if (Task* task = older_.pop()) return task;
  if (NORIA_UNLIKELY(spilled_ != 0)) {
    if (Task* task = refill()) return task;
  }
  return ring_.pop();
}

inline Task* Worker::take_queued() {
  if (lifo_polls_ < kLifoInARow) {
    if (Task* task = take_lifo()) return task;
  }
  lifo_polls_ = 0;
  return take_in_order();
}

inline Task* Worker::next() {
  if (NORIA_UNLIKELY(--until_inject_ == 0)) {
    if (Task* task = take_inject()) return task;
  }
  // ORDER: relaxed, the look before a park is seq_cst.
  bool locals = !local_.empty() || inbox_size_.load(NORIA_RELAXED) != 0;
  if (NORIA_UNLIKELY(locals)) {
    // Every other turn, so that neither kind waits for the whole of the other.
    local_turn_ = !local_turn_;
    if (local_turn_) {
      if (Task* task = run_local(take_local())) return task;
    }
  }
  if (Task* task = take_queued()) return task;
  if (locals || scheduler_.inject().maybe_filled()) {
    if (Task* task = next_from_afar()) return task;
  }
  return take_lifo();  // a fourth in a row: nobody else waits
}

inline void Worker::push_ring(Task* task, Hint hint) {
  std::uint32_t length = ring_.push(task);
  if (NORIA_UNLIKELY(length == 0)) {
    overflow(task, hint);
  } else if (NORIA_UNLIKELY(length >= wake_length_)) {
    scheduler_.wake_for_backlog(*this);
  }
}

// Behind what is ready.
inline void Worker::requeue(Task* task) {
  if (NORIA_LIKELY(task->home == &scheduler_)) {
    push_ring(task, Hint::kRequeue);
  } else {
    task->home->schedule(task, Hint::kRequeue);
  }
}

// False: this thread has lost the worker meanwhile.
inline bool Worker::execute(Task* task) {
  counters_.polls.add(1);
  // ORDER: relaxed, read for reports only.
  running_name_.store(task->name, NORIA_RELAXED);
  bool again = NORIA_UNLIKELY(--until_sample_ == 0) ? run_timed(task) : task::run(task);
  if (NORIA_UNLIKELY(t_context.worker != this)) {
    if (again) task->home->schedule(task, Hint::kRequeue);
    return false;
  }
  if (again) requeue(task);
  // ORDER: relaxed, as above.
  running_name_.store(nullptr, NORIA_RELAXED);
  if (NORIA_UNLIKELY(--until_driver_ == 0)) look_at_driver();
  return true;
}

void Worker::loop() {
  while (!scheduler_.stopping()) {
    if (NORIA_UNLIKELY(acting_)) serve_the_stuck();
    Task* task = next();
    if (task == nullptr) task = search();
    if (task == nullptr) {
      park(kNever);
      continue;
    }
    if (NORIA_UNLIKELY(searching_)) end_search();  // it was woken to search, and its own queues had something
    if (NORIA_UNLIKELY(!execute(task))) return;
  }
}

std::uint32_t Worker::run_ready(std::uint32_t most) {
  for (std::uint32_t i = 0; i < most; ++i) {
    Task* task = next();
    if (task == nullptr) return i;
    if (!execute(task)) return i + 1;
  }
  return most;
}

bool Worker::run_timed(Task* task) {
  until_sample_ = kSampleInterval;
  std::uint64_t begin_ns = monotonic_ns();
  bool again = task::run(task);
  if (t_context.worker == this) count_poll_time(monotonic_ns() - begin_ns);
  return again;
}

void Worker::count_poll_time(std::uint64_t elapsed_ns) {
  counters_.poll_time[WorkerCounters::bucket(elapsed_ns)].add(1);
  // Reading the clock is no part of the poll.
  elapsed_ns -= elapsed_ns < kClockReadNs ? elapsed_ns : kClockReadNs;
  // One poll that was stuck must not make every short queue look worth a wake for long.
  std::uint64_t sample_ns = elapsed_ns < kNsPerMs ? elapsed_ns : kNsPerMs;
  mean_poll_ns_ = (3 * mean_poll_ns_ + sample_ns) / 4 + 1;
  std::uint64_t length = Scheduler::kBacklogNs / mean_poll_ns_;
  if (scheduler_.config().inject_interval == 0) {
    std::uint64_t polls = kInjectPatienceNs / mean_poll_ns_;
    inject_interval_ =
        static_cast<std::uint32_t>(std::clamp<std::uint64_t>(polls, kInjectIntervalLeast, kInjectInterval));
  }
  wake_length_ = length < 2 ? 2 : static_cast<std::uint32_t>(length < 1'000'000 ? length : 1'000'000);
}

// What an event or a timer wakes, while nothing runs, comes in its order behind what is ready: the LIFO slot is for a task that a running
// or ending one has just given something to do.
void Worker::push(Task* task, Hint hint) {
  // ORDER: relaxed, the owner's own.
  if (running_name_.load(NORIA_RELAXED) == nullptr) hint = Hint::kRequeue;
  // ORDER: relaxed, only the owner makes the slot non-null.
  bool slot_free = hint != Hint::kRequeue && lifo_.load(NORIA_RELAXED) == nullptr;
  if (slot_free) {
    // ORDER: release, publishes the task to a thief of the slot.
    lifo_.store(task, NORIA_RELEASE);
    return;
  }
  if (hint == Hint::kWake) {
    // ORDER: acq_rel, as above; takes the older one back unless a thief was faster.
    Task* older = lifo_.exchange(task, NORIA_ACQ_REL);
    if (older == nullptr) return;
    task = older;
  }
  push_ring(task, hint);
}

// Where events wake tasks and tasks yield, the older half of the ring goes behind what is older still, and all of that is polled before anything in the
// ring: whatever the backlog, what was ready first is polled first. Where they are spawned, or woken out of a poll, it waits in the shard for the own
// regular look or for whoever has nothing to do: a task that splits its work again and again is followed into the depth, else all of its tree would be queued at once.
void Worker::overflow(Task* task, Hint hint) {
  if (hint == Hint::kRequeue && spilled_ == 0 && older_.size() <= kOlder - sync::Ring<Task>::kHalf) {
    counters_.overflow.add(ring_.move_half(older_));
  } else {
    overflow_to_shard();
    if (hint == Hint::kRequeue) spilled_ = scheduler_.inject().spilled(index_);
  }
  std::uint32_t length = ring_.push(task);
  NORIA_ASSERT(length != 0, "half of a full ring was taken, by its owner or by a thief");
  if (backlog() >= wake_length_) scheduler_.wake_for_backlog(*this);
}

void Worker::overflow_to_shard() {
  Task* half[sync::Ring<Task>::kHalf];
  std::uint32_t count = ring_.take_half(half);
  if (count == 0) return;
  counters_.overflow.add(count);
  scheduler_.inject().spill(index_, half);
}

std::size_t Worker::backlog() const { return ring_.size() + older_.size() + scheduler_.inject().size(index_); }

Task* Worker::take_local() {
  // ORDER: relaxed, the look before a park is seq_cst.
  if (NORIA_UNLIKELY(inbox_size_.load(NORIA_RELAXED) != 0)) {
    sync::MutexLock guard(inbox_lock_);
    local_.append(inbox_);
    // ORDER: relaxed, as above.
    inbox_size_.store(0, NORIA_RELAXED);
  }
  return local_.pop();
}

// The look that comes in any case (P5): at what came from outside, and at what spawns have spilled over from here (what events have is polled before the
// ring anyhow). Of what it finds one is polled at once. Where the ring has no room for more, either kind has its turn.
Task* Worker::take_inject() {
  until_inject_ = std::max<std::uint32_t>(inject_interval_, 2);  // what is queued here has its turn in between
  task::Inject& inject = scheduler_.inject();
  bool own = spilled_ == 0 && inject.spilled(index_) != 0;
  Taken taken;
  std::span<Task*> room(taken, std::clamp<std::size_t>((sync::Ring<Task>::kSlots - ring_.size()) / 4, 1, kTaken));
  std::size_t outside = !own ? room.size() : room.size() > 1 ? (room.size() + 1) / 2 : rotation_ % 2;
  std::size_t count = outside != 0 ? inject.pop_outside(rotation_, room.first(outside)) : 0;
  ++rotation_;
  if (own) count += inject.pop_spilled(index_, room.subspan(count));
  return keep(room.first(count));
}

// They may not have been touched for long, or by another worker: their lines are fetched all at once, not one after the other when they are polled.
void Worker::fetch(std::span<Task* const> tasks) {
  for (Task* task : tasks) __builtin_prefetch(task, 1);
}

// Answers the first, and queues the others; there is room for them.
Task* Worker::keep(std::span<Task* const> taken) {
  if (taken.empty()) return nullptr;
  fetch(taken);
  if (std::span<Task* const> later = taken.subspan(1); !later.empty()) {
    std::uint32_t length = ring_.push_many(later);
    NORIA_ASSERT(length != 0, "no more was taken than fits");
    if (length >= wake_length_) scheduler_.wake_for_backlog(*this);
  }
  return taken.front();
}

// older_ is empty. What spawns have spilled since events did last is not older than the ring.
Task* Worker::refill() {
  Taken taken;
  std::size_t count = scheduler_.inject().pop_spilled(index_, std::span(taken, std::min(spilled_, kTaken)));
  spilled_ = count == 0 ? 0 : spilled_ - count;
  if (count == 0) return nullptr;
  fetch(std::span(taken, count));
  for (Task* task : std::span(taken, count).subspan(1)) {
    std::uint32_t length = older_.push(task);
    NORIA_ASSERT(length != 0, "it was empty");
  }
  return taken[0];
}

// The ring was empty, but for what a local task's end has woken.
Task* Worker::next_from_afar() {
  if (Task* task = run_local(take_local())) return task;
  Taken taken;
  std::size_t most = std::min<std::size_t>(kTaken, sync::Ring<Task>::kSlots - ring_.size() + 1);
  return keep(std::span(taken, scheduler_.inject().pop(index_, std::span(taken, most))));
}

// A local task that is complete was sent back for its output; everything else is polled.
Task* Worker::run_local(Task* task) {
  while (task != nullptr && (task->word.load() & task::StateWord::kComplete) != 0) {
    // ORDER: relaxed, for the report: what is dropped is named as what is polled (P7).
    const char* before = running_name_.load(NORIA_RELAXED);
    // ORDER: relaxed, as above.
    running_name_.store(task->name, NORIA_RELAXED);
    task::finish_send_back(task);
    // ORDER: relaxed, as above.
    running_name_.store(before, NORIA_RELAXED);
    task = local_.pop();
  }
  return task;
}

Task* Worker::search() {
  if (scheduler_.workers() == 1) return nullptr;
  if (helping_) {
    helping_ = false;
    Task* task = steal(true);
    end_search();
    return task;
  }
  if (!searching_) {
    if (scheduler_.idle().hint().awake() <= 1) return nullptr;  // the others are parked, their rings are empty
    if (!scheduler_.idle().start_search(scheduler_.workers())) return nullptr;
    searching_ = true;
  }
  Task* task = steal(false);
  if (task != nullptr) end_search();
  return task;
}

void Worker::end_search() {
  if (!searching_) return;
  searching_ = false;
  scheduler_.idle().stop_search();
  if (backlog() >= wake_length_) scheduler_.wake_for_backlog(*this);
}

Task* Worker::steal(bool slot_too) {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  std::uint32_t count = scheduler_.workers();
  auto start = static_cast<std::uint32_t>(random_ % count);
  for (std::uint32_t i = 0; i < count; ++i) {
    std::uint32_t victim = (start + i) % count;
    if (victim == index_) continue;
    std::uint32_t moved = 0;
    Task* task = scheduler_.worker(victim).steal_for(ring_, slot_too, moved);
    if (task == nullptr) continue;
    counters_.steals.add(moved);
    return task;
  }
  return nullptr;
}

Task* Worker::steal_for(sync::Ring<Task>& thief, bool slot_too, std::uint32_t& moved) {
  if (Task* task = older_.steal_into(thief, moved)) return task;
  if (Task* task = ring_.steal_into(thief, moved)) return task;
  // ORDER: acq_rel, takes the task from its owner, who published it.
  Task* task = slot_too ? lifo_.exchange(nullptr, NORIA_ACQ_REL) : nullptr;
  moved = task != nullptr ? 1 : 0;
  return task;
}

std::uint32_t Worker::stealable() const {
  // ORDER: relaxed, a hint.
  return ring_.size() + older_.size() + (lifo_.load(NORIA_RELAXED) != nullptr ? 1 : 0);
}

std::uint32_t Worker::queue_depth() const {
  // ORDER: relaxed, a hint.
  return stealable() + static_cast<std::uint32_t>(inbox_size_.load(NORIA_RELAXED));
}

bool Worker::has_ready() const {
  // ORDER: relaxed, the owner's own.
  if (ring_.size() != 0 || older_.size() != 0 || lifo_.load(NORIA_RELAXED) != nullptr || !local_.empty()) return true;
  // ORDER: seq_cst, the look before a park; pairs with schedule().
  return inbox_size_.load(NORIA_SEQ_CST) != 0;
}

// A local task: to the list here, or to the inbox and its worker's bell.
void Worker::schedule(Task* task, Hint) {
  if (t_context.worker == this) {
    local_.push(task);
    return;
  }
  {
    sync::MutexLock guard(inbox_lock_);
    inbox_.push(task);
    // ORDER: seq_cst, before the look at the park state; pairs with has_ready after prepare().
    inbox_size_.store(inbox_.size(), NORIA_SEQ_CST);
  }
  if (park_state_.parked()) scheduler_.wake_worker(index_);
}

void Worker::send_back(Task* task) { schedule(task, Hint::kWake); }

bool Worker::here() const { return t_context.worker == this || scheduler_.owned_here(); }

}  // namespace noria::sched
