#include "lock/notify.hpp"

namespace noria::lock {

std::int32_t Notify::take_or_queue(Waiter& waiter) {
  // ORDER: relaxed, only a guess for the exchange.
  std::uint32_t word = word_.load(NORIA_RELAXED);
  while (word != kWaiting) {
    std::uint32_t next = word == kStored ? kIdle : kWaiting;
    // ORDER: acq_rel, as try_take; with kWaiting: whoever notifies after it comes to lock_ (T1). Failure is retried.
    if (!word_.compare_exchange_weak(word, next, NORIA_ACQ_REL)) continue;
    if (next == kIdle) return NORIA_OK;
    break;
  }
  waiter.count = epoch_;
  queue(waiter);
  return -EAGAIN;
}

void Notify::one_queued() {
  WakeBatch batch;
  for (bool done = false; !done;) {
    {
      sync::MutexLock guard(lock_);
      done = tell_one(batch);
    }
    batch.run(NORIA_OK);
  }
}

// False: the batch is full of futures that were cancelled, and nobody was told yet.
bool Notify::tell_one(WakeBatch& batch) {
  bool told = false;
  while (!told && !queue_.empty() && !batch.full()) {
    Waiter& waiter = *queue_.front();
    queue_.remove(waiter);
    told = batch.add(waiter, Waiter::kGranted);
  }
  if (!queue_.empty()) return told;
  // ORDER: acq_rel, out of kWaiting under the lock (T1), or as one() where nobody was queued any more.
  word_.exchange(told ? kIdle : kStored, NORIA_ACQ_REL);
  return true;
}

void Notify::tell(Waiter::State state, std::int32_t status) {
  WakeBatch batch;
  std::uint64_t epoch = 0;
  for (bool more = true; more;) {
    {
      sync::MutexLock guard(lock_);
      if (epoch == 0) epoch = ++epoch_;
      if (queue_.empty()) break;
      while (!queue_.empty() && queue_.front()->count < epoch && !batch.full()) {
        Waiter& waiter = *queue_.front();
        queue_.remove(waiter);
        (void)batch.add(waiter, state);
      }
      more = !queue_.empty() && queue_.front()->count < epoch;
      // ORDER: acq_rel, out of kWaiting under the lock (T1).
      if (queue_.empty()) word_.exchange(kIdle, NORIA_ACQ_REL);
    }
    batch.run(status);
  }
}

void Notify::left(WakeBatch& /*batch*/) {
  // ORDER: acq_rel, out of kWaiting under the lock (T1).
  if (queue_.empty()) word_.exchange(kIdle, NORIA_ACQ_REL);
}

}  // namespace noria::lock
