// crew_thread.cpp: the life of one thread of a crew: search, run, rest, keep watch, retire.
#include <sys/resource.h>

#include <cstring>

#include "base/clock.hpp"
#include "blocking/crew.hpp"
#include "sync/futex.hpp"

namespace noria::blocking {
namespace {

constexpr std::uint64_t kWorthNs = 500'000;  // a backlog that pays a second runner
constexpr std::uint64_t kTickNs = 500'000;   // the sentry's
constexpr int kSpins = 200;                  // looks before sleeping: about 5 us

// How often this thread has gone to sleep by itself: not because its time was up.
long own_sleeps() noexcept {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

}  // namespace

void copy_job_name(char* to, const char* from) noexcept {
  std::size_t n = from == nullptr ? 0 : ::strnlen(from, kJobNameSize - 1);
  if (n != 0) std::memcpy(to, from, n);
  to[n] = '\0';
}

void Crew::work(Call call) noexcept {
  Worker self;
  self.call = call;
  self.since_ns = monotonic_ns();
  lock_.lock();
  self.all_next = all_;
  if (all_ != nullptr) all_->all_prev = &self;
  all_ = &self;
  bool stays = true;
  if (call.run != nullptr) {
    stays = run_call(self);
  } else {
    --starting_;
  }
  while (stays) stays = search(self);
  (self.all_prev != nullptr ? self.all_prev->all_next : all_) = self.all_next;
  if (self.all_next != nullptr) self.all_next->all_prev = self.all_prev;
  lock_.unlock();
}

// One look at the queue, and what follows from it. False: this thread has left the crew.
bool Crew::search(Worker& self) noexcept {
  if (closed_) {
    --searching_;
    --threads_;
    return false;
  }
  bool as_sentry = self.fresh && sentry_ == nullptr && running_ != 0 && !eager();
  if (as_sentry) return rest(self, true);
  Job* job = queue_.pop();
  if (job == nullptr && self.may_spin && searching_ == 1 && limits_.cpus > 1) {
    spin(self);
    return true;
  }
  if (job == nullptr) return rest(self, false);
  run_job(self, *job);
  return true;
}

void Crew::run_job(Worker& self, Job& job) noexcept {
  --searching_;
  ++running_;
  self.running = true;
  copy_job_name(self.name, job.name);
  bool ask = mean_ns_ >= kLongNs;
  Errand errand = settle();
  lock_.unlock();
  if (errand.wake != nullptr || errand.spawn || errand.discard != nullptr) {
    finish(errand);
    self.since_ns = monotonic_ns();
  }
  long sleeps = ask ? own_sleeps() : -1;
  job.run(&job);
  std::uint64_t end_ns = monotonic_ns();
  bool slept = ask && end_ns - self.since_ns >= kLongNs && own_sleeps() != sleeps;
  lock_.lock();
  note(end_ns - self.since_ns, ask, slept);
  self.since_ns = end_ns;
  self.running = false;
  self.fresh = false;
  self.may_spin = true;
  --running_;
  ++searching_;
  barren_ = false;
}

// The means that eager() goes by; an eighth of the new, seven of the old.
void Crew::note(std::uint64_t job_ns, bool asked, bool slept) noexcept {
  std::uint64_t capped = job_ns < kMeanCapNs ? job_ns : kMeanCapNs;
  mean_ns_ = mean_ns_ - mean_ns_ / 8 + capped / 8;
  if (asked && job_ns >= kLongNs) sleepy_ = sleepy_ - sleepy_ / 8 + (slept ? 32 : 0);
}

bool Crew::run_call(Worker& self) noexcept {
  Call call = self.call;
  self.call = Call{};
  self.running = true;
  copy_job_name(self.name, "(thread of its own)");
  lock_.unlock();
  call.run(call.data);
  self.since_ns = monotonic_ns();
  lock_.lock();
  self.running = false;
  --away_;
  if (closed_ || threads_ >= limits_.max_threads) return false;
  ++threads_;
  ++searching_;
  return true;
}

// The queue is empty and this thread alone searches: submitters need not wake anybody meanwhile.
void Crew::spin(Worker& self) noexcept {
  self.may_spin = false;
  [[maybe_unused]] bool none = missed();
  lock_.unlock();
  for (int i = 0; i < kSpins && !queue_.maybe_filled(); ++i) cpu_pause();
  self.since_ns = monotonic_ns();
  lock_.lock();
}

// Idle until called up, or until there is something to do, or for long enough to leave (false).
bool Crew::rest(Worker& self, bool as_sentry) noexcept {
  --searching_;
  self.may_spin = false;
  enter_idle(self);
  if (as_sentry) begin_watch(self);
  After after = missed() ? After::kSearch : After::kRest;
  self.since_ns = monotonic_ns();
  std::uint64_t leave_ns = saturating_add(self.since_ns, limits_.keep_alive_ns);
  while (after == After::kRest) {
    std::uint64_t until_ns = sentry_ == &self ? self.since_ns + kTickNs : leave_ns;
    lock_.unlock();
    // ORDER: acquire, pairs with the release in call_up(), though the lock orders all else.
    while (self.signal.load(NORIA_ACQUIRE) == 0) {
      std::uint64_t now_ns = monotonic_ns();
      if (now_ns >= until_ns) break;
      sync::futex_wait(self.signal, 0, until_ns == kNever ? kNever : until_ns - now_ns);
    }
    self.since_ns = monotonic_ns();
    lock_.lock();
    // ORDER: relaxed, written under the lock.
    if (self.signal.load(NORIA_RELAXED) != 0) {
      self.signal.store(0, NORIA_RELAXED);  // ORDER: relaxed, as above.
      self.fresh = true;
      return self.call.run == nullptr || run_call(self);
    }
    if (sentry_ == &self) {
      after = tick(self);
    } else if (self.since_ns >= leave_ns) {
      after = retire(self);
      leave_ns = saturating_add(self.since_ns, limits_.keep_alive_ns);
    }
  }
  if (after == After::kGone) return false;
  leave_idle(self);
  ++searching_;
  self.fresh = false;
  return true;
}

void Crew::begin_watch(Worker& self) noexcept {
  sentry_ = &self;
  self.seen_submitted = queue_.submitted();
  self.seen_taken = queue_.taken();
}

Crew::After Crew::tick(Worker& self) noexcept {
  std::uint64_t submitted = queue_.submitted();
  bool stuck = queue_.taken() == self.seen_taken;
  bool quiet = submitted == self.seen_submitted;
  if (!queue_.empty()) {
    bool worth = mean_ns_ >= kLongNs / 10 && queue_.size() * mean_ns_ >= kWorthNs && running_ < limits_.cpus;
    if (stuck || worth || eager()) return After::kSearch;
  } else if (quiet) {
    sentry_ = nullptr;
    return missed() ? After::kSearch : After::kRest;
  }
  begin_watch(self);
  return After::kRest;
}

// The keep-alive is over. While a thread is being made nobody leaves (it may fail).
Crew::After Crew::retire(Worker& self) noexcept {
  if (starting_ != 0) return After::kRest;
  leave_idle(self);
  --threads_;
  if (!missed()) return After::kGone;
  ++threads_;
  enter_idle(self);
  return After::kSearch;
}

}  // namespace noria::blocking
