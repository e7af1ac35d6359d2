#include "blocking/crew.hpp"

#include <cerrno>

#include "blocking/pool.hpp"
#include "sync/futex.hpp"

namespace noria::blocking {
namespace {

void discard_all(Job* job) noexcept {
  while (job != nullptr) {
    Job* next = job->next;
    job->discard(job);
    job = next;
  }
}

}  // namespace

Crew::Crew(Pool& pool, PoolClass pool_class, const CrewLimits& limits) noexcept
    : pool_(pool), class_(pool_class), limits_(limits), mean_ns_(kMeanCapNs), sleepy_(256) {}

// Jobs are such that one more thread per waiting job pays.
bool Crew::eager() const noexcept {
  return mean_ns_ >= kLongNs && (sleepy_ >= kSleepyShare || running_ < limits_.cpus);
}

bool Crew::can_grow() const noexcept { return threads_ < limits_.max_threads && (!barren_ || threads_ == 0); }

bool Crew::watched() const noexcept {
  if (closed_) return false;
  if (searching_ != 0) return true;
  if (sentry_ != nullptr && running_ != 0 && !eager()) return true;
  return idle_ == nullptr && threads_ >= limits_.max_threads;
}

// C1 and C2 of the sleep protocol: true if a job is there and nobody is certain to look.
bool Crew::missed() noexcept { return watch_.missed(watched(), queue_); }

// Ends every change of roles: makes sure of C2 by making a thread search.
Crew::Errand Crew::settle() noexcept {
  Errand errand;
  if (!missed()) return errand;
  if (closed_) {
    errand.discard = queue_.take_all();  // came between close() and their submitter's look
    return errand;
  }
  if (idle_ != nullptr) {
    errand.wake = call_up();
  } else if (!can_grow()) {
    return errand;  // the running threads look when their jobs return; watch_ stays 0: the next submitter tries again
  } else {
    ++threads_;
    ++searching_;
    ++starting_;
    errand.spawn = true;
  }
  [[maybe_unused]] bool none = missed();
  return errand;
}

void Crew::finish(Errand errand) noexcept {
  while (true) {
    if (errand.wake != nullptr) sync::futex_wake(errand.wake->signal);
    discard_all(errand.discard);
    if (!errand.spawn || pool_.start_thread(*this, {}) == 0) return;
    sync::MutexLock lock(lock_);
    --threads_;
    --searching_;
    --starting_;
    barren_ = true;
    if (threads_ != 0) {
      errand = settle();
    } else {
      // Only if all threads ended between a submitter's two looks, and now none can be made.
      errand = Errand{};
      if (missed()) errand.discard = queue_.take_all();
    }
  }
}

std::int32_t Crew::make_first_thread() noexcept {
  std::int32_t error = pool_.start_thread(*this, {});
  if (error != 0) return error;
  ++threads_;
  ++searching_;
  ++starting_;
  return 0;
}

std::int32_t Crew::submit(Job& job) noexcept {
  job.pool_class = class_;
  if (!watch_.hint() || !queue_.use_credit()) return submit_locked(job);
  queue_.push(job);                              // S1; the job is not ours any more
  if (NORIA_LIKELY(watch_.certain())) return 0;  // S2
  lock_.lock();
  barren_ = false;
  Errand errand = settle();
  lock_.unlock();
  finish(errand);
  return 0;
}

std::int32_t Crew::submit_locked(Job& job) noexcept {
  Errand errand;
  {
    sync::MutexLock lock(lock_);
    if (closed_) return -ESHUTDOWN;
    if (threads_ == 0) {
      std::int32_t error = make_first_thread();
      if (error != 0) return error;
    }
    if (!queue_.grant(limits_.queue_limit)) return -EAGAIN;
    queue_.append(job);
    barren_ = false;
    errand = settle();
  }
  finish(errand);
  return 0;
}

bool Crew::cancel(Job& job) noexcept {
  sync::MutexLock lock(lock_);
  return queue_.remove(job);
}

std::int32_t Crew::run_thread(Call call) noexcept {
  lock_.lock();
  if (closed_) {
    lock_.unlock();
    return -ESHUTDOWN;
  }
  ++away_;
  if (idle_ == nullptr || starting_ != 0) {
    lock_.unlock();
    std::int32_t error = pool_.start_thread(*this, call);
    if (error == 0) return 0;
    sync::MutexLock lock(lock_);
    --away_;
    return error;
  }
  Worker* worker = call_up();
  --searching_;
  --threads_;
  worker->call = call;
  Errand errand = settle();
  lock_.unlock();
  sync::futex_wake(worker->signal);
  finish(errand);
  return 0;
}

void Crew::close() noexcept {
  lock_.lock();
  closed_ = true;
  [[maybe_unused]] bool none = missed();
  Job* dropped = queue_.take_all();
  while (idle_ != nullptr) sync::futex_wake(call_up()->signal);
  lock_.unlock();
  discard_all(dropped);
}

CrewMetrics Crew::metrics() noexcept {
  sync::MutexLock lock(lock_);
  return {threads_ + away_, idle_count_, queue_.size()};
}

std::size_t Crew::running(RunningJob* out, std::size_t capacity, std::uint64_t now_ns) noexcept {
  sync::MutexLock lock(lock_);
  std::size_t count = 0;
  for (Worker* w = all_; w != nullptr; w = w->all_next) {
    if (!w->running) continue;
    if (count < capacity) {
      RunningJob& entry = out[count];
      copy_job_name(entry.name, w->name);
      entry.pool_class = class_;
      entry.running_ns = now_ns > w->since_ns ? now_ns - w->since_ns : 0;
    }
    ++count;
  }
  return count;
}

void Crew::enter_idle(Worker& self) noexcept {
  self.idle_prev = nullptr;
  self.idle_next = idle_;
  if (idle_ != nullptr) idle_->idle_prev = &self;
  idle_ = &self;
  ++idle_count_;
}

void Crew::leave_idle(Worker& self) noexcept {
  (self.idle_prev != nullptr ? self.idle_prev->idle_next : idle_) = self.idle_next;
  if (self.idle_next != nullptr) self.idle_next->idle_prev = self.idle_prev;
  if (sentry_ == &self) sentry_ = nullptr;
  --idle_count_;
}

// The thread that went idle last, its memory still warm, shall search. To be woken by the caller.
Worker* Crew::call_up() noexcept {
  Worker* worker = idle_;
  leave_idle(*worker);
  ++searching_;
  // ORDER: release, pairs with the acquire in rest().
  worker->signal.store(1, NORIA_RELEASE);
  return worker;
}

}  // namespace noria::blocking
