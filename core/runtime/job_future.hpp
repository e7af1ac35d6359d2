// job_future.hpp: a future over a job of the blocking pool: both in one slot.
//
// stage_ keeps a cancel away from the pool until submit() has returned:
//   from         to           by           order
//   kSubmitting  kSubmitted   the creator  acq_rel
//   kSubmitting  kUnwanted    cancel       acq_rel  the creator withdraws the job when submit() has returned
// Threads:    run and discard on pool threads; cancel by anyone.
// Invariants: B1 of run and discard exactly one is called, with no lock held: discard when the job is withdrawn, or by the
//             pool. B2 the operation's reference is the pool's from submit() on; who withdraws the job gets it back.
//             B3 a cancel publishes at once; a job that runs then only gives its reference back.
#pragma once

#include <cstdint>

#include "blocking/pool.hpp"
#include "runtime/core.hpp"

namespace noria::runtime {

class JobFuture final : public task::Future, private blocking::Job {
 public:
  JobFuture(Core* core, std::int32_t (*user_run)(void* arg), void (*user_discard)(void* arg), void* arg);
  ~JobFuture() = default;

  // As noria_spawn_blocking; a null `out` detaches.
  [[nodiscard]] static std::int32_t spawn(Core& core, std::int32_t (*user_run)(void* arg),
                                          void (*user_discard)(void* arg), void* arg, task::Future** out);

 private:
  enum Stage : std::uint32_t { kSubmitting, kSubmitted, kUnwanted };

  void withdraw();
  void let_clock_go();

  static void on_run(blocking::Job* job);
  static void on_discard(blocking::Job* job);
  static void on_cancel(task::Future* future);
  static void on_result(task::Future* future, void* out);
  static void on_destroy(task::Future* future) { static_cast<JobFuture*>(future)->~JobFuture(); }
  static const task::FutureOps kOps;

  std::int32_t (*const run_)(void* arg);
  void (*const discard_)(void* arg);
  void* const arg_;
  std::int32_t answer_ = 0;  // of run_, by the winner of claim()
  Atomic<std::uint32_t> stage_{kSubmitting};
  bool holds_clock_ = false;  // paused time must not jump while the job is out; written before submit()
};

}  // namespace noria::runtime
