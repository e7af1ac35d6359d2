// composite.hpp: a future over futures: how it listens to its children, and how a tall tower of them stays off the stack.
//
// A child is given a waker whose data is the composite and whose extra is the child's index. Ending, cancelling and
// dropping a composite may each do the same to a composite above or below it, so none of the three is done inside the
// call that asks for it: they are steps on stacks of the thread, and the outermost call on the thread works them off.
//
// Threads:    child_ready on whichever thread completes a child; the steps on the thread that pushed them.
// Invariants: C1 a composite is on a stack once a kind of step at most: kEnd by the winner of claim(), kCancel by its parent's
//             only cancel, kDrop by its parent, once. So one link a kind suffices, and nothing is allocated.
//             C2 a step holds a reference: kEnd the operation's, kCancel its own, kDrop the owner's.
//             C3 no lock is held when a step runs or a child is asked for something.
// Lifetime:   each clone of the waker holds a reference: a child that lives on may keep the memory, not the children.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/core.hpp"

namespace noria::runtime {

class Composite : public task::Future {
 public:
  struct Kind {
    // A child is ready. True: claim() was won, and end is to follow.
    bool (*child_ready)(Composite* self, std::size_t index);
    void (*end)(Composite* self);     // calls finish()
    void (*cancel)(Composite* self);  // leads to child_ready or ends it
  };

  static bool is(const task::Future* future) { return future->ops()->cancel == on_cancel; }

 protected:
  Composite(const task::FutureOps* ops, const Kind* kind, Core* core) : Future(ops, core), kind_(kind) {}
  ~Composite() = default;

  // What the ops of every composite have as `cancel`.
  static void on_cancel(task::Future* future);

  // Listens to a child that this composite's owner owns. It may be ready, and all be over, before this returns.
  void listen(task::Future* child, std::size_t index);
  // child_ready, and the end if it follows.
  void tell(std::size_t index);

  static void cancel_child(task::Future* child);
  static void drop_child(task::Future* child);

 private:
  enum Step : std::uint8_t { kEnd, kCancel, kDrop, kSteps };
  struct Stacks {
    Composite* top[kSteps] = {};
    bool busy = false;
  };

  static void push(Composite* composite, Step step);
  static bool run_one();

  static void clone_waker(const noria_waker* waker, noria_waker* out);
  static void wake(noria_waker* waker);
  static void wake_by_ref(const noria_waker* waker);
  static void drop_waker(noria_waker* waker);
  static const noria_waker_vtable kWaker;

  static thread_local constinit Stacks t_stacks __attribute__((tls_model("initial-exec")));

  const Kind* const kind_;
  Composite* below_[kSteps] = {};  // C1
};

}  // namespace noria::runtime
