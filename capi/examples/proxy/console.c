/* console.c: the one writer to stderr.
 *
 * A worker that logs writes to stderr itself: a terminal or a file takes a line in microseconds, and
 * the limit of lines a second keeps a storm of failures from becoming a storm of writes. */
#include "console.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { LINES_A_SECOND = 20 };

static struct {
  pthread_mutex_t lock; /* guards the rest */
  bool quiet;
  bool terminal;
  bool status_shown;
  time_t second; /* of the lines counted below */
  unsigned lines;
  uint64_t left_out;
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

/* Whether this second has room for one more line; a new second tells what the last one left out. */
static bool admit(struct tm *now) {
  struct timespec clock;
  clock_gettime(CLOCK_REALTIME, &clock);
  localtime_r(&clock.tv_sec, now);
  if (clock.tv_sec != console.second) {
    if (console.left_out > 0) {
      fprintf(stderr, "         (%llu more)\n", (unsigned long long)console.left_out);
    }
    console.second = clock.tv_sec;
    console.lines = 0;
    console.left_out = 0;
  }
  if (console.lines >= LINES_A_SECOND) {
    console.left_out++;
    return false;
  }
  console.lines++;
  return true;
}

void console_log(const char *format, ...) {
  if (console.quiet) return;
  va_list arguments;
  va_start(arguments, format);
  pthread_mutex_lock(&console.lock);
  clear_status();
  struct tm now;
  if (admit(&now)) {
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
  fflush(stderr);
  pthread_mutex_unlock(&console.lock);
}
