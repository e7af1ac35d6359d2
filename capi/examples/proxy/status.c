/* status.c: the task that tells how the proxy is doing. */
#include "status.h"

#include <stdio.h>
#include <string.h>

#include "console.h"
#include "text.h"

static Sample take_sample(Proxy *proxy) {
  Sample sample = {
      .accepted = counter_get(&proxy->stats.accepted),
      .to_upstream_bytes = counter_get(&proxy->stats.to_upstream_bytes),
      .to_client_bytes = counter_get(&proxy->stats.to_client_bytes),
      .requests = counter_get(&proxy->stats.requests),
  };
  noria_now(proxy->rt, &sample.at_ns);
  noria_metrics metrics = {.size = sizeof metrics};
  if (noria_runtime_metrics(proxy->rt, &metrics) == NORIA_OK) {
    sample.steals = metrics.steals;
    sample.parks = metrics.parks;
  }
  return sample;
}

static void show(Status *status) {
  Stats *stats = &status->proxy->stats;
  Sample now = take_sample(status->proxy);
  Sample was = status->last;
  status->last = now;
  double seconds = (double)(now.at_ns - was.at_ns) / 1e9;
  if (seconds <= 0) return;
  double total = (double)(now.at_ns - status->first.at_ns) / 1e9;

  Text in, out, fresh, p50, p99, steals, parks, requests;
  char load[48] = "";
  if (now.requests > 0) {
    snprintf(load, sizeof load, "%s req/s  ", text_short((double)(now.requests - was.requests) / seconds, &requests));
  }
  char line[256];
  snprintf(
      line, sizeof line,
      "%4.0fs  %llu open  +%s/s  %s%s/s up  %s/s down  connect p50 %s p99 %s  %llu failed  "
      "steals %s/s  parks %s/s",
      total, (unsigned long long)stats_open(stats), text_short((double)(now.accepted - was.accepted) / seconds, &fresh),
      load, text_bytes((double)(now.to_upstream_bytes - was.to_upstream_bytes) / seconds, &in),
      text_bytes((double)(now.to_client_bytes - was.to_client_bytes) / seconds, &out),
      text_duration(histogram_quantile(&stats->connect, 0.50), &p50),
      text_duration(histogram_quantile(&stats->connect, 0.99), &p99), (unsigned long long)counter_get(&stats->failed),
      text_short((double)(now.steals - was.steals) / seconds, &steals),
      text_short((double)(now.parks - was.parks) / seconds, &parks));
  console_status(line);
}

static int32_t status_poll(void *state, const noria_cx *cx) {
  Status *s = state;
  uint64_t due_ns;
  NORIA_BEGIN(&s->frame, cx);
  for (;;) {
    NORIA_TRY(&s->frame, noria_interval_poll_tick(s->interval, cx, &due_ns));
    show(s);
    noria_notify_all(s->proxy->progress); /* what the next line will tell */
  }
  NORIA_END(&s->frame);
}

static const noria_task_vtable status_vtable = {
    .size = sizeof(noria_task_vtable),
    .poll = status_poll,
    .name = "status",
};

int32_t status_start(Status *status, Proxy *proxy, uint64_t period_ns) {
  memset(status, 0, sizeof *status);
  status->proxy = proxy;
  status->first = status->last = take_sample(proxy);
  int32_t result =
      noria_interval_new(proxy->rt, status->first.at_ns + period_ns, period_ns, NORIA_MISSED_DELAY, &status->interval);
  if (result != NORIA_OK) return result;
  counter_add(&proxy->live_bytes, 1);
  return noria_spawn(proxy->rt, &status_vtable, status, &status->task);
}

int32_t status_stop(Status *status, noria_future **out) {
  if (status->task == NULL) return -NORIA_EBADSTATE;
  noria_task_abort(status->task);
  return noria_task_join(status->task, out);
}

void status_close(Status *status) {
  if (status->task != NULL) noria_task_detach(status->task);
  if (status->interval != NULL) noria_interval_drop(status->interval);
}
