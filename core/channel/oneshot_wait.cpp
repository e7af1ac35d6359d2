#include "channel/oneshot_wait.hpp"

#include <cerrno>

namespace noria::channel {

const task::FutureOps OneshotWait::kReceiveOps = {on_cancel, on_result,         on_destroy, sizeof(void*),
                                                  false,     "oneshot receive", on_told,    on_told};
const task::FutureOps OneshotWait::kClosedOps = {on_cancel, nullptr,          on_destroy, 0,
                                                 false,     "oneshot closed", on_told,    on_told};
const noria_waker_vtable OneshotWait::kWaker = {clone_waker, wake, wake_by_ref, drop_waker};

namespace {

std::int32_t wait(Oneshot* oneshot, OneshotWait::Side side, task::Future** out) {
  OneshotWait* future = oneshot->core()->make_future<OneshotWait>(oneshot, side);
  if (future == nullptr) return -ENOMEM;
  *out = future;
  future->begin();
  return NORIA_OK;
}

}  // namespace

std::int32_t Oneshot::receive(task::Future** out) {
  return held(rx_holder_) ? -EBUSY : wait(this, OneshotWait::Side::kReceiver, out);
}

std::int32_t Oneshot::closed(task::Future** out) {
  return held(tx_holder_) ? -EBUSY : wait(this, OneshotWait::Side::kSender, out);
}

OneshotWait::OneshotWait(runtime::Core* core, Oneshot* oneshot, Side side)
    : Future(side == Side::kReceiver ? &kReceiveOps : &kClosedOps, core), oneshot_(oneshot), side_(side) {
  oneshot->ref();
  // ORDER: relaxed, whoever lets it go is called later, through the future.
  holder().store(this, NORIA_RELAXED);
}

void OneshotWait::begin() {
  noria_waker waker = {&kWaker, this, nullptr};
  bool waits =
      side_ == Side::kReceiver
          ? oneshot_->leave(waker, oneshot_->rx_waker_, Oneshot::kRxWaker, Oneshot::kTxGone | Oneshot::kRxClosed)
          : oneshot_->leave(waker, oneshot_->tx_waker_, Oneshot::kTxWaker, Oneshot::kRxClosed);
  if (!waits) end();
}

void OneshotWait::end() {
  if (!claim()) return;
  std::int32_t status = outcome();
  if (status != NORIA_OK) let_go();
  finish(status);
}

std::int32_t OneshotWait::outcome() const {
  // ORDER: acquire, pairs with end_side: the result reads the value.
  std::uint64_t word = oneshot_->life_.word().load(NORIA_ACQUIRE);
  if (side_ == Side::kSender) return (word & Oneshot::kRxClosed) != 0 ? NORIA_OK : -ECANCELED;
  if ((word & Oneshot::kValue) == 0) return -NORIA_ECLOSED;
  return oneshot_->taken(word) ? -NORIA_ECONSUMED : NORIA_OK;
}

// The side may have another future, or receive by itself.
void OneshotWait::let_go() {
  OneshotWait* self = this;
  // ORDER: release, what the owner did with the value comes before what the side does; pairs with held(). Failure: it has
  // let go before.
  (void)holder().compare_exchange_strong(self, nullptr, NORIA_RELEASE, NORIA_RELAXED);
}

void OneshotWait::on_cancel(task::Future* future) {
  auto* self = static_cast<OneshotWait*>(future);
  if (!self->claim()) return;
  self->let_go();
  self->finish(-ECANCELED);
}

void OneshotWait::on_result(task::Future* future, void* out) {
  auto* self = static_cast<OneshotWait*>(future);
  *static_cast<void**>(out) = self->oneshot_->take_value();
  self->let_go();
}

void OneshotWait::clone_waker(const noria_waker* waker, noria_waker* out) {
  static_cast<OneshotWait*>(waker->data)->ref();
  live_add(Live::kWakers, 1);
  *out = *waker;
}

void OneshotWait::wake(noria_waker* waker) {
  auto* self = static_cast<OneshotWait*>(waker->data);
  self->end();
  drop_waker(waker);
}

void OneshotWait::wake_by_ref(const noria_waker* waker) { static_cast<OneshotWait*>(waker->data)->end(); }

void OneshotWait::drop_waker(noria_waker* waker) {
  live_add(Live::kWakers, -1);
  static_cast<OneshotWait*>(waker->data)->release();
}

}  // namespace noria::channel
