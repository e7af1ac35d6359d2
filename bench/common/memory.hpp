// memory.hpp: how much memory the process has, as micro/memory.c.
#pragma once

#include <malloc.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>

#include "common/peer.hpp"

namespace peer {

struct Memory {
  std::uint64_t resident;
  std::uint64_t allocated;

  static Memory now() {
    unsigned long long all = 0, resident = 0;
    std::FILE* file = std::fopen("/proc/self/statm", "r");
    BENCH_CHECK(file != nullptr && std::fscanf(file, "%llu %llu", &all, &resident) == 2);
    std::fclose(file);
    const struct mallinfo2 info = mallinfo2();
    return {resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)), info.uordblks + info.hblkhd};
  }

  void report_growth(Run& run) const {
    const Memory after = now();
    const auto an_op = [&run](std::uint64_t from, std::uint64_t to) {
      return (static_cast<double>(to) - static_cast<double>(from)) / static_cast<double>(run.ops);
    };
    run.figures = {{"bytes_per_op", an_op(resident, after.resident)},
                   {"malloc_bytes_per_op", an_op(allocated, after.allocated)}};
  }
};

}  // namespace peer
