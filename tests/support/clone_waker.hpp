// clone_waker.hpp: a waker that does something when it is cloned.
//
// Whoever leaves a waker looks, clones it, and leaves it: cloning runs in the narrowest place between look and leaving, where
// a wake may come from another thread. Here it comes from inside, each time.
#pragma once

#include <functional>

#include "support/check.hpp"

namespace noria::test {

class CloneWaker {
 public:
  // `on_clone` runs inside of each clone. Nobody may wake it.
  explicit CloneWaker(std::function<void()> on_clone) : on_clone_(std::move(on_clone)) {}
  CloneWaker(const CloneWaker&) = delete;
  CloneWaker& operator=(const CloneWaker&) = delete;
  ~CloneWaker() { NORIA_CHECK(clones_ == 0, "%d clones are left", clones_); }

  const noria_cx* cx() const { return &cx_; }
  const noria_waker* waker() const { return &raw_; }

 private:
  static CloneWaker* of(const noria_waker* waker) { return static_cast<CloneWaker*>(waker->data); }
  static void clone(const noria_waker* waker, noria_waker* out) {
    ++of(waker)->clones_;
    *out = *waker;
    of(waker)->on_clone_();
  }
  static void wake(noria_waker*) { NORIA_CHECK(false, "nobody waits"); }
  static void wake_by_ref(const noria_waker*) { NORIA_CHECK(false, "nobody waits"); }
  static void drop(noria_waker* waker) { --of(waker)->clones_; }
  static constexpr noria_waker_vtable kVtable = {clone, wake, wake_by_ref, drop};

  std::function<void()> on_clone_;
  int clones_ = 0;
  noria_waker raw_{&kVtable, this, nullptr};
  noria_cx cx_{&raw_, {0, 0, 0}};
};

}  // namespace noria::test
