/* minimal.c: a whole async runtime on one page, from nothing, to see that there is no magic in it.
 *
 * Three things make a runtime: a queue of tasks that are ready, a loop that polls them, and a waker,
 * which puts a task back into the queue. Everything else is somebody who keeps a waker until he has news.
 * Build it alone: cc -o minimal minimal.c */
#define _DEFAULT_SOURCE /* clock_gettime, with -std=c99 too */
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { READY, PENDING };

/* A task is a function that is called again and again until it is READY. When it cannot go on it must
 * have left its waker with someone, and answers PENDING. It never waits: waiting is the loop's part. */
typedef struct Task {
  int (*poll)(struct Task *self);
  struct Task *next; /* in the queue */
  bool queued;       /* a second wake before the poll must not queue it twice */
  int step;          /* where it stopped: the one thing that its "stack" would have known */
  char name;
  int rounds;
} Task;

/* ---- The queue and the waker ---- */

static Task *first_ready;
static Task **last_ready = &first_ready;
static int tasks_alive;

static void wake(Task *task) {
  if (task->queued) return;
  task->queued = true;
  task->next = NULL;
  *last_ready = task;
  last_ready = &task->next;
}

static Task *take_ready(void) {
  Task *task = first_ready;
  if (task == NULL) return NULL;
  first_ready = task->next;
  if (first_ready == NULL) last_ready = &first_ready;
  task->queued = false; /* before the poll: a wake that comes during it leads to one more */
  return task;
}

static void spawn(Task *task) {
  tasks_alive++;
  wake(task);
}

/* ---- Who keeps wakers: one list of deadlines, one list of descriptors ---- */

enum { WAITING_MAX = 16 };
static struct {
  Task *task;
  uint64_t deadline_ns;
} sleepers[WAITING_MAX];
static struct pollfd watched[WAITING_MAX];
static Task *watchers[WAITING_MAX];
static nfds_t watched_count;

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void wake_me_in(Task *task, uint64_t ns) {
  int free_one = 0;
  while (sleepers[free_one].task != NULL) free_one++;
  sleepers[free_one].task = task;
  sleepers[free_one].deadline_ns = now_ns() + ns;
}

static void wake_me_when_readable(Task *task, int fd) {
  watchers[watched_count] = task;
  watched[watched_count++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

/* With nothing to run the thread sleeps in one system call, until the nearest deadline or until a
 * descriptor has news; then it wakes who was waiting for that. Time and I/O share the place to sleep. */
static void park(void) {
  uint64_t nearest_ns = UINT64_MAX;
  for (int i = 0; i < WAITING_MAX; i++) {
    if (sleepers[i].task != NULL && sleepers[i].deadline_ns < nearest_ns) nearest_ns = sleepers[i].deadline_ns;
  }
  int timeout_ms = -1;
  if (nearest_ns != UINT64_MAX) {
    uint64_t now = now_ns();
    timeout_ms = nearest_ns <= now ? 0 : (int)((nearest_ns - now + 999999) / 1000000); /* never early */
  }
  poll(watched, watched_count, timeout_ms);
  for (nfds_t i = 0; i < watched_count;) {
    if (watched[i].revents == 0) {
      i++;
      continue;
    }
    wake(watchers[i]);
    watched[i] = watched[--watched_count];
    watchers[i] = watchers[watched_count];
  }
  uint64_t now = now_ns();
  for (int i = 0; i < WAITING_MAX; i++) {
    if (sleepers[i].task == NULL || sleepers[i].deadline_ns > now) continue;
    wake(sleepers[i].task);
    sleepers[i].task = NULL;
  }
}

/* ---- The loop ---- */

static void run(void) {
  while (tasks_alive > 0) {
    Task *task = take_ready();
    if (task == NULL) {
      park();
    } else if (task->poll(task) == READY) {
      tasks_alive--;
    }
  }
}

/* ---- A program: two tasks that talk through a pipe ---- */

static int pipe_fds[2];

/* A state machine by hand: `step` says where to go on. <noria/async.h> writes these for you. */
static int writer_poll(Task *self) {
  if (self->step++ < self->rounds) {
    char letter = (char)('a' + self->step - 1);
    if (write(pipe_fds[1], &letter, 1) != 1) return READY;
    printf("%c: wrote %c, sleeps\n", self->name, letter);
    wake_me_in(self, 10000000);
    return PENDING;
  }
  close(pipe_fds[1]);
  return READY;
}

static int reader_poll(Task *self) {
  if (self->step++ > 0) { /* not the first time: the descriptor was readable */
    char letter;
    if (read(pipe_fds[0], &letter, 1) != 1) return READY; /* the end of the pipe */
    printf("%c: read  %c\n", self->name, letter);
    self->rounds++;
  }
  wake_me_when_readable(self, pipe_fds[0]);
  return PENDING;
}

int main(void) {
  Task writer = {.poll = writer_poll, .name = 'W', .rounds = 5};
  Task reader = {.poll = reader_poll, .name = 'R'};
  if (pipe(pipe_fds) != 0) return 1;
  spawn(&reader);
  spawn(&writer);
  run();
  close(pipe_fds[0]);
  printf("both done, %d letters came\n", reader.rounds);
  return reader.rounds == writer.rounds ? 0 : 1;
}

/* What Noria adds to this page
 *
 *   here                                       Noria
 *   one thread, one queue                      a queue for each core, and whoever is idle takes half of another's
 *   wake() from this thread only               from any thread, at any time, after the end too; no wake is lost
 *   a list of sleepers, searched               a wheel for each core: arming and cancelling cost the same at a million
 *   poll() over all descriptors each time      epoll, edge-triggered; one thread watches for all, another takes over
 *                                              when a task keeps that one busy
 *   a task that computes stops everybody       its neighbours' tasks, timers and I/O move to an idle core
 *   tasks must not block                       a pool of threads for what blocks (noria_spawn_blocking)
 *   nobody can ask a task to end               abort, time-outs, select; dropped at any point nothing leaks
 *   READY and no result                        futures and joins with results and errors
 *   the program's tasks only                   tasks of C++, Rust and Python beside each other in the same queues */
