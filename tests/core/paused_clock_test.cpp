// Paused time stands still for a thread in block_on that was woken and has not gone on yet. The linker leads futex_wait here (--wrap), so
// that the thread can be held where it has been woken.
#include <criterion/criterion.h>

#include "runtime/core.hpp"
#include "support/runtimes.hpp"
#include "sync/futex.hpp"

using namespace noria::test;

namespace {

std::atomic<bool> g_hold{false};
std::atomic<bool> g_sleeps{false};
std::atomic<bool> g_held{false};
thread_local bool t_holds = false;  // this thread is held when it was woken

}  // namespace

// futex_wait(Atomic<std::uint32_t>&, std::uint32_t, std::uint64_t)
extern "C" {
void __real__ZN5noria4sync10futex_waitERSt6atomicIjEjm(noria::Atomic<std::uint32_t>& word, std::uint32_t expected,
                                                       std::uint64_t timeout_ns) noexcept;
void __wrap__ZN5noria4sync10futex_waitERSt6atomicIjEjm(noria::Atomic<std::uint32_t>& word, std::uint32_t expected,
                                                       std::uint64_t timeout_ns) noexcept {
  if (t_holds) g_sleeps = true;
  __real__ZN5noria4sync10futex_waitERSt6atomicIjEjm(word, expected, timeout_ns);
  if (!t_holds || word.load() == expected) return;
  g_held = true;
  g_held.notify_all();
  g_hold.wait(true);
}
}

Test(PausedClock, P6_it_does_not_jump_before_a_woken_block_on_has_gone_on) {
  noria_runtime_options options{};
  options.clock_paused = 1;
  on_runtimes(
      kMulti,
      [](Lane& lane) {
        Watchdog watchdog("a block_on that is held");
        auto& core = *noria::runtime::from_c(lane.rt);
        constexpr std::uint64_t kHour = 3600 * kSecond;
        KeptWaker kept;
        std::atomic<bool> waits{false};
        std::uint64_t start = 0, then = 0;
        NORIA_OK_CALL(noria_now(lane.rt, &start));
        g_hold = true;
        g_sleeps = g_held = false;
        std::thread blocked([&] {
          t_holds = true;
          auto body = [&](const noria_cx* cx) -> int32_t {
            if (waits) return noria_now(lane.rt, &then) == NORIA_OK ? NORIA_READY : -EIO;
            kept.keep(cx);
            waits = true;
            return NORIA_PENDING;
          };
          NORIA_OK_CALL(noria_runtime_block_on(lane.rt, &kBorrowed<decltype(body)>, &body, nullptr));
        });
        lane.until([&] { return g_sleeps && !core.clock_held(); }, "the sleep of block_on");
        kept.wake();
        g_held.wait(false);
        NORIA_CHECK(core.clock_held(), "%s: woken, and time may move", lane.name);
        noria_future* sleep = nullptr;
        NORIA_OK_CALL(noria_sleep(lane.rt, kHour, &sleep));
        lane.inside([] {});  // the workers have been up, and go to sleep again
        g_hold = false;
        g_hold.notify_all();
        blocked.join();
        cr_assert_eq(then, start, "%s: it was woken, and time has moved", lane.name);
        NORIA_OK_CALL(lane.await(sleep));  // now it jumps
      },
      options);
}
