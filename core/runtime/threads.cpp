// threads.cpp: the threads of the workers and what pool threads do for the runtime.
#include <pthread.h>
#include <sched.h>

#include <cstdio>

#include "blocking/pool.hpp"
#include "runtime/core.hpp"
#include "sched/scheduler.hpp"
#include "sync/futex.hpp"

namespace noria::runtime {

using task::t_context;

std::int32_t Core::start_threads() {
  // ORDER: relaxed, published by pthread_create.
  left_.store(2 * options_.workers, NORIA_RELAXED);
  for (std::uint32_t i = 0; i < options_.workers; ++i) {
    add_holder();
    pthread_t thread;
    int error = ::pthread_create(&thread, nullptr, thread_main, &scheduler_->worker(i));
    if (error != 0) {
      // ORDER: relaxed, this thread holds the users' part.
      holders_.fetch_sub(1, NORIA_RELAXED);
      stop_started(i);
      return -error;
    }
    threads_.push_back(thread);
  }
  return NORIA_OK;
}

// Not all threads could be made: those that were leave again.
void Core::stop_started(std::uint32_t count) {
  // ORDER: relaxed, nobody else knows the runtime yet.
  phase_.store(kEnded, NORIA_RELAXED);
  scheduler_->stop();
  for (std::uint32_t i = 0; i < count; ++i) ::pthread_join(threads_[i], nullptr);
  pool_->close();
}

void* Core::thread_main(void* data) {
  auto& worker = *static_cast<sched::Worker*>(data);
  Core* core = worker.core;
  const Options& options = core->options_;
  char name[16];
  std::snprintf(name, sizeof name, "%.10s-%u", options.name, worker.index());
  ::pthread_setname_np(::pthread_self(), name);
  if (!options.affinity.empty()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(options.affinity[worker.index() % options.affinity.size()], &set);
    ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
  }
  if (options.on_thread_start != nullptr) options.on_thread_start(options.hook_data);
  core->run_worker(worker);
  t_context.core = core;
  core->part_ended();
  if (options.on_thread_stop != nullptr) options.on_thread_stop(options.hook_data);
  t_context.core = nullptr;
  core->drop_holder();
  return nullptr;
}

// The new owner of a worker whose thread is in block_in_place.
void Core::run_worker_on_pool(void* data) {
  auto& worker = *static_cast<sched::Worker*>(data);
  Core* core = worker.core;
  core->run_worker(worker);
  t_context.core = core;
  // It may have lost the worker to a blocking call that outlasted the shutdown: the task of that poll is swept now.
  // ORDER: seq_cst, behind the poll's end; pairs with the store of kEnded before the last sweep of end().
  if (core->phase_.load(NORIA_SEQ_CST) == kEnded) core->sweep(core->left_.load(NORIA_SEQ_CST) == 0);
}

// Until the runtime stops, or until the worker has passed to another thread.
void Core::run_worker(sched::Worker& worker) {
  Core* before = t_context.pool_core;
  worker.attach();
  worker.loop();
  if (t_context.worker == &worker) {
    worker_ended(worker);
  } else {
    // ORDER: acq_rel, pairs with block_in_place.
    blocked_in_place_.fetch_sub(1, NORIA_ACQ_REL);
    release_clock();
    t_context.pool_core = before;
  }
}

void Core::worker_ended(sched::Worker& worker) {
  worker.drop_local_tasks({&slabs_[worker.index()], 1});
  worker.detach();
  part_ended();
}

// A worker has lost its last owner, or a thread of a worker has come to its end.
void Core::part_ended() {
  // ORDER: seq_cst, what it did happens before the sweep; pairs with start_reaper.
  bool last = left_.fetch_sub(1, NORIA_SEQ_CST) == 1;
  sync::futex_wake_all(left_);
  if (!last) return;
  // ORDER: seq_cst, as above.
  if (last_worker_ends_.load(NORIA_SEQ_CST)) (void)end(0, nullptr);
  // The shutdown did not wait for this one: what it still held is swept now.
  // ORDER: seq_cst, after its part has ended; pairs with the end of the shutdown.
  if (phase_.load(NORIA_SEQ_CST) == kEnded) sweep(true);
}

// By who makes the thread: it may run long after that.
void Core::pool_thread_made(void* data) { static_cast<Core*>(data)->add_holder(); }

void Core::pool_thread_failed(void* data) { static_cast<Core*>(data)->drop_holder(); }

void Core::pool_thread_start(void* data) {
  auto* core = static_cast<Core*>(data);
  t_context.core = core;
  t_context.pool_core = core;
  if (core->options_.on_thread_start != nullptr) core->options_.on_thread_start(core->options_.hook_data);
}

void Core::pool_thread_stop(void* data) {
  auto* core = static_cast<Core*>(data);
  if (core->options_.on_thread_stop != nullptr) core->options_.on_thread_stop(core->options_.hook_data);
  t_context.core = nullptr;
  t_context.pool_core = nullptr;
  core->drop_holder();
}

}  // namespace noria::runtime
