/* report.c: what the proxy did, for a person and for a program. */
#include "report.h"

#include <inttypes.h>

#include "text.h"

static void address_text(const Proxy *proxy, char *out, size_t size) {
  if (noria_address_format(&proxy->address, out, size) != NORIA_OK) out[0] = '\0';
}

static void print_failures(Proxy *proxy, FILE *out) {
  Failure failures[FAILURES_MAX];
  size_t count = stats_failures(&proxy->stats, failures);
  for (size_t i = 0; i < count; i++) {
    Text times;
    fprintf(out, "    %-8s %-14s %8s x  %s\n", phase_name(failures[i].phase), noria_error_name(failures[i].error),
            text_count(failures[i].count, &times), noria_error_message(failures[i].error));
  }
}

static void print_upstreams(Proxy *proxy, FILE *out) {
  for (size_t i = 0; i < proxy->options->upstream_count; i++) {
    Text used, failed;
    fprintf(out, "    %-24s %10s connections  %s failed to connect\n", proxy->options->upstreams[i],
            text_count(counter_get(&proxy->stats.upstream_connections[i]), &used),
            text_count(counter_get(&proxy->stats.upstream_failures[i]), &failed));
  }
}

static void print_connects(const Histogram *times, FILE *out) {
  Text p50, p99, longest;
  if (histogram_count(times) == 0) {
    fprintf(out, "  connecting   to upstreams: none\n");
    return;
  }
  fprintf(out, "  connecting   to upstreams: p50 %s, p99 %s, longest %s\n",
          text_duration(histogram_quantile(times, 0.50), &p50), text_duration(histogram_quantile(times, 0.99), &p99),
          text_duration(counter_get(&times->longest_ns), &longest));
}

void report_print(Proxy *proxy, const Outcome *outcome, FILE *out) {
  Stats *stats = &proxy->stats;
  const noria_metrics *metrics = &outcome->metrics;
  char address[64];
  address_text(proxy, address, sizeof address);
  Text accepted, failed, cut, most, up, down, polls, steals, parks, wakes;
  fprintf(out, "noria-proxy on %s, %.1f s\n", address, (double)(outcome->ended_ns - outcome->began_ns) / 1e9);
  fprintf(out, "  connections  %s, %s at once at most (those just ending too), %s failed, %s cut off at the end\n",
          text_count(counter_get(&stats->accepted), &accepted), text_count(counter_get(&stats->most), &most),
          text_count(counter_get(&stats->failed), &failed), text_count(counter_get(&stats->cut), &cut));
  fprintf(out, "  bytes        %s to upstreams, %s to clients\n",
          text_bytes((double)counter_get(&stats->to_upstream_bytes), &up),
          text_bytes((double)counter_get(&stats->to_client_bytes), &down));
  print_connects(&stats->connect, out);
  fprintf(out, "  runtime      %u workers, %s polls, %s steals, %s parks, %s wakes sent\n", metrics->workers,
          text_count(metrics->polls, &polls), text_count(metrics->steals, &steals), text_count(metrics->parks, &parks),
          text_count(metrics->wakes_sent, &wakes));
  if (outcome->rests > 0) {
    fprintf(out, "  listener     rested %" PRIu64 " times for want of descriptors\n", outcome->rests);
  }
  fprintf(out, "  drain        %s after %.1f s\n", outcome->drained ? "complete" : "given up",
          (double)(outcome->ended_ns - outcome->drain_ns) / 1e9);
  fprintf(out, "  upstreams\n");
  print_upstreams(proxy, out);
  if (proxy->stats.failure_count > 0) fprintf(out, "  failures\n");
  print_failures(proxy, out);
}

static void json_string(const char *text, FILE *out) {
  fputc('"', out);
  for (; *text != '\0'; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\') {
      fprintf(out, "\\%c", c);
    } else if (c < 0x20) {
      fprintf(out, "\\u%04x", c);
    } else {
      fputc(c, out);
    }
  }
  fputc('"', out);
}

static void json_failures(Proxy *proxy, FILE *out) {
  Failure failures[FAILURES_MAX];
  size_t count = stats_failures(&proxy->stats, failures);
  fprintf(out, ",\"failures\":[");
  for (size_t i = 0; i < count; i++) {
    fprintf(out, "%s{\"phase\":\"%s\",\"error\":\"%s\",\"count\":%" PRIu64 "}", i > 0 ? "," : "",
            phase_name(failures[i].phase), noria_error_name(failures[i].error), failures[i].count);
  }
  fprintf(out, "]");
}

static void json_upstreams(Proxy *proxy, FILE *out) {
  fprintf(out, ",\"upstreams\":[");
  for (size_t i = 0; i < proxy->options->upstream_count; i++) {
    fprintf(out, "%s{\"address\":", i > 0 ? "," : "");
    json_string(proxy->options->upstreams[i], out);
    fprintf(out, ",\"connections\":%" PRIu64 ",\"connect_failures\":%" PRIu64 "}",
            counter_get(&proxy->stats.upstream_connections[i]), counter_get(&proxy->stats.upstream_failures[i]));
  }
  fprintf(out, "]");
}

void report_print_json(Proxy *proxy, const Outcome *outcome, Demo *demo, FILE *out) {
  Stats *stats = &proxy->stats;
  const noria_metrics *metrics = &outcome->metrics;
  char address[64];
  address_text(proxy, address, sizeof address);
  fprintf(out, "{\"listen\":");
  json_string(address, out);
  fprintf(out, ",\"seconds\":%.3f,\"drain_seconds\":%.3f,\"drained\":%s",
          (double)(outcome->ended_ns - outcome->began_ns) / 1e9, (double)(outcome->ended_ns - outcome->drain_ns) / 1e9,
          outcome->drained ? "true" : "false");
  fprintf(out,
          ",\"connections\":{\"accepted\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"cut\":%" PRIu64 ",\"most\":%" PRIu64 "}",
          counter_get(&stats->accepted), counter_get(&stats->failed), counter_get(&stats->cut),
          counter_get(&stats->most));
  fprintf(out, ",\"bytes\":{\"to_upstream\":%" PRIu64 ",\"to_client\":%" PRIu64 "}",
          counter_get(&stats->to_upstream_bytes), counter_get(&stats->to_client_bytes));
  fprintf(out, ",\"connect_ns\":{\"p50\":%" PRIu64 ",\"p99\":%" PRIu64 ",\"longest\":%" PRIu64 "}",
          histogram_quantile(&stats->connect, 0.50), histogram_quantile(&stats->connect, 0.99),
          counter_get(&stats->connect.longest_ns));
  fprintf(out, ",\"listener_rests\":%" PRIu64, outcome->rests);
  fprintf(out,
          ",\"runtime\":{\"workers\":%u,\"polls\":%" PRIu64 ",\"steals\":%" PRIu64 ",\"overflow\":%" PRIu64
          ",\"parks\":%" PRIu64 ",\"wakes_sent\":%" PRIu64 "}",
          metrics->workers, metrics->polls, metrics->steals, metrics->overflow, metrics->parks, metrics->wakes_sent);
  json_upstreams(proxy, out);
  json_failures(proxy, out);
  if (demo != NULL) {
    fprintf(out, ",\"demo\":");
    demo_print_json(demo, out);
  }
  fprintf(out, "}\n");
}
