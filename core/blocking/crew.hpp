// crew.hpp: the threads of one class of blocking jobs: when they sleep, wake, come and go.
//
// A thread of the crew is in one of four roles. All changes happen under lock_:
//
//   searching   awake (or woken, or being created) and about to look at the queue
//   running     in a job; looks at the queue when the job returns
//   idle        asleep, on the idle list, the latest first; ends after the keep-alive
//   sentry      an idle thread, at most one, that sleeps in short ticks and looks in between
//
// THE SLEEP PROTOCOL. watch_ is the one word that a submitter reads. It is not zero only if somebody
// is certain to look at the queue soon: a thread is searching; or a sentry is there, a job runs and
// jobs are short (see below); or none is idle and the crew is full, so that each looks when its job
// returns.
//
//   submitter                                thread of the crew, under lock_
//   S1  push the job        (seq_cst)        C1  change roles; store watch_       (seq_cst)
//   S2  load watch_         (seq_cst)        C2  if it became 0: look at the queue (seq_cst)
//       0: lock, do as C1, C2                    a job there: make a thread searching, store watch_
//
// No job is lost: take the single order of the four. If S2 reads a value that is not zero, then a
// later C1 that makes it zero stands after S2, so after S1, and its C2 sees the job. If S2 reads
// zero, the submitter itself does C1 and C2 under the lock. So whenever lock_ is free, a queue with a
// job implies watch_ != 0, or a submitter between S1 and its lock. And watch_ != 0 is kept: a
// searching thread either takes a job, and then does C1 and C2, or goes idle by C1 and C2; a running
// one becomes searching; a sentry leaves only by C1 and C2. A submitter that reads zero before it
// pushes takes the lock first and appends there, so that what can go wrong (closed, no thread can be
// made, limit) goes wrong before the job is in the queue.
//
// The first thread is made under lock_, so that nobody counts on a thread that cannot be made; later
// ones outside it, and while one is being made no idle thread ends: if it fails, somebody is left who
// looks when its job returns. watch_ then stays zero, so that the next submitter tries again.
//
// GROWING. A wake costs tens of microseconds of two CPUs, a job perhaps 50 ns. So the crew keeps the
// mean time of its jobs. While they are long (10 us, as at first) whoever takes a job and leaves others
// behind makes one more thread search, unless jobs are seen never to sleep and there are as many
// runners as CPUs. While they are short, the second thread becomes the sentry: it takes a job only if
// none has been taken for a tick (the running ones are stuck), or if the backlog is worth half a
// millisecond and a CPU is to be had. Then it hands the sentry's part on. It goes back to sleep when
// nothing has been submitted for a tick, so that a quiet pool makes no wake-ups.
//
// Lifetime: part of a Pool, which each of its threads holds a reference to.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.hpp"
#include "base/platform.hpp"
#include "blocking/queue.hpp"
#include "blocking/watch.hpp"
#include "sync/mutex.hpp"

namespace noria::blocking {

class Pool;
class Crew;

struct CrewLimits {
  std::uint32_t max_threads;
  std::uint64_t queue_limit;
  std::uint64_t keep_alive_ns;
  std::uint32_t cpus;  // beyond so many runners, jobs that never sleep gain nothing
};

// A function that gets a thread to itself.
struct Call {
  void (*run)(void*) = nullptr;
  void* data = nullptr;
};

inline constexpr std::size_t kJobNameSize = 48;

// Cut to kJobNameSize; null is the empty name.
void copy_job_name(char* to, const char* from) noexcept;

// A thread of the pool, on its own stack. Guarded by the crew's lock but for `signal`.
struct Worker {
  Worker* idle_next = nullptr;
  Worker* idle_prev = nullptr;
  Worker* all_next = nullptr;
  Worker* all_prev = nullptr;
  Atomic<std::uint32_t> signal{0};  // futex: 1 = taken off the idle list, wake up
  bool running = false;
  bool fresh = true;                 // called up or made, no job since: may become the sentry
  bool may_spin = false;             // after a job, once
  Call call{};                       // what it is to run instead of jobs
  std::uint64_t since_ns = 0;        // the clock when it was last read; while running, about the job's begin
  std::uint64_t seen_submitted = 0;  // by the sentry, a tick ago
  std::uint64_t seen_taken = 0;
  char name[kJobNameSize] = {};
};

struct CrewMetrics {
  std::uint32_t threads;
  std::uint32_t idle;
  std::uint64_t queued;
};

struct RunningJob {
  char name[kJobNameSize];  // empty where the job has none
  PoolClass pool_class;
  std::uint64_t running_ns;
};

class Crew {
 public:
  Crew(Pool& pool, PoolClass pool_class, const CrewLimits& limits) noexcept;

