/* console.h: the one writer to stderr: log lines, and a status line that they do not tear. */
#ifndef PROXY_CONSOLE_H
#define PROXY_CONSOLE_H

#include <stdbool.h>

enum { REASON_TEXT = 48 }; /* more of a reason is cut */

void console_init(bool quiet);
bool console_is_terminal(void);
int console_width(void); /* columns that a status may take; not a terminal: many */

/* A line that always comes. Callable from any thread. */
__attribute__((format(printf, 1, 2))) void console_say(const char *format, ...);

/* A line of the log, not when quiet. At most 20 a second come whole: of the others the number is told, for each `reason`. */
__attribute__((format(printf, 2, 3))) void console_log(const char *reason, const char *format, ...);

/* The status: on a terminal it replaces the one before, else it is a line. Not when quiet. */
void console_status(const char *line);

/* Takes the status off the terminal, before something else is written there, and ends the log. */
void console_clear(void);

#endif
