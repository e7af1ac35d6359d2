/* main.c: libuv-bench (timer_churn | timer_reset | blocking | blocking_seq) [--ops N] [--batch N] [--warmup N];
 * libuv-bench echo [--buffer B]
 *
 * The workloads that libuv knows: timers, the thread pool and TCP, in callbacks on one loop, with the same sizes and the
 * same JSON line as the other contenders. */
#include <uv.h>

#include "common/bench.h"

static uint64_t done, bad, cpu_ns, wall_ns;

static void start_clocks(void) {
  cpu_ns = bench_cpu_ns();
  wall_ns = bench_now_ns();
}

static void stop_clocks(void) {
  wall_ns = bench_now_ns() - wall_ns;
  cpu_ns = bench_cpu_ns() - cpu_ns;
}

/* timer_churn: a batch of timers is made and started for 1 s to 10 min, then all are closed before any is due. */

static void on_timer(uv_timer_t* timer) {
  (void)timer;
  bad++;
}

static void on_timer_closed(uv_handle_t* handle) {
  (void)handle;
  done++;
}

static void timer_churn(uv_loop_t* loop, uint64_t ops, uint64_t batch) {
  uint64_t random = 88172645463325252u;
  uv_timer_t* timers = malloc(batch * sizeof *timers);
  BENCH_CHECK(timers != NULL);
  start_clocks();
  for (done = 0; done < ops;) {
    for (uint64_t i = 0; i < batch; i++) {
      BENCH_CHECK(uv_timer_init(loop, &timers[i]) == 0);
      BENCH_CHECK(uv_timer_start(&timers[i], on_timer, 1000 + bench_random(&random) % 599000, 0) == 0);
    }
    for (uint64_t i = 0; i < batch; i++) uv_close((uv_handle_t*)&timers[i], on_timer_closed);
    uv_run(loop, UV_RUN_DEFAULT);
  }
  stop_clocks();
  free(timers);
}

/* timer_reset: such timers are started anew, one after the other, for other deadlines; a round goes through all of them. */

static void timer_reset(uv_loop_t* loop, uint64_t ops, uint64_t batch) {
  uint64_t random = 88172645463325252u;
  uv_timer_t* timers = malloc(batch * sizeof *timers);
  BENCH_CHECK(timers != NULL);
  for (uint64_t i = 0; i < batch; i++) {
    BENCH_CHECK(uv_timer_init(loop, &timers[i]) == 0);
    BENCH_CHECK(uv_timer_start(&timers[i], on_timer, 1000 + bench_random(&random) % 599000, 0) == 0);
  }
  start_clocks();
  for (done = 0; done < ops; done += batch) {
    for (uint64_t i = 0; i < batch; i++)
      BENCH_CHECK(uv_timer_start(&timers[i], on_timer, 1000 + bench_random(&random) % 599000, 0) == 0);
    uv_run(loop, UV_RUN_NOWAIT);
  }
  stop_clocks();
  for (uint64_t i = 0; i < batch; i++) {
    BENCH_CHECK(uv_is_active((uv_handle_t*)&timers[i]));
    uv_close((uv_handle_t*)&timers[i], NULL);
  }
  uv_run(loop, UV_RUN_DEFAULT);
  free(timers);
}

/* blocking: jobs that do nothing, on the pool of four threads that libuv has by default. */

static void on_work(uv_work_t* work) { work->data = work; }

static void on_work_done(uv_work_t* work, int status) {
  if (status != 0 || work->data != work) bad++;
  done++;
}

static void blocking(uv_loop_t* loop, uint64_t ops, uint64_t batch) {
  (void)batch;
  start_clocks();
  uv_work_t* jobs = calloc(ops, sizeof *jobs);
  BENCH_CHECK(jobs != NULL);
  done = 0;
  for (uint64_t i = 0; i < ops; i++) BENCH_CHECK(uv_queue_work(loop, &jobs[i], on_work, on_work_done) == 0);
  uv_run(loop, UV_RUN_DEFAULT);
  free(jobs);
  stop_clocks();
}

/* blocking_seq: `batch` jobs, each of which is given again when its answer has come. */

static uint64_t begun, wanted;

static void on_seq_done(uv_work_t* work, int status) {
  on_work_done(work, status);
  if (begun == wanted) return;
  begun++;
  BENCH_CHECK(uv_queue_work(work->loop, work, on_work, on_seq_done) == 0);
}

static void blocking_seq(uv_loop_t* loop, uint64_t ops, uint64_t batch) {
  uv_work_t* jobs = calloc(batch, sizeof *jobs);
  BENCH_CHECK(jobs != NULL);
  start_clocks();
  done = 0;
  wanted = ops;
  for (begun = 0; begun < batch; begun++) BENCH_CHECK(uv_queue_work(loop, &jobs[begun], on_work, on_seq_done) == 0);
  uv_run(loop, UV_RUN_DEFAULT);
  stop_clocks();
  free(jobs);
}

/* echo: a buffer a connection; what cannot be written at once is queued, and reading rests meanwhile. */

typedef struct connection {
  uv_tcp_t tcp;
  uv_write_t rest;
  char buffer[];
} connection;

static uint64_t total_bytes, total_connections;
static size_t buffer_bytes;

