/* text.c: numbers as a person reads them. */
#include "text.h"

#include <stdio.h>
#include <string.h>

const char *text_count(uint64_t number, Text *out) {
  char digits[24];
  int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
  size_t at = 0;
  for (int i = 0; i < length; i++) {
    if (i > 0 && (length - i) % 3 == 0) out->of[at++] = ',';
    out->of[at++] = digits[i];
  }
  out->of[at] = '\0';
  return out->of;
}

/* Three significant digits and the largest unit that keeps them. */
static const char *scale(double number, double step, const char *const *units, int count, const char *gap, Text *out) {
  int unit = 0;
  while (number >= 999.5 && unit + 1 < count) {
    number /= step;
    unit++;
  }
  int digits = number >= 99.95 || unit == 0 ? 0 : number >= 9.995 ? 1 : 2;
  snprintf(out->of, sizeof out->of, "%.*f%s%s", digits, number, gap, units[unit]);
  return out->of;
}

const char *text_short(double number, Text *out) {
  static const char *const units[] = {"", "k", "M", "G", "T"};
  return scale(number, 1000, units, 5, "", out);
}

const char *text_bytes(double bytes, Text *out) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  return scale(bytes, 1024, units, 5, " ", out);
}

const char *text_duration(uint64_t ns, Text *out) {
  static const char *const units[] = {"ns", "us", "ms", "s"};
  return scale((double)ns, 1000, units, 4, " ", out);
}
