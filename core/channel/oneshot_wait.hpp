// oneshot_receive.hpp: the future form of receiving: a waker in the oneshot that finishes a future.
// Threads:    the waker by whoever ends a side of the oneshot; cancel by anyone.
// Invariants: R1 the waker in the oneshot holds a reference of the future until it is woken, replaced or dropped; a cancelled
//             future may so outlive its owner until then. R2 the value stays in the oneshot until the result is taken.
// Lifetime:   holds a reference of the oneshot.
#pragma once

#include <cstdint>

#include "channel/oneshot.hpp"

namespace noria::channel {

class OneshotReceive final : public task::Future {
 public:
  OneshotReceive(runtime::Core* core, Oneshot* oneshot) : Future(&kOps, core), oneshot_(oneshot) { oneshot->ref(); }
  ~OneshotReceive() { oneshot_->unref(); }

  void begin();

  static const noria_waker_vtable kWaker;

 private:
  void end();

  static void on_cancel(task::Future* future) { future->finish_if_claimed(-ECANCELED); }
  static void on_result(task::Future* future, void* out);
  static void on_destroy(task::Future* future) { static_cast<OneshotReceive*>(future)->~OneshotReceive(); }
  static void clone_waker(const noria_waker* waker, noria_waker* out);
  static void wake(noria_waker* waker);
  static void wake_by_ref(const noria_waker* waker);
  static void drop_waker(noria_waker* waker);
  static const task::FutureOps kOps;

  Oneshot* const oneshot_;
};

}  // namespace noria::channel
