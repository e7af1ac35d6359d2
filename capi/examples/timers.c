/* timers.c: sleeping, time-outs, a timer that is armed anew, a rhythm - and a day that takes a moment.
 *
 * With the clock paused, time stands still while there is something to do, and jumps to the next deadline
 * when there is not. The program below sees a whole day pass; tests of your own code can do the same. */
#include <errno.h>
#include <noria/async.h>
#include <noria/noria.h>
#include <stdio.h>
#include <stdlib.h>

#define SECOND UINT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)

typedef struct Day {
  noria_frame frame;
  noria_runtime *rt;
  noria_future *op;
  noria_timer *timer;
  noria_interval *interval;
  uint64_t dawn_ns;
  uint64_t due_ns;
  int chimes;
} Day;

static void say(const Day *day, const char *what) {
  uint64_t now_ns = 0;
  noria_now(day->rt, &now_ns);
  uint64_t seconds = (now_ns - day->dawn_ns) / SECOND;
  printf("%02u:%02u:%02u  %s\n", (unsigned)(seconds / 3600), (unsigned)(seconds / 60 % 60), (unsigned)(seconds % 60),
         what);
}

/* A future that is not ready for a long time, with an end after a short one. The time-out consumes it. */
static int32_t impatient(Day *day) {
  noria_future *nap = NULL;
  int32_t status = noria_sleep(day->rt, 8 * HOUR, &nap);
  if (status != NORIA_OK) return status;
  status = noria_timeout(day->rt, nap, 10 * MINUTE, &day->op);
  if (status != NORIA_OK) noria_future_drop(nap);
  return status;
}

static int32_t day_poll(void *state, const noria_cx *cx) {
  Day *day = state;
  NORIA_BEGIN(&day->frame, cx);
  say(day, "a day begins");

  /* Once: a sleep is a future, and a future can be awaited. */
  NORIA_TRY_CALL(&day->frame, day->op, noria_sleep(day->rt, 6 * HOUR, &day->op), NULL, 0);
  say(day, "slept six hours");

  /* Not for ever: a time-out around any future. Its status then is -ETIMEDOUT. */
  NORIA_AWAIT_CALL(&day->frame, day->op, impatient(day), NULL, 0);
  if (day->frame.status != -ETIMEDOUT) NORIA_RETURN(&day->frame, -EPROTO);
  say(day, "woken from a nap after ten minutes");

  /* Again and again: a timer is made once and armed as often as you like, at no allocation. This is what
   * idle time-outs are made of: each byte that comes moves the deadline. */
  NORIA_TRY(&day->frame, noria_timer_new(day->rt, &day->timer));
  noria_now(day->rt, &day->due_ns);
  noria_timer_reset(day->timer, day->due_ns + HOUR);
  noria_timer_reset(day->timer, day->due_ns + 2 * HOUR); /* moved before it fired */
  NORIA_TRY(&day->frame, noria_timer_poll_wait(day->timer, cx));
  say(day, "the timer fired two hours later, and only then");

  /* In a rhythm: an interval. This one keeps its rhythm whatever happens between two ticks. */
  noria_now(day->rt, &day->due_ns);
  NORIA_TRY(&day->frame, noria_interval_new(day->rt, day->due_ns + HOUR, HOUR, NORIA_MISSED_BURST, &day->interval));
  for (day->chimes = 0; day->chimes < 15; day->chimes++) {
    NORIA_TRY(&day->frame, noria_interval_poll_tick(day->interval, cx, &day->due_ns));
  }
  say(day, "fifteen chimes of the clock tower");

  NORIA_TRY_CALL(&day->frame, day->op, noria_sleep_until(day->rt, day->dawn_ns + 24 * HOUR, &day->op), NULL, 0);
  say(day, "the day is over");
  NORIA_END(&day->frame);
}

static void day_drop(void *state) {
  Day *day = state;
  if (day->op != NULL) noria_future_drop(day->op);
  if (day->timer != NULL) noria_timer_drop(day->timer);
  if (day->interval != NULL) noria_interval_drop(day->interval);
}

static const noria_task_vtable day_vtable = {
    .size = sizeof(noria_task_vtable), .poll = day_poll, .drop = day_drop, .name = "day"};

int main(void) {
  /* A current-thread runtime: everything runs on this thread while it is in block_on. Take clock_paused away
   * and the program still works, but brings a book. */
  noria_runtime_options options = {.size = sizeof options, .kind = NORIA_RUNTIME_CURRENT_THREAD, .clock_paused = 1};
  noria_runtime *rt;
  if (noria_runtime_new(&options, &rt) != NORIA_OK) return EXIT_FAILURE;
  Day day = {.rt = rt};
  noria_now(rt, &day.dawn_ns);
  noria_join_result ended = {0};
  int32_t status = noria_runtime_block_on(rt, &day_vtable, &day, &ended);
  if (status == NORIA_OK) status = ended.error;
  uint64_t dusk_ns = 0;
  noria_now(rt, &dusk_ns);
  noria_runtime_free(rt);
  if (status != NORIA_OK) fprintf(stderr, "timers: %s\n", noria_error_message(status));
  return status == NORIA_OK && dusk_ns - day.dawn_ns >= 24 * HOUR ? EXIT_SUCCESS : EXIT_FAILURE;
}
