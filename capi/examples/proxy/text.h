/* text.h: numbers as a person reads them. Each writes into `out` and returns it. */
#ifndef PROXY_TEXT_H
#define PROXY_TEXT_H

#include <stdint.h>

typedef struct Text {
  char of[32];
} Text;

const char *text_count(uint64_t number, Text *out); /* 1,234,567 */
const char *text_short(double number, Text *out);   /* 1.23M */
const char *text_bytes(double bytes, Text *out);    /* 1.23 GiB */
const char *text_duration(uint64_t ns, Text *out);  /* 1.23 ms */

#endif
