// sources.hpp: sources in a slab of their own and wakers that count, for tests of the reactor without a runtime.
#pragma once

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <new>

#include "base/slab.hpp"
#include "reactor/reactor.hpp"

namespace noria::test {

struct CountingWaker {
  Atomic<int> wakes{0};
  Atomic<int> clones{0};  // alive

  static CountingWaker* of(const noria_waker* waker) { return static_cast<CountingWaker*>(waker->data); }
  static const noria_waker_vtable* vtable() {
    static const noria_waker_vtable table = {
        [](const noria_waker* waker, noria_waker* out) {
          of(waker)->clones.fetch_add(1);
          *out = *waker;
        },
        [](noria_waker* waker) {
          CountingWaker* self = of(waker);
          self->wakes.fetch_add(1);
          self->clones.fetch_sub(1);
        },
        [](const noria_waker* waker) { of(waker)->wakes.fetch_add(1); },
        [](noria_waker* waker) { of(waker)->clones.fetch_sub(1); },
    };
    return &table;
  }
  noria_waker raw{vtable(), this, nullptr};
  noria_cx cx{&raw, {0, 0, 0}};
};

class PlainSource final : public reactor::Source {
 public:
  explicit PlainSource(std::int32_t fd)
      : Source(fd, [](Source* self) {
          static_cast<PlainSource*>(self)->~PlainSource();
          Slab::free(self);
        }) {}
};

// A slab and a reactor; sources made here are given back by Source::unref.
struct Bench {
  Slab* slab = Slab::create([](void*) {}, nullptr);
  std::unique_ptr<reactor::Reactor> reactor;

  Bench() {
    Slab::set_current(slab);
    if (reactor::Reactor::create(NORIA_REACTOR_AUTO, reactor) != 0) abort();
  }
  ~Bench() {
    reactor.reset();
    Slab::set_current(nullptr);
    slab->orphan();
  }
  PlainSource* make(std::int32_t fd) {
    return new (slab->alloc(SlotKind::kOther, sizeof(PlainSource), alignof(PlainSource))) PlainSource(fd);
  }
  void end(PlainSource* source) {
    reactor->remove(*source);
    source->unref();
  }
};

inline bool all_live_zero() {
  for (std::int64_t count : live_sum()) {
    if (count != 0) return false;
  }
  return true;
}

}  // namespace noria::test
