// join_all.hpp: all of several futures; owns them, and tells each one's result.
// Threads:    see composite.hpp; result_of by the owner.
// Invariants: J1 open_ counts the children that are not ready, and one for create() until it has listened to all: who
//             brings it to zero ends the future. J2 a cancel is passed to each child and leads to the end through them.
// Lifetime:   the children's pointers lie behind the object, in the same slot; they are dropped with it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/composite.hpp"

namespace noria::runtime {

class JoinAll final : public Composite {
 public:
  JoinAll(Core* core, task::Future* const* futures, std::size_t count);
  ~JoinAll();

  // Takes the futures. -ENOMEM: it did not.
  [[nodiscard]] static std::int32_t create(Core& core, task::Future* const* futures, std::size_t count,
                                           task::Future** out);
  // Also inside of time-outs; nullptr if the future is of another kind.
  static JoinAll* from(task::Future* future);

  // As noria_join_all_result.
  [[nodiscard]] std::int32_t result_of(std::size_t index, void* out, std::size_t size);

 private:
  task::Future** children() { return reinterpret_cast<task::Future**>(this + 1); }

  static bool child_ready(Composite* self, std::size_t index);
  static void end(Composite* self);
  static void cancel(Composite* self);
  static void on_destroy(task::Future* future) { static_cast<JoinAll*>(future)->~JoinAll(); }
  static const task::FutureOps kOps;
  static const Kind kKind;

  const std::size_t count_;
  Atomic<std::size_t> open_;
  Atomic<bool> cancelled_{false};
};

}  // namespace noria::runtime
