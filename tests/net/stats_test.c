/* Stats_every_phase_and_error_is_counted: the proxy counts each failed connection under its reason, whatever that is. */
#include <errno.h>
#include <stdio.h>

#include "../../capi/examples/proxy/stats.h"

int main(void) {
  static Stats stats;
  static Failure failures[FAILURES_MAX];
  uint64_t told = 0, counted = 0;
  stats_init(&stats);
  for (int round = 0; round < 2; round++) {
    for (int phase = PHASE_ACCEPT; phase <= PHASE_COPY; phase++) {
      for (int32_t error = 1; error <= EHWPOISON; error++, told++) stats_failed(&stats, (Phase)phase, -error);
      for (int32_t error = 4097; error < 4117; error++, told++) stats_failed(&stats, (Phase)phase, -error);
    }
  }
  size_t count = stats_failures(&stats, failures);
  for (size_t i = 0; i < count; i++) counted += failures[i].count;
  printf("%llu of %llu failures counted, %zu reasons\n", (unsigned long long)counted, (unsigned long long)told, count);
  return counted == told && count * 2 == told ? 0 : 1;
}