  // Any thread. -EAGAIN at the queue's limit or without any thread, -ESHUTDOWN once closed: then the
  // job is not kept.
  [[nodiscard]] std::int32_t submit(Job& job) noexcept;
  [[nodiscard]] bool cancel(Job& job) noexcept;
  [[nodiscard]] std::int32_t run_thread(Call call) noexcept;
  void close() noexcept;

  CrewMetrics metrics() noexcept;
  std::size_t running(RunningJob* out, std::size_t capacity, std::uint64_t now_ns) noexcept;

  // The life of a thread, with `call` if it was made for one.
  void work(Call call) noexcept;

 private:
  // What is to be done once the lock is free.
  struct Errand {
    Worker* wake = nullptr;
    bool spawn = false;
    Job* discard = nullptr;
  };

  // A job for which a wake is cheap; and what one job counts at most, so that a slow one among fast
  // ones moves the mean by an eighth of this, less than kLongNs.
  static constexpr std::uint64_t kLongNs = 10'000;
  static constexpr std::uint64_t kMeanCapNs = 64'000;
  static constexpr std::uint32_t kSleepyShare = 64;  // of 256 jobs sleep: more threads help

  enum class After { kRest, kSearch, kGone };

  bool eager() const noexcept NORIA_REQUIRES(lock_);
  bool can_grow() const noexcept NORIA_REQUIRES(lock_);
  bool watched() const noexcept NORIA_REQUIRES(lock_);
  bool missed() noexcept NORIA_REQUIRES(lock_);
  Errand settle() noexcept NORIA_REQUIRES(lock_);
  void finish(Errand errand) noexcept NORIA_EXCLUDES(lock_);
  std::int32_t make_first_thread() noexcept NORIA_REQUIRES(lock_);
  std::int32_t submit_locked(Job& job) noexcept NORIA_EXCLUDES(lock_);

  // Of the calling thread, with lock_ held before and after; most let go of it in between.
  bool search(Worker& self) noexcept NORIA_REQUIRES(lock_);
  void run_job(Worker& self, Job& job) noexcept NORIA_REQUIRES(lock_);
  bool run_call(Worker& self) noexcept NORIA_REQUIRES(lock_);
  void spin(Worker& self) noexcept NORIA_REQUIRES(lock_);
  bool rest(Worker& self, bool as_sentry) noexcept NORIA_REQUIRES(lock_);
  After tick(Worker& self) noexcept NORIA_REQUIRES(lock_);
  After retire(Worker& self) noexcept NORIA_REQUIRES(lock_);
  void begin_watch(Worker& self) noexcept NORIA_REQUIRES(lock_);
  void note(std::uint64_t job_ns, bool asked, bool slept) noexcept NORIA_REQUIRES(lock_);

  void enter_idle(Worker& self) noexcept NORIA_REQUIRES(lock_);
  void leave_idle(Worker& self) noexcept NORIA_REQUIRES(lock_);
  Worker* call_up() noexcept NORIA_REQUIRES(lock_);

  Pool& pool_;
  const PoolClass class_;
  const CrewLimits limits_;

  // Read by every submitter, written only when it changes.
  alignas(kCacheLine) Watch watch_;

  alignas(kCacheLine) sync::Mutex lock_;
  Worker* idle_ NORIA_GUARDED_BY(lock_) = nullptr;  // latest first
  Worker* all_ NORIA_GUARDED_BY(lock_) = nullptr;
  Worker* sentry_ NORIA_GUARDED_BY(lock_) = nullptr;   // one of the idle
  std::uint32_t threads_ NORIA_GUARDED_BY(lock_) = 0;  // idle + searching + running
  std::uint32_t idle_count_ NORIA_GUARDED_BY(lock_) = 0;
  std::uint32_t searching_ NORIA_GUARDED_BY(lock_) = 0;  // with those being made
  std::uint32_t running_ NORIA_GUARDED_BY(lock_) = 0;
  std::uint32_t starting_ NORIA_GUARDED_BY(lock_) = 0;  // being made: of searching_
  std::uint32_t away_ NORIA_GUARDED_BY(lock_) = 0;      // in a Call: not of threads_
  bool closed_ NORIA_GUARDED_BY(lock_) = false;
  bool barren_ NORIA_GUARDED_BY(lock_) = false;    // the last try to make a thread failed
  std::uint64_t mean_ns_ NORIA_GUARDED_BY(lock_);  // of a job, recent ones count most, see note()
  std::uint32_t sleepy_ NORIA_GUARDED_BY(lock_);   // how many of 256 recent jobs slept
  JobQueue queue_;                                 // its own rules say which parts want lock_
};

}  // namespace noria::blocking
