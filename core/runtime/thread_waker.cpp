#include "runtime/thread_waker.hpp"

#include <new>

#include "base/allocator.hpp"
#include "base/clock.hpp"
#include "base/live.hpp"
#include "sync/futex.hpp"
#include "task/context.hpp"

namespace noria::runtime {

const noria_waker_vtable ThreadWaker::kVtable = {clone, wake, wake_by_ref, drop};

ThreadWaker* ThreadWaker::create() {
  void* memory = raw_alloc(sizeof(ThreadWaker), alignof(ThreadWaker));
  return memory == nullptr ? nullptr : new (memory) ThreadWaker;
}

void ThreadWaker::release() {
  // ORDER: acq_rel, what each holder did happens before the end.
  if (references_.fetch_sub(1, NORIA_ACQ_REL) != 1) return;
  this->~ThreadWaker();
  raw_free(this, sizeof(ThreadWaker), alignof(ThreadWaker));
}

void ThreadWaker::notify() {
  // ORDER: acq_rel, publishes what was done before the wake (P1); only the first of several wakes the thread.
  if (notified_.exchange(1, NORIA_ACQ_REL) == 0) sync::futex_wake(notified_);
}

bool ThreadWaker::take() {
  // ORDER: acq_rel, acquires what the waker published, and is seen by the next notify.
  return notified_.exchange(0, NORIA_ACQ_REL) != 0;
}

bool ThreadWaker::wait(std::uint64_t deadline_ns) {
  while (!take()) {
    std::uint64_t now_ns = deadline_ns == kNever ? 0 : monotonic_ns();
    if (now_ns >= deadline_ns) return false;
    sync::futex_wait(notified_, 0, deadline_ns == kNever ? kNever : deadline_ns - now_ns);
  }
  return true;
}

void ThreadWaker::wait_untaken() {
  while (!notified()) sync::futex_wait(notified_, 0, kNever);
}

void ThreadWaker::clone(const noria_waker* waker, noria_waker* out) {
  // ORDER: relaxed, who has a reference may make another.
  static_cast<ThreadWaker*>(waker->data)->references_.fetch_add(1, NORIA_RELAXED);
  live_add(Live::kWakers, 1);
  *out = *waker;
}

void ThreadWaker::wake(noria_waker* waker) {
  static_cast<ThreadWaker*>(waker->data)->notify();
  drop(waker);
}

void ThreadWaker::wake_by_ref(const noria_waker* waker) { static_cast<ThreadWaker*>(waker->data)->notify(); }

void ThreadWaker::drop(noria_waker* waker) {
  live_add(Live::kWakers, -1);
  static_cast<ThreadWaker*>(waker->data)->release();
}

std::uintptr_t thread_token() { return reinterpret_cast<std::uintptr_t>(&task::t_context); }

}  // namespace noria::runtime
