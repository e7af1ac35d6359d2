// check.hpp: checks and a watchdog for tests, from any thread, with and without Criterion.
//
// NORIA_CHECK ends the process with a message: Criterion's own assertions may only be used on a test's main thread. The
// watchdog turns a hang into a message too; it is a timer of the kernel and no thread, so that a test may count threads and wake-ups.
#pragma once

#include <noria.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>

// Whether the tests run under ThreadSanitizer.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define NORIA_TEST_TSAN 1
#endif
#endif
#ifndef NORIA_TEST_TSAN
#define NORIA_TEST_TSAN 0
#endif

namespace noria::test {

[[noreturn, gnu::format(printf, 3, 4)]] inline void fail(const char* file, int line, const char* format, ...) {
  char text[1024];
  int used = std::snprintf(text, sizeof text, "%s:%d: ", file, line);
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text + used, sizeof text - static_cast<std::size_t>(used), format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "%s\n", text);
  std::fflush(stderr);
  std::abort();
}

// NORIA_CHECK(condition, format, ...): the text says what was expected, with the values.
#define NORIA_CHECK(condition, ...)                                         \
  do {                                                                      \
    if (!(condition)) ::noria::test::fail(__FILE__, __LINE__, __VA_ARGS__); \
  } while (0)

// NORIA_STATUS(call, expected): the call answers this status.
#define NORIA_STATUS(call, expected)                                                                              \
  do {                                                                                                            \
    std::int32_t noria_status_ = (call);                                                                          \
    std::int32_t noria_wanted_ = (expected);                                                                      \
    if (noria_status_ != noria_wanted_)                                                                           \
      ::noria::test::fail(__FILE__, __LINE__, "%s: %s (%d), expected %s", #call, noria_error_name(noria_status_), \
                          noria_status_, noria_error_name(noria_wanted_));                                        \
  } while (0)

#define NORIA_OK_CALL(call) NORIA_STATUS(call, NORIA_OK)

#ifdef NORIA_SANITIZED
inline constexpr int kWatchdogSeconds = 40;
#else
inline constexpr int kWatchdogSeconds = 10;
#endif

// Under a sanitizer a round takes several times as long: a long form has half of the rounds.
#ifdef NORIA_SANITIZED
inline constexpr int kLongFormShare = 2;
#else
inline constexpr int kLongFormShare = 1;
#endif

// NORIA_LONG=1 asks for the long form of a test: ctest sets it where the build has NORIA_TEST_LONG.
inline bool long_form() { return std::getenv("NORIA_LONG") != nullptr; }
inline int rounds(int few, int many) {
  int share = many / kLongFormShare;
  return long_form() && share > few ? share : few;
}

// A long form has one watchdog for a hundred times as much.
inline constexpr int kLongFormPatience = 100;

// Whatever happens until the end of the scope must happen within kWatchdogSeconds (in the long form kLongFormPatience times
// that). Any number of them, on any threads: the timer is set for the one that is due first, and that one is named.
class Watchdog {
 public:
  explicit Watchdog(const char* what, int seconds = kWatchdogSeconds)
      : what_(what), due_(now() + seconds * (long_form() ? kLongFormPatience : 1)) {
    std::lock_guard guard(all().lock);
    struct sigaction action {};
    action.sa_handler = bark;
    ::sigaction(SIGALRM, &action, nullptr);
    next_ = all().first;
    if (next_ != nullptr) next_->link_ = &next_;
    link_ = &all().first;
    all().first = this;
    set();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog() {
    std::lock_guard guard(all().lock);
    *link_ = next_;
    if (next_ != nullptr) next_->link_ = link_;
    set();
  }

 private:
  struct All {
    std::mutex lock;
    Watchdog* first = nullptr;  // guarded by lock
    const char* due = "";       // guarded by lock; read when all is lost
  };
  static All& all() {
    static All* const instance = new All;  // threads may outlive main's statics
    return *instance;
  }
  static long now() {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec;
  }
  static void bark(int) {
    const char* what = all().due;
    [[maybe_unused]] auto head = ::write(STDERR_FILENO, "watchdog: hung in ", 18);
    [[maybe_unused]] auto text = ::write(STDERR_FILENO, what, std::strlen(what));
    [[maybe_unused]] auto end = ::write(STDERR_FILENO, "\n", 1);
    std::abort();
  }
  static void set() {
    long due = 0;
    for (Watchdog* each = all().first; each != nullptr; each = each->next_) {
      if (due != 0 && due <= each->due_) continue;
      due = each->due_;
      all().due = each->what_;
    }
    itimerval timer{};
    if (due != 0) timer.it_value.tv_sec = due - now() > 0 ? due - now() : 1;
    ::setitimer(ITIMER_REAL, &timer, nullptr);
  }

  const char* const what_;
  const long due_;
  Watchdog* next_ = nullptr;   // guarded by the lock
  Watchdog** link_ = nullptr;  // guarded by the lock
};

// NORIA_SEED repeats what a run that failed has printed.
inline std::uint64_t test_seed() {
  static const std::uint64_t seed = [] {
    const char* given = std::getenv("NORIA_SEED");
    std::uint64_t value = given != nullptr ? std::strtoull(given, nullptr, 0) : 0;
    if (value == 0) {
      timespec now{};
      ::clock_gettime(CLOCK_REALTIME, &now);
      value = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'007u + static_cast<std::uint64_t>(now.tv_nsec);
    }
    std::fprintf(stderr, "NORIA_SEED=%llu\n", static_cast<unsigned long long>(value));
    return value;
  }();
  return seed;
}

}  // namespace noria::test
