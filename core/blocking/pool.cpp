#include "blocking/pool.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <new>

#include "base/allocator.hpp"
#include "sync/futex.hpp"

namespace noria::blocking {
namespace {

constinit thread_local Pool* t_pool = nullptr;  // whose thread this is

std::uint32_t cpus_of_process() noexcept {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<std::uint32_t>(CPU_COUNT(&set));
  long n = ::sysconf(_SC_NPROCESSORS_ONLN);
  return n > 0 ? static_cast<std::uint32_t>(n) : 1;
}

// All signals but those that a thread raises by its own fault: they are for the user's threads.
void block_signals(sigset_t* old) noexcept {
  sigset_t set;
  ::sigfillset(&set);
  for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) ::sigdelset(&set, fault);
  ::pthread_sigmask(SIG_SETMASK, &set, old);
}

}  // namespace

// What a new thread is told.
struct Pool::Start {
  Crew* crew;
  Pool* pool;
  Call call;
};

Pool::Pool(const PoolOptions& options, const CrewLimits (&limits)[kPoolClasses]) noexcept
    : options_(options),
      crews_{{*this, PoolClass::kFiles, limits[0]},
             {*this, PoolClass::kNames, limits[1]},
             {*this, PoolClass::kUser, limits[2]}} {
  std::snprintf(thread_name_, sizeof thread_name_, "%s", options.thread_name != nullptr ? options.thread_name : "");
  options_.thread_name = nullptr;
}

std::int32_t Pool::create(const PoolOptions& options, Pool** out) noexcept {
  CrewLimits limits[kPoolClasses];
  std::uint32_t cpus = cpus_of_process();
  for (std::size_t i = 0; i < kPoolClasses; ++i) {
    if (options.max_threads[i] == 0 || options.queue_limit[i] == 0) return -EINVAL;
    std::uint64_t queue_limit = options.queue_limit[i] < kNoLimit ? options.queue_limit[i] : kNoLimit;
    limits[i] = {options.max_threads[i], queue_limit, options.keep_alive_ns, cpus};
  }
  void* room = raw_alloc(sizeof(Pool), alignof(Pool));
  if (room == nullptr) return -ENOMEM;
  *out = new (room) Pool(options, limits);
  return 0;
}

void Pool::release() noexcept {
  // ORDER: acq_rel, the last one sees what the others did before it frees the memory; release also
  // pairs with the acquire in wait_idle().
  if (references_.fetch_sub(1, NORIA_ACQ_REL) != 1) {
    sync::futex_wake(references_);  // the memory may be gone: only its address is used
    return;
  }
  this->~Pool();
  raw_free(this, sizeof(Pool), alignof(Pool));
}

std::int32_t Pool::run_thread(void (*f)(void*), void* data) noexcept {
  return crews_[static_cast<std::size_t>(PoolClass::kUser)].run_thread(Call{f, data});
}

void Pool::close() noexcept {
  for (Crew& crew : crews_) crew.close();
}

bool Pool::wait_idle(std::uint64_t deadline_ns) noexcept {
  const std::uint32_t own = t_pool == this ? 2 : 1;  // the creator's, and this thread's
  while (true) {
    // ORDER: acquire, pairs with the release of each thread: what it did is seen.
    std::uint32_t references = references_.load(NORIA_ACQUIRE);
    if (references <= own) break;
    std::uint64_t now_ns = monotonic_ns();
    if (now_ns >= deadline_ns) return false;
    sync::futex_wait(references_, references, deadline_ns == kNever ? kNever : deadline_ns - now_ns);
  }
  sync::futex_wake(references_);  // another waiter, which got no wake of its own
  return true;
}

std::size_t Pool::running(RunningJob* out, std::size_t capacity) noexcept {
  std::uint64_t now_ns = monotonic_ns();
  std::size_t count = 0;
  for (Crew& crew : crews_) {
    std::size_t written = count < capacity ? count : capacity;
    count += crew.running(out + written, capacity - written, now_ns);
  }
  return count;
}

std::int32_t Pool::start_thread(Crew& crew, Call call) noexcept {
  void* room = raw_alloc(sizeof(Start), alignof(Start));
  if (room == nullptr) return -EAGAIN;
  auto* start = new (room) Start{&crew, this, call};
  // ORDER: relaxed, the caller's reference, or its right to call, keeps the count above zero.
  references_.fetch_add(1, NORIA_RELAXED);
  if (options_.on_thread_made != nullptr) options_.on_thread_made(options_.hook_data);
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  if (options_.stack_size != 0) ::pthread_attr_setstacksize(&attributes, options_.stack_size);
  sigset_t old;
  block_signals(&old);
  pthread_t thread;
  int error = ::pthread_create(&thread, &attributes, thread_main, start);
  ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
  ::pthread_attr_destroy(&attributes);
  if (error == 0) return 0;
  raw_free(start, sizeof(Start), alignof(Start));
  if (options_.on_thread_failed != nullptr) options_.on_thread_failed(options_.hook_data);
  release();
  return -EAGAIN;
}

void* Pool::thread_main(void* argument) noexcept {
  auto* room = static_cast<Start*>(argument);
  Start start = *room;
  raw_free(room, sizeof(Start), alignof(Start));
  Pool* pool = start.pool;
  t_pool = pool;
  // ORDER: relaxed, any number that no other thread has.
  pool->name_thread(pool->numbers_.fetch_add(1, NORIA_RELAXED));
  const PoolOptions& options = pool->options_;
  if (options.on_thread_start != nullptr) options.on_thread_start(options.hook_data);
  start.crew->work(start.call);
  if (options.on_thread_stop != nullptr) options.on_thread_stop(options.hook_data);
  t_pool = nullptr;
  pool->release();
  return nullptr;
}

void Pool::name_thread(std::uint32_t number) noexcept {
  if (thread_name_[0] == '\0') return;
  char digits[12];
  int length = std::snprintf(digits, sizeof digits, "-%u", number);
  char name[16];  // the kernel's limit
  std::snprintf(name, sizeof name, "%.*s%s", 15 - length, thread_name_, digits);
  ::pthread_setname_np(::pthread_self(), name);
}

}  // namespace noria::blocking
