// foreign_waker.hpp: a waker that is not the engine's: counts what is done to it, and may call back.
#pragma once

#include <noria.h>

#include <atomic>
#include <functional>

namespace noria::test {

// The counts are of all its clones. `on_wake`, `on_clone` and `on_drop` run inside the waker's functions.
struct ForeignWaker {
  std::atomic<int> clones{0};  // alive, without the first
  std::atomic<int> wakes{0};
  std::function<void()> on_wake, on_clone, on_drop;
  noria_waker waker{&vtable(), this, nullptr};
  noria_cx cx{&waker, {}};

  ForeignWaker() = default;
  ForeignWaker(const ForeignWaker&) = delete;

  static const noria_waker_vtable& vtable() {
    static const noria_waker_vtable table = {
        [](const noria_waker* from, noria_waker* out) {
          auto* self = static_cast<ForeignWaker*>(from->data);
          *out = *from;
          self->clones.fetch_add(1);
          if (self->on_clone) self->on_clone();
        },
        [](noria_waker* waker) {
          auto* self = static_cast<ForeignWaker*>(waker->data);
          if (self->on_wake) self->on_wake();
          self->clones.fetch_sub(1);
          self->wakes.fetch_add(1);  // last: who waits for it may end us
        },
        [](const noria_waker* waker) {
          auto* self = static_cast<ForeignWaker*>(waker->data);
          if (self->on_wake) self->on_wake();
          self->wakes.fetch_add(1);
        },
        [](noria_waker* waker) {
          auto* self = static_cast<ForeignWaker*>(waker->data);
          if (self->on_drop) self->on_drop();
          self->clones.fetch_sub(1);
        },
    };
    return table;
  }
};

}  // namespace noria::test
