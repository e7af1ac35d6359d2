// oneshot_wait.hpp: the future forms of a oneshot's two sides: a waker in the oneshot that finishes a future.
//
// Of each side there is one such future at a time; the side's holder says which:
//   from      to        by
//   nullptr   a future  the side, when it makes one
//   a future  nullptr   the future: by the winner of claim() if it does not end as NORIA_OK, else by its owner, who takes the
//                       result or gives the future back
//
// Threads:    the waker by whoever ends a side of the oneshot; cancel by anyone.
// Invariants: R1 the waker in the oneshot holds a reference of the future until it is woken, replaced or dropped; a cancelled
//             future may so outlive its owner until then. R2 the value stays in the oneshot until the result is taken, and
//             is meant for the holder until then.
// Lifetime:   holds a reference of the oneshot.
#pragma once

#include <cstdint>

#include "channel/oneshot.hpp"

namespace noria::channel {

class OneshotWait final : public task::Future {
 public:
  enum class Side : std::uint8_t { kReceiver, kSender };

  OneshotWait(runtime::Core* core, Oneshot* oneshot, Side side);
  ~OneshotWait() { oneshot_->unref(); }

  void begin();

  static const noria_waker_vtable kWaker;

 private:
  Atomic<OneshotWait*>& holder() { return side_ == Side::kReceiver ? oneshot_->rx_holder_ : oneshot_->tx_holder_; }
  void let_go();
  void end();
  std::int32_t outcome() const;

  static void on_cancel(task::Future* future);
  static void on_result(task::Future* future, void* out);
  static void on_told(task::Future* future) { static_cast<OneshotWait*>(future)->let_go(); }
  static void on_destroy(task::Future* future) { static_cast<OneshotWait*>(future)->~OneshotWait(); }
  static void clone_waker(const noria_waker* waker, noria_waker* out);
  static void wake(noria_waker* waker);
  static void wake_by_ref(const noria_waker* waker);
  static void drop_waker(noria_waker* waker);
  static const task::FutureOps kReceiveOps;
  static const task::FutureOps kClosedOps;

  Oneshot* const oneshot_;
  const Side side_;
};

}  // namespace noria::channel
