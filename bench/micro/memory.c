/* memory.c: what a sleeping task and a timer take, and what it takes to start a runtime. */
#include <malloc.h>
#include <unistd.h>

#include "micro/micro.h"

static const uint64_t kHourNs = 3600ull * 1000000000;
enum { kSleepersAtOnce = 1000 };

static uint64_t resident_bytes(void) {
  unsigned long long all, resident;
  FILE* file = fopen("/proc/self/statm", "r");
  BENCH_CHECK(file != NULL && fscanf(file, "%llu %llu", &all, &resident) == 2);
  fclose(file);
  return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t malloc_bytes(void) {
  struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

typedef struct memory {
  bench_run* run;
  gate gate;
  uint64_t made;
  uint64_t resident;
  uint64_t allocated;
  noria_future** sleeps; /* timer_bytes */
} memory;

static void memory_begin(memory* m) {
  m->resident = resident_bytes();
  m->allocated = malloc_bytes();
}

static void memory_end(memory* m) {
  double ops = (double)m->run->ops;
  bench_figure(m->run, "bytes_per_op", ((double)resident_bytes() - (double)m->resident) / ops);
  bench_figure(m->run, "malloc_bytes_per_op", ((double)malloc_bytes() - (double)m->allocated) / ops);
}

/* idle_task_bytes: tasks that each wait in a sleep; a thousand are spawned at a time, so that queues stay short. */

typedef struct idle {
  noria_runtime* rt;
  gate* gate;
  noria_future* sleep;
} idle;

static int32_t idle_poll(void* state, const noria_cx* cx) {
  idle* i = state;
  BENCH_CHECK(i->sleep == NULL && noria_sleep(i->rt, kHourNs, &i->sleep) == NORIA_OK);
  BENCH_CHECK(noria_future_poll(i->sleep, cx) == NORIA_PENDING);
  gate_pass(i->gate);
  return NORIA_PENDING;
}

static void idle_drop(void* state) { noria_future_drop(((idle*)state)->sleep); }

static const noria_task_vtable idle_task = {sizeof idle_task, 0, idle_poll, idle_drop, NULL, "idle"};

static int32_t idle_root_poll(void* state, const noria_cx* cx) {
  memory* m = state;
  if (m->made == 0) memory_begin(m);
  if (!gate_is_open(&m->gate)) return NORIA_PENDING;
  uint64_t left = m->run->ops - m->made, count = left < kSleepersAtOnce ? left : kSleepersAtOnce;
  if (count == 0) {
    memory_end(m);
    return NORIA_READY;
  }
  gate_shut(&m->gate, count, cx);
  for (uint64_t i = 0; i < count; i++) {
    idle one = {.rt = m->run->rt, .gate = &m->gate};
    spawn_with(m->run->rt, &idle_task, &one, sizeof one);
  }
  m->made += count;
  return NORIA_PENDING;
}

void idle_task_bytes(bench_run* run) {
  static const noria_task_vtable root = {sizeof root, 0, idle_root_poll, NULL, NULL, "root"};
  memory m = {.run = run};
  run_root(run->rt, &root, &m);
}

/* timer_bytes: sleeps that one task holds. */

static int32_t timers_poll(void* state, const noria_cx* cx) {
  memory* m = state;
  uint64_t random = 88172645463325252u;
  memory_begin(m);
  m->sleeps = malloc(m->run->ops * sizeof *m->sleeps);
  BENCH_CHECK(m->sleeps != NULL);
  for (; m->made < m->run->ops; m->made++) {
    noria_future** sleep = &m->sleeps[m->made];
    uint64_t milliseconds = 3600000 + bench_random(&random) % 3600000;
    BENCH_CHECK(noria_sleep(m->run->rt, milliseconds * 1000000, sleep) == NORIA_OK);
    BENCH_CHECK(noria_future_poll(*sleep, cx) == NORIA_PENDING);
  }
  memory_end(m);
  for (uint64_t i = 0; i < m->made; i++) noria_future_drop(m->sleeps[i]);
  free(m->sleeps);
  return NORIA_READY;
}

void timer_bytes(bench_run* run) {
  static const noria_task_vtable root = {sizeof root, 0, timers_poll, NULL, NULL, "timers"};
  memory m = {.run = run};
  run_root(run->rt, &root, &m);
}

/* startup: a runtime is made, a task of it runs, it is freed; beside the one of this program. */

static int32_t nothing_poll(void* state, const noria_cx* cx) {
  (void)state;
  (void)cx;
  return NORIA_READY;
}

void startup(bench_run* run) {
  static const noria_task_vtable task = {sizeof task, 0, nothing_poll, NULL, NULL, "nothing"};
  noria_runtime_options options = {.size = sizeof options, .workers = run->workers};
  uint64_t* start_ns = calloc(run->ops, sizeof *start_ns);
  uint64_t* end_ns = calloc(run->ops, sizeof *end_ns);
  BENCH_CHECK(start_ns != NULL && end_ns != NULL);
  for (uint64_t i = 0; i < run->ops; i++) {
    noria_runtime* rt;
    uint64_t begin = bench_now_ns();
    BENCH_CHECK(noria_runtime_new(&options, &rt) == NORIA_OK);
    run_root(rt, &task, NULL);
    start_ns[i] = bench_now_ns() - begin;
    begin = bench_now_ns();
    BENCH_CHECK(noria_runtime_free(rt) == NORIA_OK);
    end_ns[i] = bench_now_ns() - begin;
  }
  bench_figure(run, "startup_us", (double)bench_percentile(start_ns, run->ops, 0.5) / 1e3);
  bench_figure(run, "shutdown_us", (double)bench_percentile(end_ns, run->ops, 0.5) / 1e3);
  free(start_ns);
  free(end_ns);
}
