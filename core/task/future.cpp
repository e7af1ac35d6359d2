#include "task/future.hpp"

#include <cerrno>

#include "base/assert.hpp"
#include "base/live.hpp"
#include "task/context.hpp"

namespace noria::task {

std::int32_t Future::poll(const noria_cx* cx) {
  if (!budget_poll(cx)) return NORIA_PENDING;
  if (cell_.done() || !cell_.set(*cx->waker)) return NORIA_READY;
  budget_restore(t_context);
  return NORIA_PENDING;
}

std::int32_t Future::on_ready(const noria_waker& waker) {
  return cell_.done() || !cell_.set(waker) ? NORIA_READY : NORIA_PENDING;
}

std::int32_t Future::take_result(void* out, std::size_t size) {
  if (!cell_.done()) return -EAGAIN;
  bool wanted = out != nullptr || size != 0;
  if (wanted && (out == nullptr || size != ops_->result_size || size == 0)) return -EINVAL;
  // ORDER: acq_rel, one taker wins; the result was acquired through the cell.
  if ((life_.word().fetch_or(kConsumed, NORIA_ACQ_REL) & kConsumed) != 0) return -NORIA_ECONSUMED;
  if (wanted && ops_->result != nullptr && (status_ >= 0 || ops_->partial)) {
    ops_->result(this, out);
  } else if (ops_->told != nullptr) {
    ops_->told(this);
  }
  return status_;
}

void Future::drop() {
  if (!cell_.done()) {
    cell_.clear();  // who drops it does not want to be told of its end
    cancel();
  }
  if (ops_->dropped != nullptr) ops_->dropped(this);
  release();
}

void Future::cancel() {
  if (cell_.done()) return;
  // ORDER: acq_rel, one canceller calls the operation; it sees what the operation has done so far.
  if ((life_.word().fetch_or(kCancel, NORIA_ACQ_REL) & kCancel) == 0) ops_->cancel(this);
}

void Future::publish(std::int32_t status) {
  status_ = status;
  cell_.complete();
}

void Future::finish(std::int32_t status) {
  publish(status);
  release();
}

void Future::release() {
  // ORDER: acq_rel, what each holder did happens before the last one destroys.
  std::uint64_t before = life_.word().fetch_sub(kRef, NORIA_ACQ_REL);
  NORIA_DEBUG_ASSERT((before >> kRefShift) != 0, "a future is released once for each reference");
  if ((before >> kRefShift) != 1) return;
  ops_->destroy(this);
  live_add(Live::kFutures, -1);
  Slab::free(this);
}

bool Future::ref_if_live() {
  // ORDER: acquire, pairs with the release of the constructor.
  std::uint64_t now = life_.word().load(NORIA_ACQUIRE);
  while ((now >> kRefShift) != 0) {
    // ORDER: acq_rel, a reader who held nothing takes a reference. Failure is retried.
    if (life_.word().compare_exchange_weak(now, now + kRef, NORIA_ACQ_REL)) return true;
  }
  return false;
}

bool Future::consumed() const {
  // ORDER: acquire, pairs with take_result.
  return (life_.word().load(NORIA_ACQUIRE) & kConsumed) != 0;
}

}  // namespace noria::task
