// peer.hpp: the frame of the C++ peers: arguments, warm-up, measurement and the JSON line, as micro/main.c.
// Threads:    a workload starts and ends its clocks itself, on whichever of its threads that happens.
#pragma once

#include <semaphore.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "common/bench.h"

namespace peer {

/// One run of a workload, as bench_run of micro.h.
struct Run {
  std::uint64_t ops = 0;
  std::uint64_t batch = 0;
  unsigned workers = 1;
  std::uint64_t wall_ns = 0;
  std::uint64_t cpu_ns = 0;
  int argc = 0;
  char** argv = nullptr;
  std::vector<std::pair<const char*, double>> figures;  // beyond, or instead of, the time an operation

  /// The number behind `name` on the command line.
  [[nodiscard]] std::uint64_t option(const char* name, std::uint64_t fallback) const {
    return bench_argument(argc, argv, name, fallback);
  }

  void start() {
    cpu_ns = bench_cpu_ns();
    wall_ns = bench_now_ns();
  }

  void stop() {
    wall_ns = bench_now_ns() - wall_ns;
    cpu_ns = bench_cpu_ns() - cpu_ns;
  }
};

/// What a thread that is no worker sleeps on until a workload is done.
class Semaphore {
 public:
  Semaphore() { BENCH_CHECK(sem_init(&semaphore_, 0, 0) == 0); }
  ~Semaphore() { sem_destroy(&semaphore_); }
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;

  void release() { sem_post(&semaphore_); }

  void acquire() {
    while (sem_wait(&semaphore_) != 0) {
    }
  }

 private:
  sem_t semaphore_;
};

struct Workload {
  const char* name;
  std::uint64_t ops;
  std::uint64_t batch;
  void (*run)(Run& run);
  bool cold = false;  // warms itself up, or must not
};

/// Sorts `values_ns` and gives the one that `share` of them lie below, in us.
inline double percentile_us(std::vector<std::uint64_t>& values_ns, double share) {
  std::sort(values_ns.begin(), values_ns.end());
  const auto index = static_cast<std::size_t>(static_cast<double>(values_ns.size()) * share);
  return static_cast<double>(values_ns[std::min(index, values_ns.size() - 1)]) / 1e3;
}

/// The figures of timer_fire.
inline void report_lateness(Run& run, std::vector<std::uint64_t>& lateness_ns) {
  run.figures = {{"lateness_p50_us", percentile_us(lateness_ns, 0.5)},
                 {"lateness_p99_us", percentile_us(lateness_ns, 0.99)},
                 {"lateness_max_us", percentile_us(lateness_ns, 1)}};
}

inline void report(const Workload& workload, const Run& run, const char* contender) {
  const auto an_op = [&run](std::uint64_t ns) { return static_cast<double>(ns) / static_cast<double>(run.ops); };
  bench_json_open(workload.name, contender, run.workers);
  bench_json_number("ops", static_cast<double>(run.ops));
  bench_json_number("batch", static_cast<double>(run.batch));
  for (const auto& [name, value] : run.figures) bench_json_number(name, value);
  if (run.wall_ns > 0) bench_json_number("ns_per_op", an_op(run.wall_ns));
  if (run.cpu_ns > 0) bench_json_number("cpu_ns_per_op", an_op(run.cpu_ns));
  bench_json_close();
}

/// Runs the workload that the command line names once unmeasured with `--warmup` operations (a tenth, if not given), then
/// measured. 2, if there is none of that name.
inline int run_main(int argc, char** argv, const char* contender, const std::vector<Workload>& workloads) {
  for (const Workload& workload : workloads) {
    if (argc < 2 || std::strcmp(argv[1], workload.name) != 0) continue;
    Run run;
    run.argc = argc;
    run.argv = argv;
    run.workers = static_cast<unsigned>(run.option("--workers", 1));
    run.ops = run.option("--ops", workload.ops);
    run.batch = std::min(run.option("--batch", workload.batch), run.ops);
    Run warmup = run;
    warmup.ops = workload.cold ? 0 : run.option("--warmup", run.ops / 10);
    warmup.batch = std::min(warmup.batch, warmup.ops);
    if (warmup.ops > 0) workload.run(warmup);
    workload.run(run);
    report(workload, run, contender);
    return 0;
  }
  std::fprintf(stderr, "usage: %s WORKLOAD [--workers N] [--ops N] [--batch N] [--warmup N]\nworkloads:", argv[0]);
  for (const Workload& workload : workloads) std::fprintf(stderr, " %s", workload.name);
  std::fprintf(stderr, "\n");
  return 2;
}

}  // namespace peer
