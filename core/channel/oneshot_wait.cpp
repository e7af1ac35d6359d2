#include "channel/oneshot_receive.hpp"

#include <cerrno>

namespace noria::channel {

const task::FutureOps OneshotReceive::kOps = {on_cancel,     on_result, on_destroy,
                                              sizeof(void*), false,     "oneshot receive"};
const noria_waker_vtable OneshotReceive::kWaker = {clone_waker, wake, wake_by_ref, drop_waker};

std::int32_t Oneshot::receive(task::Future** out) {
  OneshotReceive* future = core_->make_future<OneshotReceive>(this);
  if (future == nullptr) return -ENOMEM;
  *out = future;
  future->begin();
  return NORIA_OK;
}

void OneshotReceive::begin() {
  noria_waker waker = {&kWaker, this, nullptr};
  if (oneshot_->taken_) {
    finish_if_claimed(-NORIA_ECONSUMED);
  } else if (!oneshot_->leave(waker, oneshot_->rx_waker_, Oneshot::kRxWaker, Oneshot::kTxGone | Oneshot::kRxClosed)) {
    end();
  }
}

void OneshotReceive::end() {
  if (!claim()) return;
  // ORDER: acquire, pairs with send: the result reads the value.
  bool sent = (oneshot_->life_.word().load(NORIA_ACQUIRE) & Oneshot::kValue) != 0;
  finish(sent ? NORIA_OK : -NORIA_ECLOSED);
}

void OneshotReceive::on_result(task::Future* future, void* out) {
  auto* self = static_cast<OneshotReceive*>(future);
  void* value = nullptr;
  (void)self->oneshot_->try_receive(&value);
  *static_cast<void**>(out) = value;
}

void OneshotReceive::clone_waker(const noria_waker* waker, noria_waker* out) {
  static_cast<OneshotReceive*>(waker->data)->ref();
  live_add(Live::kWakers, 1);
  *out = *waker;
}

void OneshotReceive::wake(noria_waker* waker) {
  auto* self = static_cast<OneshotReceive*>(waker->data);
  self->end();
  drop_waker(waker);
}

void OneshotReceive::wake_by_ref(const noria_waker* waker) { static_cast<OneshotReceive*>(waker->data)->end(); }

void OneshotReceive::drop_waker(noria_waker* waker) {
  live_add(Live::kWakers, -1);
  static_cast<OneshotReceive*>(waker->data)->release();
}

}  // namespace noria::channel
