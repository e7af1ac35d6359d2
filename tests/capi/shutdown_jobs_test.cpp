// What the report of a shutdown says of the pool's jobs: those of the user that had not begun, neither more nor less. The linker leads
// Pool::close and getaddrinfo here (--wrap).
#include <criterion/criterion.h>
#include <netdb.h>

#include <functional>

#include "blocking/pool.hpp"
#include "support/runtime_fixture.hpp"

using namespace noria::test;

namespace {

std::function<void()> g_before_close;  // the pool is about to take back what has not begun
std::atomic<int> g_looking_up{0};
Latch g_answer;

noria_shutdown_report shut_down(noria_runtime* rt) {
  noria_shutdown_report report{};
  report.size = sizeof report;
  NORIA_OK_CALL(noria_runtime_shutdown(rt, 5 * kSecond, &report));
  return report;
}

}  // namespace

extern "C" {
// Pool::close()
void __real__ZN5noria8blocking4Pool5closeEv(noria::blocking::Pool* self) noexcept;
void __wrap__ZN5noria8blocking4Pool5closeEv(noria::blocking::Pool* self) noexcept {
  if (g_before_close) g_before_close();
  __real__ZN5noria8blocking4Pool5closeEv(self);
}

int __wrap_getaddrinfo(const char*, const char*, const addrinfo*, addrinfo**) {
  ++g_looking_up;
  g_answer.wait("the end of the test");
  return EAI_AGAIN;
}
}

Test(ShutdownJobs, Job_that_begins_while_the_runtime_is_closed_is_not_counted) {
  noria_runtime_options options{};
  options.pool_user_threads = 1;
  on_runtimes(
      kCurrent | kTwo,
      [](Lane& lane) {
        struct {
          Latch running, go, both{2};
          std::atomic<int> discarded{0};
        } at;
        using At = decltype(at);
        auto run = [](void* data) -> int32_t {
          auto* self = static_cast<At*>(data);
          self->running.count_down();
          self->go.wait("the shutdown");
          self->both.count_down();
          return NORIA_OK;
        };
        auto discard = [](void* data) { ++static_cast<At*>(data)->discarded; };
        NORIA_OK_CALL(noria_spawn_blocking(lane.rt, run, discard, &at, nullptr));
        at.running.wait("the first job");
        NORIA_OK_CALL(noria_spawn_blocking(lane.rt, run, discard, &at, nullptr));
        g_before_close = [&] {
          at.go.count_down();
          at.both.wait("the second job");
        };
        cr_assert_eq(shut_down(lane.rt).jobs_dropped, 0);
        g_before_close = nullptr;
        cr_assert_eq(at.discarded, 0);
      },
      options);
}

Test(ShutdownJobs, Name_look_up_that_had_not_begun_is_no_job_of_the_users) {
  noria_runtime_options options{};
  options.pool_name_threads = 1;
  on_runtimes(
      kTwo,
      [](Lane& lane) {
        noria_future* connects[2];
        for (noria_future*& connect : connects)
          NORIA_OK_CALL(noria_tcp_connect(lane.rt, "a.name.invalid:1", nullptr, &connect));
        while (g_looking_up != 1) std::this_thread::yield();
        g_before_close = [] { g_answer.count_down(); };
        cr_assert_eq(shut_down(lane.rt).jobs_dropped, 0);
        g_before_close = nullptr;
        for (noria_future* connect : connects) NORIA_OK_CALL(noria_future_drop(connect));
      },
      options);
}
