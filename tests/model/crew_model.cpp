// The pool's sleep protocol: the real queue and the real watch word, two submitters, two threads of the
// crew reduced to their roles. A lost job leaves a thread asleep for ever, which relacy calls a deadlock.
// Built twice: as it is, and with NORIA_PLANT_WATCH, where the bug must be found.
#include <cstdio>

#include "blocking/queue.hpp"
#include "blocking/watch.hpp"

namespace {

using noria::blocking::Job;
using noria::blocking::JobQueue;
using noria::blocking::Watch;

constexpr int kSubmitters = 2;
constexpr int kThreads = 2;
constexpr int kJobs = 2;  // one a submitter

struct CrewModel : rl::test_suite<CrewModel, kSubmitters + kThreads> {
  JobQueue queue;
  Watch watch;
  rl::mutex lock;
  rl::condition_variable called;  // stands for the futex of each idle thread
  Job jobs[kJobs];
  // Guarded by the lock.
  rl::var<int> searching, idle, running, called_up, ran;

  void before() {
    VAR(searching) = kThreads;  // both are up and about to look
    VAR(idle) = 0;
    VAR(running) = 0;
    VAR(called_up) = 0;
    VAR(ran) = 0;
    (void)watch.missed(true, queue);
    // One credit for all: so one submitter may push and the other must append.
    RL_ASSERT(queue.grant(kJobs));
    (void)queue.pop();
  }

  bool watched() { return VAR(searching) != 0 || VAR(idle) == 0; }
  bool missed() { return watch.missed(watched(), queue); }

  void settle() {
    if (!missed()) return;
    VAR(idle) = VAR(idle) - 1;
    VAR(called_up) = VAR(called_up) + 1;
    VAR(searching) = VAR(searching) + 1;
    (void)missed();
    called.notify_one($);
  }

  void submit(Job& job) {
    if (!watch.hint() || !queue.use_credit()) {
      lock.lock($);
      (void)queue.grant(kJobs * 2);
      queue.append(job);
      settle();
      lock.unlock($);
      return;
    }
    queue.push(job);
    if (watch.certain()) return;
    lock.lock($);
    settle();
    lock.unlock($);
  }

  void work() {
    lock.lock($);
    while (VAR(ran) != kJobs) {
      if (queue.pop() != nullptr) {
        VAR(searching) = VAR(searching) - 1;
        VAR(running) = VAR(running) + 1;
        settle();
        lock.unlock($);
        lock.lock($);  // here the job runs
        VAR(running) = VAR(running) - 1;
        VAR(searching) = VAR(searching) + 1;
        VAR(ran) = VAR(ran) + 1;
        if (VAR(ran) == kJobs) called.notify_all($);
        continue;
      }
      rest();
    }
    lock.unlock($);
  }

  void rest() {
    VAR(searching) = VAR(searching) - 1;
    VAR(idle) = VAR(idle) + 1;
    if (missed()) {
      VAR(idle) = VAR(idle) - 1;
      VAR(searching) = VAR(searching) + 1;
      return;
    }
    while (VAR(called_up) == 0 && VAR(ran) != kJobs) called.wait(lock, $);
    if (VAR(ran) == kJobs) return;
    VAR(called_up) = VAR(called_up) - 1;
  }

  void thread(unsigned index) {
    if (index < kSubmitters) {
      submit(jobs[index]);
    } else {
      work();
    }
  }

  void after() { RL_ASSERT(VAR(ran) == kJobs); }
};

}  // namespace

int main() {
  rl::test_params params;
  params.search_type = rl::sched_random;
  params.iteration_count = 200000;
  bool sound = rl::simulate<CrewModel>(params);
#ifdef NORIA_PLANT_WATCH
  bool found = !sound && params.test_result == rl::test_result_deadlock;
  std::printf("the planted bug was %sfound\n", found ? "" : "not ");
  return found ? 0 : 1;
#else
  return sound ? 0 : 1;
#endif
}
