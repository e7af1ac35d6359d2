/* demo_report.c: what the demo found, for a person and for a program. */
#include <inttypes.h>

#include "demo.h"
#include "text.h"

static double seconds_of(const Demo *demo) { return (double)(demo->ended_ns - demo->began_ns) / 1e9; }

int demo_passed(const Demo *demo) {
  return histogram_count(&demo->round_trip) > 0 && counter_get(&demo->wrong_bytes) == 0 &&
         counter_get(&demo->lost_bytes) == 0 && counter_get(&demo->errors) == 0 &&
         counter_get(&demo->unfinished) == 0 && counter_get(&demo->half_closes) == counter_get(&demo->connections);
}

static void print_line(FILE *out, uint64_t number, double seconds, const char *what) {
  Text count, rate;
  fprintf(out, "  %14s  %-34s %10s a second\n", text_count(number, &count), what,
          text_short((double)number / seconds, &rate));
}

static void print_times(FILE *out, const char *what, const Histogram *times) {
  Text p50, p99, longest;
  fprintf(out, "  %14s  p50 %-9s p99 %-9s longest %s\n", what, text_duration(histogram_quantile(times, 0.50), &p50),
          text_duration(histogram_quantile(times, 0.99), &p99),
          text_duration(counter_get(&times->longest_ns), &longest));
}

static void print_sizes(const Demo *demo, FILE *out) {
  static const char *const names[DEMO_CLASSES] = {"to 256 B", "to 8 KiB", "to 64 KiB", "to 256 KiB"};
  enum { WIDTH = 40 };
  uint64_t most = 1;
  for (size_t i = 0; i < DEMO_CLASSES; i++) {
    uint64_t here = counter_get(&demo->by_class[i]);
    if (here > most) most = here;
  }
  for (size_t i = 0; i < DEMO_CLASSES; i++) {
    Text count;
    uint64_t here = counter_get(&demo->by_class[i]);
    uint64_t width = (here * WIDTH + most - 1) / most;
    fprintf(out, "  %14s  ", names[i]);
    for (uint64_t bar = 0; bar < width; bar++) fputc('#', out);
    fprintf(out, " %s\n", text_count(here, &count));
  }
}

static void print_verdict(const Demo *demo, FILE *out) {
  if (demo_passed(demo)) {
    fprintf(out, "  Not one byte was wrong, and none was lost.\n");
    return;
  }
  fprintf(out,
          "  FAILED: %" PRIu64 " bytes wrong, %" PRIu64 " bytes lost, %" PRIu64 " errors, %" PRIu64
          " clients that did not end, %" PRIu64 " of %" PRIu64 " half-closes kept.\n",
          counter_get(&demo->wrong_bytes), counter_get(&demo->lost_bytes), counter_get(&demo->errors),
          counter_get(&demo->unfinished), counter_get(&demo->half_closes), counter_get(&demo->connections));
}

void demo_print(Demo *demo, FILE *out) {
  double seconds = seconds_of(demo);
  Text bytes, rate;
  uint64_t echoed = counter_get(&demo->echoed_bytes);
  fprintf(out, "\n  Demo: %d clients -> noria-proxy -> %s, %.1f s in one process\n\n", DEMO_CONNECTIONS,
          demo->echo != NULL ? "echo server" : "your upstream", seconds);
  print_line(out, histogram_count(&demo->round_trip), seconds, "round trips");
  print_line(out, counter_get(&demo->connections), seconds, "connections opened and half-closed");
  fprintf(out, "  %14s  %-34s %10s a second\n", text_bytes((double)echoed, &bytes),
          "there and back, every byte checked", text_bytes((double)echoed / seconds, &rate));
  fputc('\n', out);
  print_times(out, "round trip", &demo->round_trip);
  print_times(out, "client connect", &demo->connect);
  fputc('\n', out);
  print_sizes(demo, out);
  fputc('\n', out);
  print_verdict(demo, out);
  fputc('\n', out);
}

void demo_print_json(Demo *demo, FILE *out) {
  fprintf(out,
          "{\"passed\":%s,\"seconds\":%.3f,\"clients\":%d,\"round_trips\":%" PRIu64 ",\"connections\":%" PRIu64
          ",\"half_closes\":%" PRIu64 ",\"bytes_checked\":%" PRIu64 ",\"bytes_wrong\":%" PRIu64
          ",\"bytes_lost\":%" PRIu64 ",\"errors\":%" PRIu64 ",\"unfinished\":%" PRIu64,
          demo_passed(demo) ? "true" : "false", seconds_of(demo), DEMO_CONNECTIONS, histogram_count(&demo->round_trip),
          counter_get(&demo->connections), counter_get(&demo->half_closes), counter_get(&demo->echoed_bytes),
          counter_get(&demo->wrong_bytes), counter_get(&demo->lost_bytes), counter_get(&demo->errors),
          counter_get(&demo->unfinished));
  fprintf(out, ",\"round_trip_ns\":{\"p50\":%" PRIu64 ",\"p99\":%" PRIu64 ",\"longest\":%" PRIu64 "}}",
          histogram_quantile(&demo->round_trip, 0.50), histogram_quantile(&demo->round_trip, 0.99),
          counter_get(&demo->round_trip.longest_ns));
}
