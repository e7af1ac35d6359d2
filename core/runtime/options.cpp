#include "runtime/options.hpp"

#include <sched.h>
#include <sys/random.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "base/clock.hpp"

namespace noria::runtime {
namespace {

constexpr std::uint32_t kMaxWorkers = 4096;

std::uint32_t or_default(std::uint32_t value, std::uint32_t otherwise) { return value == 0 ? otherwise : value; }

// ceil(quota / period) of one cgroup file pair; 0: no limit.
std::uint32_t cpus_of(long long quota, long long period) {
  return quota <= 0 || period <= 0 ? 0 : static_cast<std::uint32_t>((quota + period - 1) / period);
}

// Reads "QUOTA PERIOD" ("max PERIOD" is no limit).
std::uint32_t read_cpu_max(const char* path) {
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) return 0;
  long long quota = 0;
  long long period = 0;
  bool both = std::fscanf(file, "%lld %lld", &quota, &period) == 2;
  std::fclose(file);
  return both ? cpus_of(quota, period) : 0;
}

long long read_number(const char* path) {
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) return 0;
  long long value = 0;
  if (std::fscanf(file, "%lld", &value) != 1) value = 0;
  std::fclose(file);
  return value;
}

// The path of this process in the unified hierarchy, "" where there is none.
void read_cgroup_path(char* path, int size) {
  path[0] = '\0';
  std::FILE* file = std::fopen("/proc/self/cgroup", "re");
  if (file == nullptr) return;
  char line[512];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::strncmp(line, "0::/", 4) != 0) continue;
    line[std::strcspn(line, "\n")] = '\0';
    std::snprintf(path, static_cast<std::size_t>(size), "%s", line + 3);
  }
  std::fclose(file);
}

// The least quota from the process's cgroup up to the root (version 2, then 1), in CPUs, rounded up; 0: no limit is known.
std::uint32_t cgroup_cpus() {
  char path[512];
  read_cgroup_path(path, sizeof path);
  std::uint32_t least = 0;
  for (;;) {
    char file[600];
    std::snprintf(file, sizeof file, "/sys/fs/cgroup%s/cpu.max", std::strcmp(path, "/") == 0 ? "" : path);
    std::uint32_t cpus = read_cpu_max(file);
    if (cpus != 0 && (least == 0 || cpus < least)) least = cpus;
    char* slash = std::strrchr(path, '/');
    if (slash == nullptr) break;
    *slash = '\0';
  }
  if (least != 0) return least;
  return cpus_of(read_number("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
                 read_number("/sys/fs/cgroup/cpu/cpu.cfs_period_us"));
}

std::uint64_t system_seed() {
  std::uint64_t seed = 0;
  if (::getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed) seed = monotonic_ns();
  return seed != 0 ? seed : 1;
}

std::int32_t read_size(const noria_runtime_options* from, noria_runtime_options& given) {
  if (from->size < sizeof from->size) return -EINVAL;
  const auto* bytes = reinterpret_cast<const unsigned char*>(from);
  for (std::size_t i = sizeof given; i < from->size; ++i) {
    if (bytes[i] != 0) return -E2BIG;
  }
  std::memcpy(&given, from, from->size < sizeof given ? from->size : sizeof given);
  return NORIA_OK;
}

std::int32_t read_switch(std::uint32_t value, bool& to) {
  if (value > 1 && value != NORIA_NONE) return -EINVAL;
  to = value != NORIA_NONE;
  return NORIA_OK;
}

std::int32_t read_workers(const noria_runtime_options& given, Options& to) {
  if (given.kind > NORIA_RUNTIME_CURRENT_THREAD) return -EINVAL;
  to.kind = or_default(given.kind, NORIA_RUNTIME_MULTI_THREAD);
  if (to.current_thread()) {
    if (given.workers > 1 || given.max_workers > 1) return -EINVAL;
    return NORIA_OK;
  }
  to.workers = given.workers != 0 ? given.workers : default_workers();
  to.max_workers = or_default(given.max_workers, to.workers);
  if (to.workers > kMaxWorkers || to.max_workers > kMaxWorkers || to.max_workers < to.workers) return -EINVAL;
  return NORIA_OK;
}

std::int32_t read_drivers(const noria_runtime_options& given, Options& to) {
  if (std::int32_t error = read_switch(given.enable_io, to.io); error != NORIA_OK) return error;
  if (std::int32_t error = read_switch(given.enable_time, to.time); error != NORIA_OK) return error;
  if (given.reactor > NORIA_REACTOR_KQUEUE) return -EINVAL;
  if (given.reactor > NORIA_REACTOR_EPOLL) return -ENOTSUP;
  if (given.clock_paused > 1 || (given.clock_paused == 1 && !to.time)) return -EINVAL;
  to.clock_paused = given.clock_paused == 1;
  to.clock_now = given.clock_now;
  to.clock_data = given.clock_data;
  return NORIA_OK;
}

// -EINVAL for a CPU that this process may not run on.
std::int32_t read_affinity(const noria_runtime_options& given, Options& to) {
  if (given.affinity_count == 0) return NORIA_OK;
  if (given.affinity == nullptr) return -EINVAL;
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return -errno;
  for (std::uint32_t i = 0; i < given.affinity_count; ++i) {
    if (given.affinity[i] >= CPU_SETSIZE || !CPU_ISSET(given.affinity[i], &set)) return -EINVAL;
  }
  try {
    to.affinity.assign(given.affinity, given.affinity + given.affinity_count);
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  }
  return NORIA_OK;
}

}  // namespace

std::uint32_t default_workers() {
  cpu_set_t set;
  std::uint32_t cpus = 1;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) cpus = static_cast<std::uint32_t>(CPU_COUNT(&set));
  std::uint32_t quota = cgroup_cpus();
  if (quota != 0 && quota < cpus) cpus = quota;
  return cpus == 0 ? 1 : cpus;
}

std::int32_t read_options(const noria_runtime_options* from, Options& to) {
  noria_runtime_options given{};
  if (from != nullptr) {
    if (std::int32_t error = read_size(from, given); error != NORIA_OK) return error;
  }
  if (std::int32_t error = read_workers(given, to); error != NORIA_OK) return error;
  if (std::int32_t error = read_drivers(given, to); error != NORIA_OK) return error;
  for (std::uint32_t bound :
       {given.pool_user_threads, given.pool_file_threads, given.pool_name_threads, given.pool_queue_limit}) {
    if (bound == NORIA_NONE) return -EINVAL;  // nothing of the pool can be off
  }
  to.pool_user_threads = or_default(given.pool_user_threads, to.pool_user_threads);
  to.pool_file_threads = or_default(given.pool_file_threads, to.pool_file_threads);
  to.pool_name_threads = or_default(given.pool_name_threads, to.pool_name_threads);
  to.pool_queue_limit = or_default(given.pool_queue_limit, to.pool_queue_limit);
  to.inject_interval = given.inject_interval;
  if (to.inject_interval > 64) return -EINVAL;  // P5
  if (given.pool_keep_alive_ns != 0) to.pool_keep_alive_ns = given.pool_keep_alive_ns;
  to.seed = given.seed != 0 ? given.seed : system_seed();
  to.on_thread_start = given.on_thread_start;
  to.on_thread_stop = given.on_thread_stop;
  to.on_worker_park = given.on_worker_park;
  to.on_worker_unpark = given.on_worker_unpark;
  to.hook_data = given.hook_data;
  if (given.name != nullptr) std::snprintf(to.name, sizeof to.name, "%s", given.name);
  return read_affinity(given, to);
}

}  // namespace noria::runtime
