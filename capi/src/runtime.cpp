// Thunks of runtime.h.
#include "blocking/pool.hpp"
#include "check.hpp"
#include "noria/noria.h"
#include "reactor/reactor.hpp"
#include "runtime/core.hpp"
#include "sched/scheduler.hpp"

using namespace noria;
using runtime::Core;

static_assert(sched::kPollTimeBuckets == NORIA_HISTOGRAM_BUCKETS, "the histogram is copied bucket by bucket");

namespace {

int32_t check(noria_runtime* rt) {
  if (rt == nullptr) return -EINVAL;
  return runtime::from_c(rt)->forked() ? -NORIA_EFORKED : NORIA_OK;
}

}  // namespace

int32_t noria_runtime_new(const noria_runtime_options* options, noria_runtime** out) {
  if (out == nullptr) return -EINVAL;
  Core* core = nullptr;
  if (int32_t error = Core::create(options, &core); error != NORIA_OK) return error;
  *out = runtime::to_c(core);
  return NORIA_OK;
}

int32_t noria_runtime_retain(noria_runtime* rt) {
  if (int32_t error = check(rt); error != NORIA_OK) return error;
  runtime::from_c(rt)->retain();
  return NORIA_OK;
}

int32_t noria_runtime_release(noria_runtime* rt) {
  if (int32_t error = check(rt); error != NORIA_OK) return error;
  return runtime::from_c(rt)->release();
}

int32_t noria_runtime_free(noria_runtime* rt) {
  if (int32_t error = check(rt); error != NORIA_OK) return error;
  int32_t error = runtime::from_c(rt)->shutdown(0, nullptr);
  if (error == -NORIA_EWRONGTHREAD) return error;
  return runtime::from_c(rt)->release();
}

int32_t noria_runtime_shutdown(noria_runtime* rt, uint64_t timeout_ns, noria_shutdown_report* report) {
  if (int32_t error = check(rt); error != NORIA_OK) return error;
  noria_shutdown_report full{};
  if (report != nullptr) {
    if (int32_t error = capi::check_size(report, report->size, sizeof full); error != NORIA_OK) return error;
  }
  int32_t result = runtime::from_c(rt)->shutdown(timeout_ns, &full);
  if (report != nullptr) {
    if (int32_t error = capi::write_struct(report, full); error != NORIA_OK) return error;
  }
  return result;
}

int32_t noria_runtime_enter(noria_runtime* rt) {
  if (int32_t error = check(rt); error != NORIA_OK) return error;
  return runtime::from_c(rt)->enter();
}

int32_t noria_runtime_leave(noria_runtime* rt) {
  if (int32_t error = check(rt); error != NORIA_OK) return error;
  return runtime::from_c(rt)->leave();
}

int32_t noria_runtime_block_on(noria_runtime* rt, const noria_task_vtable* vtable, void* state,
                               noria_join_result* out) {
  if (int32_t error = capi::check_vtable(vtable); error != NORIA_OK) return error;
  Core* core;
  if (int32_t error = capi::resolve(rt, core); error != NORIA_OK) return error;
  return core->block_on(vtable, state, out);
}

int32_t noria_runtime_turn(noria_runtime* rt, uint64_t timeout_ns, uint32_t* polls) {
  Core* core;
  if (int32_t error = capi::resolve(rt, core); error != NORIA_OK) return error;
  return core->turn(timeout_ns, polls);
}

int32_t noria_runtime_fd(noria_runtime* rt, int32_t* out) {
  if (out == nullptr) return -EINVAL;
  Core* core;
  if (int32_t error = capi::resolve(rt, core); error != NORIA_OK) return error;
  if (!core->options().current_thread()) return -NORIA_EWRONGKIND;
  *out = core->fd();
  return NORIA_OK;
}

int32_t noria_runtime_next_timeout(noria_runtime* rt, uint64_t* timeout_ns) {
  if (timeout_ns == nullptr) return -EINVAL;
  Core* core;
  if (int32_t error = capi::resolve(rt, core); error != NORIA_OK) return error;
  return core->next_timeout(timeout_ns);
}

int32_t noria_runtime_info(noria_runtime* rt, noria_runtime_info_data* out) {
  if (out == nullptr) return -EINVAL;
  Core* core;
  if (int32_t error = capi::resolve(rt, core); error != NORIA_OK) return error;
  const runtime::Options& options = core->options();
  noria_runtime_info_data info{};
  info.size = sizeof info;
  info.kind = options.kind;
  info.workers = options.workers;
  info.max_workers = options.max_workers;
  info.reactor = core->reactor() != nullptr ? core->reactor()->kind() : uint32_t{NORIA_REACTOR_AUTO};
  info.io_enabled = core->io_enabled() ? 1 : 0;
  info.time_enabled = core->time_enabled() ? 1 : 0;
  info.clock_paused = core->clock().paused() ? 1 : 0;
  info.seed = options.seed;
  return capi::write_struct(out, info);
}

int32_t noria_runtime_metrics(noria_runtime* rt, noria_metrics* out) {
  if (out == nullptr) return -EINVAL;
  Core* core;
  if (int32_t error = capi::resolve(rt, core); error != NORIA_OK) return error;
  sched::Scheduler& scheduler = core->scheduler();
  noria_metrics sum{};
  sum.size = sizeof sum;
  sum.workers = scheduler.workers();
  sum.live_tasks = core->live_tasks();
  sum.inject_depth = scheduler.inject().size();
  for (std::size_t i = 0; i < blocking::kPoolClasses; ++i) {
    blocking::CrewMetrics crew = core->pool().metrics(static_cast<blocking::PoolClass>(i));
    sum.pool_threads += crew.threads;
    sum.pool_idle += crew.idle;
    sum.pool_queue += crew.queued;
  }
  sum.timers = core->armed_timers();
  sum.sources = core->reactor() != nullptr ? core->reactor()->sources() : 0;
  for (uint32_t i = 0; i < scheduler.workers(); ++i) {
    const sched::WorkerCounters& counters = scheduler.worker(i).counters();
    sum.polls += counters.polls.get();
    sum.steals += counters.steals.get();
    sum.overflow += counters.overflow.get();
    sum.parks += counters.parks.get();
    sum.wakes_sent += counters.wakes_sent.get();
    sum.busy_ns += counters.busy_ns.get();
    for (uint32_t b = 0; b < NORIA_HISTOGRAM_BUCKETS; ++b) sum.poll_time_histogram[b] += counters.poll_time[b].get();
  }
  return capi::write_struct(out, sum);
}

int32_t noria_runtime_worker_metrics(noria_runtime* rt, uint32_t worker, noria_worker_metrics* out) {
  if (out == nullptr) return -EINVAL;
  Core* core;
  if (int32_t error = capi::resolve(rt, core); error != NORIA_OK) return error;
  if (worker >= core->scheduler().workers()) return -EINVAL;
  const sched::Worker& from = core->scheduler().worker(worker);
  const sched::WorkerCounters& counters = from.counters();
  noria_worker_metrics metrics{};
  metrics.size = sizeof metrics;
  metrics.worker = worker;
  metrics.polls = counters.polls.get();
  metrics.steals = counters.steals.get();
  metrics.overflow = counters.overflow.get();
  metrics.parks = counters.parks.get();
  metrics.wakes_sent = counters.wakes_sent.get();
  metrics.busy_ns = counters.busy_ns.get();
  metrics.queue_depth = from.queue_depth();
  metrics.lifo_polls = counters.lifo_polls.get();
  metrics.sentry_acts = counters.sentry_acts.get();
  return capi::write_struct(out, metrics);
}
