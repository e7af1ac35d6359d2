#include "task/strand.hpp"

#include "base/assert.hpp"
#include "base/slab.hpp"
#include "task/context.hpp"

namespace noria::task {

const noria_task_vtable Strand::kRunner = {sizeof(noria_task_vtable), 0, run_queue, drop_runner, nullptr, "strand"};

Strand::Strand(runtime::Core* of, Home* base) : Home(of), base_(base) {}

void Strand::bind(Task* runner) { runner_ = runner; }

void Strand::add_user() {
  // ORDER: relaxed, who adds one has one.
  users_.fetch_add(1, NORIA_RELAXED);
}

void Strand::remove_user() {
  // ORDER: acq_rel, what each user did happens before the end.
  if (users_.fetch_sub(1, NORIA_ACQ_REL) != 1) return;
  abort(runner_);
  unref(runner_);
  remove_part();
}

void Strand::remove_part() {
  // ORDER: acq_rel, as remove_user.
  if (parts_.fetch_sub(1, NORIA_ACQ_REL) != 1) return;
  this->~Strand();
  Slab::free(this);
}

void Strand::schedule(Task* task, Hint) {
  bool closed;
  {
    sync::MutexLock guard(lock_);
    closed = closed_;
    if (!closed) queue_.push(task);
  }
  if (closed) {
    base_->schedule(task, Hint::kWake);  // the runtime is ending: it is dropped with the rest
  } else {
    wake_by_ref(runner_);
  }
}

void Strand::send_back(Task*) { NORIA_ASSERT(false, "tasks of a strand are not local"); }

Task* Strand::pop() {
  sync::MutexLock guard(lock_);
  return queue_.pop();
}

std::int32_t Strand::run_queue(void* state, const noria_cx* cx) {
  auto* self = static_cast<Strand*>(state);
  for (std::uint32_t i = 0; i < kPollsInTurn; ++i) {
    Task* task = self->pop();
    if (task == nullptr) return NORIA_PENDING;
    t_context.in_strand = true;
    bool again = run(task);
    t_context.in_strand = false;
    if (again) task->home->schedule(task, Hint::kRequeue);
  }
  cx->waker->vtable->wake_by_ref(cx->waker);
  return NORIA_PENDING;
}

void Strand::drop_runner(void* state) {
  auto* self = static_cast<Strand*>(state);
  Queue left;
  {
    sync::MutexLock guard(self->lock_);
    self->closed_ = true;
    left.append(self->queue_);
  }
  while (Task* task = left.pop()) self->base_->schedule(task, Hint::kWake);
  self->remove_part();
}

}  // namespace noria::task
