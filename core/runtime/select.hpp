// select.hpp: the first of several futures; the others stay as they are.
// Threads:    see composite.hpp.
// Invariants: E1 children are borrowed: after the select has ended or was dropped none is touched, so readiness is told by
//             the index in the waker. E2 index_ only falls, until the result is read: the lowest that is known wins.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/composite.hpp"

namespace noria::runtime {

class Select final : public Composite {
 public:
  explicit Select(Core* core) : Composite(&kOps, &kKind, core) {}
  ~Select() = default;

  // -ENOMEM.
  [[nodiscard]] static std::int32_t create(Core& core, task::Future* const* futures, std::size_t count,
                                           task::Future** out);
  // Without a future of its own: polls one after the other.
  [[nodiscard]] static std::int32_t poll_each(task::Future* const* futures, std::size_t count, const noria_cx* cx,
                                              std::size_t* index);

 private:
  static bool child_ready(Composite* self, std::size_t index);
  static void end(Composite* self) { self->finish(NORIA_OK); }
  static void cancel(Composite* self);
  static void on_result(task::Future* future, void* out);
  static void on_destroy(task::Future* future) { static_cast<Select*>(future)->~Select(); }
  static const task::FutureOps kOps;
  static const Kind kKind;

  Atomic<std::size_t> index_{SIZE_MAX};
};

}  // namespace noria::runtime