static void on_closed(uv_handle_t* handle) { free(handle->data); }

static void on_room(uv_handle_t* handle, size_t wanted, uv_buf_t* out) {
  (void)wanted;
  *out = uv_buf_init(((connection*)handle->data)->buffer, (unsigned)buffer_bytes);
}

static void on_read(uv_stream_t* stream, ssize_t count, const uv_buf_t* buffer);

static void on_rest_written(uv_write_t* rest, int status) {
  connection* c = rest->handle->data;
  if (status == 0) {
    uv_read_start((uv_stream_t*)&c->tcp, on_room, on_read);
  } else if (!uv_is_closing((uv_handle_t*)&c->tcp)) {
    uv_close((uv_handle_t*)&c->tcp, on_closed);
  }
}

static void on_read(uv_stream_t* stream, ssize_t count, const uv_buf_t* buffer) {
  connection* c = stream->data;
  if (count == 0) return; /* EAGAIN */
  if (count < 0) {
    uv_close((uv_handle_t*)stream, on_closed);
    return;
  }
  total_bytes += (uint64_t)count;
  uv_buf_t all = uv_buf_init(buffer->base, (unsigned)count);
  int written = uv_try_write(stream, &all, 1);
  if (written == count) return;
  uv_buf_t rest =
      uv_buf_init(buffer->base + (written > 0 ? written : 0), (unsigned)(count - (written > 0 ? written : 0)));
  uv_read_stop(stream);
  uv_write(&c->rest, stream, &rest, 1, on_rest_written);
}

static void on_connection(uv_stream_t* listener, int status) {
  BENCH_CHECK(status == 0);
  connection* c = calloc(1, sizeof *c + buffer_bytes);
  BENCH_CHECK(c != NULL && uv_tcp_init(listener->loop, &c->tcp) == 0);
  c->tcp.data = c;
  BENCH_CHECK(uv_accept(listener, (uv_stream_t*)&c->tcp) == 0);
  uv_tcp_nodelay(&c->tcp, 1);
  uv_read_start((uv_stream_t*)&c->tcp, on_room, on_read);
  total_connections++;
}

static void on_sigterm(uv_signal_t* handle, int number) {
  (void)number;
  uv_stop(handle->loop);
}

static int echo(uv_loop_t* loop) {
  struct sockaddr_in address;
  int size = sizeof address;
  uv_tcp_t listener;
  uv_signal_t sigterm;
  bench_raise_files();
  uv_ip4_addr("127.0.0.1", 0, &address);
  BENCH_CHECK(uv_tcp_init(loop, &listener) == 0 && uv_tcp_bind(&listener, (struct sockaddr*)&address, 0) == 0);
  BENCH_CHECK(uv_listen((uv_stream_t*)&listener, 1024, on_connection) == 0);
  BENCH_CHECK(uv_tcp_getsockname(&listener, (struct sockaddr*)&address, &size) == 0);
  BENCH_CHECK(uv_signal_init(loop, &sigterm) == 0 && uv_signal_start(&sigterm, on_sigterm, SIGTERM) == 0);
  printf("port %u\n", ntohs(address.sin_port));
  fflush(stdout);
  uv_run(loop, UV_RUN_DEFAULT);
  bench_json_open("echo", "libuv", 1);
  bench_json_number("connections", (double)total_connections);
  bench_json_number("bytes", (double)total_bytes);
  bench_json_number("cpu_ns", (double)bench_cpu_ns());
  bench_json_close();
  return 0;
}

static const struct workload {
  const char* name;
  uint64_t ops;
  uint64_t batch;
  void (*run)(uv_loop_t*, uint64_t, uint64_t);
} workloads[] = {
    {"timer_churn", 1000000, 10000, timer_churn},
    {"timer_reset", 1000000, 10000, timer_reset},
    {"blocking", 200000, 200000, blocking},
    {"blocking_seq", 10000, 1, blocking_seq},
};

static void measure(const struct workload* workload, int argc, char** argv) {
  uv_loop_t* loop = uv_default_loop();
  uint64_t ops = bench_argument(argc, argv, "--ops", workload->ops);
  uint64_t batch = bench_argument(argc, argv, "--batch", workload->batch);
  uint64_t warmup = bench_argument(argc, argv, "--warmup", ops / 10);
  if (warmup > 0) workload->run(loop, warmup, batch < warmup ? batch : warmup);
  workload->run(loop, ops, batch);
  BENCH_CHECK(bad == 0 && done == ops);
  bench_json_open(workload->name, "libuv", 1);
  bench_json_number("ops", (double)ops);
  bench_json_number("ns_per_op", (double)wall_ns / (double)ops);
  bench_json_number("cpu_ns_per_op", (double)cpu_ns / (double)ops);
  bench_json_close();
}

int main(int argc, char** argv) {
  buffer_bytes = (size_t)bench_argument(argc, argv, "--buffer", 32 * 1024);
  if (argc > 1 && strcmp(argv[1], "echo") == 0) return echo(uv_default_loop());
  for (size_t i = 0; argc > 1 && i < sizeof workloads / sizeof *workloads; i++) {
    if (strcmp(argv[1], workloads[i].name) != 0) continue;
    measure(&workloads[i], argc, argv);
    return 0;
  }
  return 2;
}
