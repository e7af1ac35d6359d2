/* arena_address.c: lets Criterion 2.4 run under ThreadSanitizer.
 * Criterion maps the arena that it shares with a test's process at
 * 0x200000000000 + (rand_r() & 0x3fffff) * 16 MiB, and ThreadSanitizer refuses nearly all of that
 * range. This rand_r takes the C library's place and yields only slots between 0x550000000000,
 * where the sanitizer's middle application range begins, and 0x555550000000, below any program's
 * image. */
#include <stdlib.h>

int rand_r(unsigned* seed) {
  const unsigned first_slot = 0x350000;
  const unsigned slots = 0x5000;
  *seed = *seed * 1664525U + 1013904223U;
  return (int)(first_slot + (*seed >> 8) % slots);
}
