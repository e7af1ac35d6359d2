// Thunks of task.h: tasks and strands.
#include "task/task.hpp"

#include "check.hpp"
#include "noria/noria.h"
#include "runtime/core.hpp"
#include "sched/scheduler.hpp"
#include "task/join.hpp"
#include "task/strand.hpp"

using namespace noria;
using task::StateWord;

namespace {

task::Task* from_c(noria_task* handle) { return reinterpret_cast<task::Task*>(handle); }
const task::Task* from_c(const noria_task* handle) { return reinterpret_cast<const task::Task*>(handle); }
task::Task** from_c(noria_task** out) { return reinterpret_cast<task::Task**>(out); }
task::Strand* from_c(noria_strand* handle) { return reinterpret_cast<task::Strand*>(handle); }

int32_t check_started(const noria_task* handle) {
  if (handle == nullptr) return -EINVAL;
  const task::Task* task = from_c(handle);
  if (task->home->core->forked()) return -NORIA_EFORKED;
  return (task->word.load() & StateWord::kInit) != 0 ? -NORIA_EBADSTATE : NORIA_OK;
}

int32_t check_unstarted(const noria_task* handle) {
  if (handle == nullptr) return -EINVAL;
  const task::Task* task = from_c(handle);
  if (task->home->core->forked()) return -NORIA_EFORKED;
  return (task->word.load() & StateWord::kInit) != 0 ? NORIA_OK : -NORIA_EBADSTATE;
}

int32_t check_strand(noria_strand* strand) {
  if (strand == nullptr) return -EINVAL;
  runtime::Core* core = from_c(strand)->core;
  if (core->forked()) return -NORIA_EFORKED;
  return core->closed() ? -NORIA_ESHUTDOWN : NORIA_OK;
}

}  // namespace

int32_t noria_spawn(noria_runtime* rt, const noria_task_vtable* vtable, void* state, noria_task** out) {
  runtime::Core* core;
  if (int32_t error = capi::resolve(rt, core); error != NORIA_OK) return error;
  if (int32_t error = capi::check_vtable(vtable); error != NORIA_OK) return error;
  return core->spawn(vtable, state, from_c(out));
}

int32_t noria_spawn_local(noria_runtime* rt, const noria_task_vtable* vtable, void* state, noria_task** out) {
  runtime::Core* core;
  if (int32_t error = capi::resolve_open(rt, core); error != NORIA_OK) return error;
  if (int32_t error = capi::check_vtable(vtable); error != NORIA_OK) return error;
  return core->spawn_local(vtable, state, from_c(out));
}

int32_t noria_task_new(noria_runtime* rt, const noria_task_vtable* vtable, size_t size, size_t align, void** state,
                       noria_task** out) {
  if (state == nullptr || out == nullptr) return -EINVAL;
  runtime::Core* core;
  if (int32_t error = capi::resolve_open(rt, core); error != NORIA_OK) return error;
  if (int32_t error = capi::check_vtable(vtable); error != NORIA_OK) return error;
  return core->create_task(core->home(), false, vtable, size, align, state, from_c(out));
}

int32_t noria_task_start(noria_task* handle) {
  if (int32_t error = check_unstarted(handle); error != NORIA_OK) return error;
  return from_c(handle)->home->core->start(from_c(handle));
}

int32_t noria_task_discard(noria_task* handle) {
  if (int32_t error = check_unstarted(handle); error != NORIA_OK) return error;
  task::free_task(from_c(handle));
  return NORIA_OK;
}

int32_t noria_task_join(noria_task* handle, noria_future** out) {
  if (out == nullptr) return -EINVAL;
  if (int32_t error = check_started(handle); error != NORIA_OK) return error;
  task::Task* task = from_c(handle);
  auto* future = task->home->core->make_future<task::JoinFuture>(task);
  if (future == nullptr) return -ENOMEM;
  future->begin();
  *out = reinterpret_cast<noria_future*>(static_cast<task::Future*>(future));
  return NORIA_OK;
}

int32_t noria_task_poll_join(noria_task* handle, const noria_cx* cx, noria_join_result* out) {
  if (!capi::usable(cx)) return -EINVAL;
  if (int32_t error = check_started(handle); error != NORIA_OK) return error;
  if (!task::budget_poll(cx)) return NORIA_PENDING;
  int32_t result = task::poll_join(from_c(handle), cx, out);
  if (result == NORIA_PENDING) task::budget_restore(task::t_context);
  return result;
}

