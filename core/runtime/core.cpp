#include "runtime/core.hpp"

#include <cerrno>
#include <cstdio>

#include "base/allocator.hpp"
#include "base/assert.hpp"
#include "blocking/pool.hpp"
#include "reactor/reactor.hpp"
#include "runtime/driver.hpp"
#include "runtime/thread_waker.hpp"
#include "sched/scheduler.hpp"
#include "timer/wheel.hpp"

namespace noria::runtime {

using task::t_context;

Core::Core() : fork_generation_(fork_generation()) {}

Core::~Core() {
  if (pool_ != nullptr) pool_->release();
}

std::int32_t Core::create(const noria_runtime_options* options, Core** out) {
  void* memory = raw_alloc(sizeof(Core), alignof(Core));
  if (memory == nullptr) return -ENOMEM;
  auto* core = new (memory) Core;
  std::int32_t error = read_options(options, core->options_);
  if (error == NORIA_OK) error = core->build();
  if (error != NORIA_OK) {
    core->orphan();
    return error;
  }
  *out = core;
  return NORIA_OK;
}

std::int32_t Core::build() {
  clock_.use(options_.clock_now, options_.clock_data);
  if (options_.clock_paused) clock_.pause();
  try {
    Vector<Slab*> worker_slabs;
    if (std::int32_t error = build_slabs(worker_slabs); error != NORIA_OK) return error;
    if (std::int32_t error = reactor::Reactor::create(options_.reactor, reactor_); error != NORIA_OK) return error;
    driver_ = std::make_unique<EngineDriver>(*this);
    for (std::uint32_t i = 0; i <= options_.workers; ++i) wheels_.push_back(make_allocated<timer::Wheel>(now_ns()));
    if (std::int32_t error = build_pool(); error != NORIA_OK) return error;
    sched::Config config;
    config.workers = options_.workers;
    config.current_thread = options_.current_thread();
    config.inject_interval = options_.inject_interval;
    config.seed = options_.seed;
    config.on_park = options_.on_worker_park;
    config.on_unpark = options_.on_worker_unpark;
    config.hook_data = options_.hook_data;
    scheduler_ = make_allocated<sched::Scheduler>(this, *driver_, config, worker_slabs);
    threads_.reserve(options_.workers);
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  }
  if (options_.current_thread()) {
    scheduler_->worker(0).await_owner();
    return NORIA_OK;
  }
  return start_threads();
}

std::int32_t Core::build_slabs(Vector<Slab*>& workers) {
  slabs_.reserve(options_.workers + kGuests);
  workers.reserve(options_.workers);
  for (std::uint32_t i = 0; i < options_.workers + kGuests; ++i) {
    Slab* slab = Slab::create(slab_ended, this);
    if (slab == nullptr) return -ENOMEM;
    slabs_.push_back(slab);
    if (i < options_.workers) {
      workers.push_back(slab);
    } else {
      guests_[i - options_.workers].slab = slab;
    }
  }
  return NORIA_OK;
}

std::int32_t Core::build_pool() {
  blocking::PoolOptions pool;
  pool.max_threads[static_cast<std::size_t>(blocking::PoolClass::kFiles)] = options_.pool_file_threads;
  pool.max_threads[static_cast<std::size_t>(blocking::PoolClass::kNames)] = options_.pool_name_threads;
  pool.max_threads[static_cast<std::size_t>(blocking::PoolClass::kUser)] = options_.pool_user_threads;
  if (options_.pool_queue_limit != NORIA_UNLIMITED) {
    for (std::uint64_t& limit : pool.queue_limit) limit = options_.pool_queue_limit;
  }
  pool.keep_alive_ns = options_.pool_keep_alive_ns;
  pool.on_thread_made = pool_thread_made;
  pool.on_thread_failed = pool_thread_failed;
  pool.on_thread_start = pool_thread_start;
  pool.on_thread_stop = pool_thread_stop;
  pool.hook_data = this;
  char name[48];
  std::snprintf(name, sizeof name, "%s-pool", options_.name);
  pool.thread_name = name;
  return blocking::Pool::create(pool, &pool_);
}

void* Core::alloc_guest(SlotKind kind, std::size_t size, std::size_t align) noexcept {
  Guest& guest = guests_[sched::thread_number() % kGuests];
  sync::MutexLock guard(guest.lock);
  return guest.slab == nullptr ? nullptr : guest.slab->alloc(kind, size, align);
}

// A task that is ready to be queued, in a fresh slot.
static inline task::Task* make_ready(void* slot, task::Home* home, bool counted, const noria_task_vtable* vtable,
                                     void* state, task::Task** out) {
  task::Task* task = task::construct(slot, vtable, state, home, sched::next_task_id());
  task->counted = counted;
  using Word = task::StateWord;
  if (out == nullptr) {
    task->word.init(Word::kNotified, 1);
  } else {
    task->make_joining();
    task->word.init(Word::kNotified | Word::kJoinInterest, 2);
    *out = task;
  }
  return task;
}

// As spawn_at the scheduler, without the detours: to whose worker the calling thread is, is asked once.
std::int32_t Core::spawn(const noria_task_vtable* vtable, void* state, task::Task** out) {
  sched::Worker* worker = worker_here();
  if (NORIA_UNLIKELY(worker == nullptr)) return spawn_at(scheduler_.get(), false, vtable, state, out);
  if (NORIA_UNLIKELY(closed())) return -NORIA_ESHUTDOWN;
  void* slot = t_context.slab->alloc(SlotKind::kTask, task::Task::kHeader, kCacheLine);
  if (NORIA_UNLIKELY(slot == nullptr)) return -ENOMEM;
  worker->push(make_ready(slot, scheduler_.get(), false, vtable, state, out), task::Hint::kSpawn);
  return NORIA_OK;
}

std::int32_t Core::spawn_at(task::Home* home, bool counted, const noria_task_vtable* vtable, void* state,
                            task::Task** out) {
  if (NORIA_UNLIKELY(closed())) return -NORIA_ESHUTDOWN;
  void* slot = alloc(SlotKind::kTask, task::Task::kHeader, kCacheLine);
  if (NORIA_UNLIKELY(slot == nullptr)) return -ENOMEM;
  home->schedule(make_ready(slot, home, counted, vtable, state, out), task::Hint::kSpawn);
  return NORIA_OK;
}

bool Core::owned_here() const {
  // ORDER: acquire, pairs with begin_driving.
  return options_.current_thread() && owner_.load(NORIA_ACQUIRE) == thread_token();
}

std::int32_t Core::spawn_local(const noria_task_vtable* vtable, void* state, task::Task** out) {
  if (sched::Worker* worker = worker_here(); worker != nullptr) return spawn_on(*worker, vtable, state, out);
  if (!owned_here()) return -NORIA_EWRONGTHREAD;
  // Between two turns: it is driven for this moment, so that no other thread ends it meanwhile.
  if (take_worker(kDriven) != kFree) return -NORIA_ESHUTDOWN;
  std::int32_t error = spawn_on(scheduler_->worker(0), vtable, state, out);
  // ORDER: seq_cst, as end_driving.
  driving_.store(kFree, NORIA_SEQ_CST);
  (void)end_if_closing(0);
  return error;
}

// The calling thread owns the worker, which schedule() knows or finds in its inbox. Refused from the claim on: who claims a current-thread
// runtime from another thread has seen that it has no local tasks.
std::int32_t Core::spawn_on(sched::Worker& worker, const noria_task_vtable* vtable, void* state, task::Task** out) {
  // ORDER: acquire, pairs with claim.
  if (phase_.load(NORIA_ACQUIRE) != kOpen) return -NORIA_ESHUTDOWN;
  void* slot = alloc(SlotKind::kTask, task::Task::kHeader, kCacheLine);
  if (slot == nullptr) return -ENOMEM;
  task::Task* task = task::construct(slot, vtable, state, &worker, sched::next_task_id());
  task->local = true;
  task->counted = true;
  worker.count_local();
  using Word = task::StateWord;
  if (out == nullptr) {
    task->word.init(Word::kNotified | Word::kLocal, 1);
  } else {
    task->make_joining();
    task->word.init(Word::kNotified | Word::kLocal | Word::kJoinInterest, 2);
    *out = task;
  }
  worker.schedule(task, task::Hint::kSpawn);
  return NORIA_OK;
}

std::int32_t Core::create_task(task::Home* home, bool counted, const noria_task_vtable* vtable, std::size_t size,
                               std::size_t align, void** state, task::Task** out) {
  if (align == 0 || (align & (align - 1)) != 0 || align > NORIA_MAX_ALIGN) return -EINVAL;
  if (size > SIZE_MAX / 2) return -ENOMEM;
  if (closed()) return -NORIA_ESHUTDOWN;
  std::size_t offset = (task::Task::kHeader + align - 1) & ~(align - 1);
  void* slot = alloc(SlotKind::kTask, offset + size, align < kCacheLine ? kCacheLine : align);
  if (slot == nullptr) return -ENOMEM;
  void* room = static_cast<char*>(slot) + offset;
  task::Task* task = task::construct(slot, vtable, room, home, sched::next_task_id());
  task->counted = counted;
  task->make_joining();
  task->word.init(task::StateWord::kInit | task::StateWord::kJoinInterest, 2);
  *state = room;
  *out = task;
  return NORIA_OK;
}

std::int32_t Core::start(task::Task* task) {
  if (closed()) return -NORIA_ESHUTDOWN;
  task->word.start();
  task->home->schedule(task, task::Hint::kSpawn);
  return NORIA_OK;
}

task::Home* Core::home() { return scheduler_.get(); }

bool Core::timer_arm(timer::Timer& timer, std::uint64_t deadline_ns) {
  sched::Worker* worker = worker_here();
  timer::Wheel& wheel = *wheels_[worker != nullptr ? worker->index() : options_.workers];
  timer::Armed armed =
      wheel.arm(timer, deadline_ns, worker != nullptr ? timer::Arming::kFresh : timer::Arming::kPlaced);
  if (armed == timer::Armed::kEarliest && worker == nullptr) scheduler_->deadline_armed(wheel.next_deadline_ns());
  return armed != timer::Armed::kClosed;
}

bool Core::timer_reset(timer::Timer& timer, std::uint64_t deadline_ns) {
  sched::Worker* worker = worker_here();
  timer::Wheel* mine = worker != nullptr ? wheels_[worker->index()].get() : nullptr;
  switch (timer::Wheel::reset(timer, deadline_ns, mine)) {
    case timer::Reset::kLater:
      return true;
    case timer::Reset::kEarliest:
      scheduler_->deadline_armed(deadline_ns);
      return true;
    case timer::Reset::kFired:
    case timer::Reset::kCancelled:
      return false;
  }
  return false;
}

bool Core::timer_cancel(timer::Timer& timer) {
  sched::Worker* worker = worker_here();
  return timer::Wheel::cancel(timer, worker != nullptr ? wheels_[worker->index()].get() : nullptr);
}

void Core::clock_changed() { scheduler_->ring_poller(); }

void Core::hold_clock() { clock_holds_.hold(); }

void Core::release_clock() {
  if (clock_holds_.release() && clock_.paused()) clock_changed();
}

bool Core::jump_clock(std::uint64_t deadline_ns) {
  return clock_.paused() && clock_holds_.jump([this] { return wake_waits(); }, [&] { clock_.advance_to(deadline_ns); });
}

bool Core::clock_held() { return clock_holds_.held() || wake_waits(); }

// A thread in block_on that was woken and has not gone on yet.
bool Core::wake_waits() {
  sync::MutexLock guard(blocked_lock_);
  for (ThreadWaker* waker = blocked_; waker != nullptr; waker = waker->next()) {
    if (waker->notified()) return true;
  }
  return false;
}

std::uint64_t Core::live_tasks() {
  std::uint64_t count = 0;
  for (Slab* slab : slabs_) {
    slab->for_each_live(SlotKind::kTask, [&count](void* slot) {
      std::uint64_t word = static_cast<task::Task*>(slot)->word.load();
      if (task::StateWord::refs(word) != 0 && (word & task::StateWord::kComplete) == 0) ++count;
    });
  }
  return count;
}

std::uint64_t Core::armed_timers() const {
  std::uint64_t sum = 0;
  for (const auto& wheel : wheels_) sum += wheel->size();
  return sum;
}

std::int32_t Core::fd() const { return reactor_->fd(); }

}  // namespace noria::runtime
