// counted.hpp: a reference count for objects that are slots of a slab and have a C handle.
// Threads:    any.
// Lifetime:   made with one reference; the last release ends the object and its slot.
#pragma once

#include <cstdint>

#include "base/atomic.hpp"
#include "base/slab.hpp"

namespace noria {

// First base of T (the slab reads the life word). Holds no lock and calls T's destructor on the last release.
template <typename T>
class Counted {
 public:
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  void ref() {
    // ORDER: relaxed, who has a reference may make another; nothing is published by it.
    life_.word().fetch_add(1, NORIA_RELAXED);
  }

  void release() {
    // ORDER: acquire, pairs with the release of the others: a count of one means that nobody else is left.
    if (life_.word().load(NORIA_ACQUIRE) != 1) {
      // ORDER: acq_rel, what each holder did happens before the last one ends it.
      if (life_.word().fetch_sub(1, NORIA_ACQ_REL) != 1) return;
    }
    T* self = static_cast<T*>(this);
    self->~T();
    Slab::free(self);
  }

 protected:
  Counted() {
    // ORDER: relaxed, no walk looks at slots of this kind; the handle is passed on by the caller.
    life_.word().store(1, NORIA_RELAXED);
  }
  ~Counted() = default;

 private:
  LifeWord life_;
};

}  // namespace noria