int32_t noria_task_take(noria_task* handle, void* out) {
  if (out == nullptr) return -EINVAL;
  if (int32_t error = check_started(handle); error != NORIA_OK) return error;
  return task::take(from_c(handle), out);
}

int32_t noria_task_abort(noria_task* handle) {
  if (int32_t error = check_started(handle); error != NORIA_OK) return error;
  task::abort(from_c(handle));
  return NORIA_OK;
}

int32_t noria_task_detach(noria_task* handle) {
  if (int32_t error = check_started(handle); error != NORIA_OK) return error;
  task::detach(from_c(handle));
  return NORIA_OK;
}

int32_t noria_task_is_complete(const noria_task* handle) {
  if (handle == nullptr) return -EINVAL;
  if (from_c(handle)->home->core->forked()) return -NORIA_EFORKED;
  return (from_c(handle)->word.load() & StateWord::kComplete) != 0 ? 1 : 0;
}

int32_t noria_task_id(const noria_task* handle, uint64_t* out) {
  if (handle == nullptr || out == nullptr) return -EINVAL;
  if (from_c(handle)->home->core->forked()) return -NORIA_EFORKED;
  *out = from_c(handle)->id;
  return NORIA_OK;
}

int32_t noria_task_name(const noria_task* handle, const char** out) {
  if (handle == nullptr || out == nullptr) return -EINVAL;
  if (from_c(handle)->home->core->forked()) return -NORIA_EFORKED;
  *out = from_c(handle)->name;
  return NORIA_OK;
}

int32_t noria_task_set_name(noria_task* handle, const char* name) {
  if (name == nullptr) return -EINVAL;
  if (int32_t error = check_unstarted(handle); error != NORIA_OK) return error;
  from_c(handle)->name = name;
  return NORIA_OK;
}

int32_t noria_block_in_place(int32_t (*run)(void* arg), void* arg, int32_t* result) {
  if (run == nullptr) return -EINVAL;
  sched::Worker* worker = task::t_context.worker;
  if (worker != nullptr && worker->core->forked()) return -NORIA_EFORKED;
  return runtime::Core::block_in_place(run, arg, result);
}

int32_t noria_strand_new(noria_runtime* rt, noria_strand** out) {
  if (out == nullptr) return -EINVAL;
  runtime::Core* core;
  if (int32_t error = capi::resolve_open(rt, core); error != NORIA_OK) return error;
  void* slot = core->alloc(SlotKind::kOther, sizeof(task::Strand), alignof(task::Strand));
  if (slot == nullptr) return -ENOMEM;
  auto* strand = new (slot) task::Strand(core, core->home());
  task::Task* runner = nullptr;
  if (int32_t error = core->spawn(&task::Strand::kRunner, strand, &runner); error != NORIA_OK) {
    strand->~Strand();
    Slab::free(slot);
    return error;
  }
  strand->bind(runner);
  *out = reinterpret_cast<noria_strand*>(strand);
  return NORIA_OK;
}

int32_t noria_strand_spawn(noria_strand* handle, const noria_task_vtable* vtable, void* state, noria_task** out) {
  if (int32_t error = check_strand(handle); error != NORIA_OK) return error;
  if (int32_t error = capi::check_vtable(vtable); error != NORIA_OK) return error;
  task::Strand* strand = from_c(handle);
  strand->add_user();
  int32_t error = strand->core->spawn_at(strand, true, vtable, state, from_c(out));
  if (error != NORIA_OK) strand->remove_user();
  return error;
}

int32_t noria_strand_task_new(noria_strand* handle, const noria_task_vtable* vtable, size_t size, size_t align,
                              void** state, noria_task** out) {
  if (state == nullptr || out == nullptr) return -EINVAL;
  if (int32_t error = check_strand(handle); error != NORIA_OK) return error;
  if (int32_t error = capi::check_vtable(vtable); error != NORIA_OK) return error;
  task::Strand* strand = from_c(handle);
  strand->add_user();
  int32_t error = strand->core->create_task(strand, true, vtable, size, align, state, from_c(out));
  if (error != NORIA_OK) strand->remove_user();
  return error;
}

int32_t noria_strand_drop(noria_strand* strand) {
  if (strand == nullptr) return -EINVAL;
  if (from_c(strand)->core->forked()) return -NORIA_EFORKED;
  from_c(strand)->remove_user();
  return NORIA_OK;
}
