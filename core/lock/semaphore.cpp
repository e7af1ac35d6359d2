#include "lock/semaphore.hpp"

namespace noria::lock {

std::int32_t Semaphore::take_or_queue(Waiter& waiter) {
  // ORDER: relaxed, only a guess for the exchange.
  std::uint64_t word = word_.load(NORIA_RELAXED);
  for (;;) {
    if ((word & kClosed) != 0) return -NORIA_ECLOSED;
    if ((word & kWaiters) != 0) break;
    bool enough = (word >> kShift) >= waiter.count;
    std::uint64_t next = enough ? word - (waiter.count << kShift) : word | kWaiters;
    // ORDER: acq_rel, as try_take; with WAITERS: whoever gives after it comes to lock_ (M1). Failure is retried.
    if (!word_.compare_exchange_weak(word, next, NORIA_ACQ_REL)) continue;
    if (enough) return NORIA_OK;
    break;
  }
  queue(waiter);
  return -EAGAIN;
}

std::int32_t Semaphore::give_queued(std::uint64_t count) {
  WakeBatch batch;
  {
    sync::MutexLock guard(lock_);
    // ORDER: relaxed, only a guess for the exchange.
    std::uint64_t word = word_.load(NORIA_RELAXED);
    do {
      if (count > kMaxPermits - (word >> kShift)) return -EOVERFLOW;
      // ORDER: acq_rel, as give(); an exchange because WAITERS may have been cleared since. Failure is retried.
    } while (!word_.compare_exchange_weak(word, word + (count << kShift), NORIA_ACQ_REL));
    serve(batch);
  }
  serve_rest(batch);
  return NORIA_OK;
}

// Serves the head of the queue as long as the permits suffice and the batch has room.
void Semaphore::serve(WakeBatch& batch) {
  if (queue_.empty()) return;
  // ORDER: acquire, WAITERS is set, so only this thread changes the word; sees what givers before the queue did.
  std::uint64_t word = word_.load(NORIA_ACQUIRE);
  while (!queue_.empty() && !batch.full()) {
    Waiter& waiter = *queue_.front();
    std::uint64_t count = waiter.count;
    if (count > (word >> kShift)) break;
    queue_.remove(waiter);
    if (batch.add(waiter, Waiter::kGranted)) word -= count << kShift;
  }
  if (queue_.empty()) word &= ~kWaiters;
  // ORDER: release, keeps what givers published for whoever takes the rest.
  word_.store(word, NORIA_RELEASE);
}

void Semaphore::serve_rest(WakeBatch& batch) {
  for (;;) {
    bool more = batch.full();
    batch.run(NORIA_OK);
    if (!more) return;
    sync::MutexLock guard(lock_);
    serve(batch);
  }
}

void Semaphore::left(WakeBatch& batch) {
  if (!queue_.empty()) return serve(batch);
  // ORDER: acq_rel, the queue is empty: exchanges go on without the lock (M1).
  word_.fetch_and(~kWaiters, NORIA_ACQ_REL);
}

void Semaphore::close() {
  WakeBatch batch;
  for (bool more = true; more;) {
    {
      sync::MutexLock guard(lock_);
      // ORDER: acq_rel, takers see it at their next look; an exchange because WAITERS may be clear.
      word_.fetch_or(kClosed, NORIA_ACQ_REL);
      while (!queue_.empty() && !batch.full()) {
        Waiter& waiter = *queue_.front();
        queue_.remove(waiter);
        (void)batch.add(waiter, Waiter::kClosed);
      }
      more = !queue_.empty();
      // ORDER: acq_rel, as in left().
      if (!more) word_.fetch_and(~kWaiters, NORIA_ACQ_REL);
    }
    batch.run(-NORIA_ECLOSED);
  }
}

}  // namespace noria::lock
