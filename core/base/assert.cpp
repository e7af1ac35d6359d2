#include "base/assert.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace noria {

void assert_failed(const char* invariant, const char* file, int line) {
  char text[512];
  int n = std::snprintf(text, sizeof text, "noria: broken invariant: %s (%s:%d)\n", invariant, file, line);
  if (n > 0) {
    auto length = static_cast<std::size_t>(n) < sizeof text ? static_cast<std::size_t>(n) : sizeof text - 1;
    [[maybe_unused]] auto ignored = ::write(STDERR_FILENO, text, length);
  }
  std::abort();
}

}  // namespace noria
