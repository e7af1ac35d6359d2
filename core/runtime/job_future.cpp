#include "runtime/job_future.hpp"

#include <cerrno>

#include "base/foreign.hpp"

namespace noria::runtime {

const task::FutureOps JobFuture::kOps = {on_cancel, on_result, on_destroy, sizeof(std::int32_t), false, "blocking job"};

JobFuture::JobFuture(Core* core, std::int32_t (*user_run)(void* arg), void (*user_discard)(void* arg), void* arg)
    : Future(&kOps, core), run_(user_run), discard_(user_discard), arg_(arg) {
  run = on_run;
  discard = on_discard;
  name = kOps.name;
}

std::int32_t JobFuture::spawn(Core& core, std::int32_t (*user_run)(void* arg), void (*user_discard)(void* arg),
                              void* arg, task::Future** out) {
  JobFuture* job = core.make_future<JobFuture>(user_run, user_discard, arg);
  if (job == nullptr) return -ENOMEM;
  job->holds_clock_ = core.clock().paused();
  if (job->holds_clock_) core.hold_clock();
  std::int32_t error = core.pool().submit(*job, blocking::PoolClass::kUser);
  if (error != NORIA_OK) {
    // The pool has not kept it, and `arg` stays the caller's.
    job->let_clock_go();
    if (job->claim()) job->publish(error);
    job->release();
    job->release();
    return error == -ESHUTDOWN ? -NORIA_ESHUTDOWN : error;
  }
  std::uint32_t stage = kSubmitting;
  // ORDER: acq_rel, pairs with on_cancel.
  if (!job->stage_.compare_exchange_strong(stage, kSubmitted, NORIA_ACQ_REL)) job->withdraw();
  if (out != nullptr) {
    *out = job;
  } else {
    job->release();
  }
  return NORIA_OK;
}

void JobFuture::on_run(blocking::Job* job) {
  auto* self = static_cast<JobFuture*>(job);
  std::int32_t status = NORIA_OK, answer = 0;
  try {
    answer = self->run_(self->arg_);
  } catch (...) {
    status = -NORIA_ETHROWN;
  }
  if (self->claim()) {
    self->answer_ = answer;
    self->publish(status);
  }
  self->let_clock_go();  // now that it has ended: a time-out over it must not see time jump before
  self->release();
}

void JobFuture::on_discard(blocking::Job* job) {
  auto* self = static_cast<JobFuture*>(job);
  self->core()->count_dropped_job();
  call_foreign(self->discard_, self->arg_);
  if (self->claim()) self->publish(-ECANCELED);
  self->let_clock_go();
  self->release();
}

void JobFuture::let_clock_go() {
  if (holds_clock_) core()->release_clock();
}

// After submit() has returned, by the one who cancelled it.
void JobFuture::withdraw() {
  if (!core()->pool().cancel(*this)) return;
  call_foreign(discard_, arg_);
  let_clock_go();
  release();
}

void JobFuture::on_cancel(task::Future* future) {
  auto* self = static_cast<JobFuture*>(future);
  if (!self->claim()) return;
  // ORDER: acq_rel, pairs with spawn.
  bool submitted = self->stage_.exchange(kUnwanted, NORIA_ACQ_REL) == kSubmitted;
  self->publish(-ECANCELED);
  if (submitted) self->withdraw();
}

void JobFuture::on_result(task::Future* future, void* out) {
  *static_cast<std::int32_t*>(out) = static_cast<JobFuture*>(future)->answer_;
}

}  // namespace noria::runtime
