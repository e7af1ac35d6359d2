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

  Text up, down, both, fresh, p50, p99, steals, parks, requests;
  uint64_t up_bytes = now.to_upstream_bytes - was.to_upstream_bytes;
  uint64_t down_bytes = now.to_client_bytes - was.to_client_bytes;
  unsigned long long open = stats_open(stats), failed = counter_get(&stats->failed);
  double total = (double)(now.at_ns - status->first.at_ns) / 1e9;
  text_short((double)(now.accepted - was.accepted) / seconds, &fresh);
  text_bytes((double)up_bytes / seconds, &up);
  text_bytes((double)down_bytes / seconds, &down);
  text_bytes((double)(up_bytes + down_bytes) / seconds, &both);
  text_duration(histogram_quantile(&stats->connect, 0.50), &p50);
  text_duration(histogram_quantile(&stats->connect, 0.99), &p99);
  text_short((double)(now.steals - was.steals) / seconds, &steals);
  text_short((double)(now.parks - was.parks) / seconds, &parks);
  char load[48] = "", line[400];
  if (now.requests > 0) {
    double rate = (double)(now.requests - was.requests) / seconds;
    snprintf(load, sizeof load, "  %s req/s", text_short(rate, &requests));
  }

  if (console_width() < 125) {
    snprintf(line, sizeof line, "%3.0fs %llu open +%s/s%s  %s/s  p50 %s p99 %s  %llu failed  steals %s parks %s", total,
             open, fresh.of, load, both.of, p50.of, p99.of, failed, steals.of, parks.of);
  } else {
    snprintf(line, sizeof line,
             "%4.0fs  %llu open  +%s/s%s  %s/s up  %s/s down  connect p50 %s p99 %s  %llu failed  "
             "steals %s/s  parks %s/s",
             total, open, fresh.of, load, up.of, down.of, p50.of, p99.of, failed, steals.of, parks.of);
  }
  console_status(line);
}

static int32_t status_poll(void *state, const noria_cx *cx) {
  Status *s = state;
  uint64_t due_ns;
  NORIA_BEGIN(&s->frame, cx);
  for (;;) {
    NORIA_TRY(&s->frame, noria_interval_poll_tick(s->interval, cx, &due_ns));
    /* The open connections add what they have moved; that takes them a moment. */
    noria_notify_all(s->proxy->progress);
    NORIA_TRY_CALL(&s->frame, s->pause, noria_sleep(s->proxy->rt, 10000000, &s->pause), NULL, 0);
    show(s);
  }
  NORIA_END(&s->frame);
}

static void status_drop(void *state) {
  Status *s = state;
  if (s->pause != NULL) noria_future_drop(s->pause);
}

static const noria_task_vtable status_vtable = {
    .size = sizeof(noria_task_vtable),
    .poll = status_poll,
    .drop = status_drop,
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
