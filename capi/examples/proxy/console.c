/* console.c: the one writer to stderr.
 *
 * A worker that logs writes to stderr itself: a terminal or a file takes a line in microseconds, and
 * the limit of lines a second keeps a storm of failures from becoming a storm of writes. What the
 * limit left out of a second is told after it, by reason. */
#include "console.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { LINES_A_SECOND = 20, REASONS_MAX = 16 };

typedef struct LeftOut {
  char reason[REASON_TEXT];
  uint64_t count;
} LeftOut;

static struct {
  pthread_mutex_t lock; /* guards the rest */
  bool quiet;
  bool terminal;
  bool status_shown;
  time_t second; /* of the lines counted below */
  unsigned lines;
  LeftOut left_out[REASONS_MAX]; /* of that second */
  size_t reasons;
} console = {.lock = PTHREAD_MUTEX_INITIALIZER};

void console_init(bool quiet) {
  console.quiet = quiet;
  console.terminal = isatty(STDERR_FILENO) == 1;
}

bool console_is_terminal(void) { return console.terminal; }

int console_width(void) {
  if (!console.terminal) return 1000;
  struct winsize size;
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1 : 79;
}

static void clear_status(void) {
  if (console.status_shown) fputs("\r\033[K", stderr);
  console.status_shown = false;
}

static void tell_left_out(void) {
  for (size_t i = 0; i < console.reasons; i++) {
    fprintf(stderr, "         (%llu more: %s)\n", (unsigned long long)console.left_out[i].count,
            console.left_out[i].reason);
  }
  console.reasons = 0;
}

static void leave_out(const char *reason) {
  size_t i = 0;
  while (i < console.reasons && strncmp(console.left_out[i].reason, reason, REASON_TEXT - 1) != 0) i++;
  if (i == REASONS_MAX) { /* the last place is for all others */
    i--;
    snprintf(console.left_out[i].reason, REASON_TEXT, "other reasons");
  } else if (i == console.reasons) {
    snprintf(console.left_out[i].reason, REASON_TEXT, "%s", reason);
    console.left_out[i].count = 0;
    console.reasons++;
  }
  console.left_out[i].count++;
}

/* Begins to count anew if a second has passed. */
static void look_at_clock(struct tm *now) {
  struct timespec clock;
  clock_gettime(CLOCK_REALTIME, &clock);
  localtime_r(&clock.tv_sec, now);
  if (clock.tv_sec == console.second) return;
  console.second = clock.tv_sec;
  console.lines = 0;
  if (console.reasons > 0) clear_status();
  tell_left_out();
}

void console_say(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  pthread_mutex_lock(&console.lock);
  clear_status();
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  pthread_mutex_unlock(&console.lock);
  va_end(arguments);
}

void console_log(const char *reason, const char *format, ...) {
  if (console.quiet) return;
  va_list arguments;
  va_start(arguments, format);
  pthread_mutex_lock(&console.lock);
  struct tm now;
  look_at_clock(&now);
  if (console.lines >= LINES_A_SECOND) {
    leave_out(reason);
  } else {
    console.lines++;
    clear_status();
    fprintf(stderr, "%02d:%02d:%02d ", now.tm_hour, now.tm_min, now.tm_sec);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
  }
  pthread_mutex_unlock(&console.lock);
  va_end(arguments);
}

void console_status(const char *line) {
  if (console.quiet) return;
  pthread_mutex_lock(&console.lock);
  struct tm now;
  look_at_clock(&now);
  if (console.terminal) {
    fprintf(stderr, "\r%.*s\033[K", console_width(), line); /* one that wraps could not be replaced */
    console.status_shown = true;
  } else {
    fprintf(stderr, "%s\n", line);
  }
  fflush(stderr);
  pthread_mutex_unlock(&console.lock);
}

void console_clear(void) {
  pthread_mutex_lock(&console.lock);
  clear_status();
  tell_left_out();
  fflush(stderr);
  pthread_mutex_unlock(&console.lock);
}
