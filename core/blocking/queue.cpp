#include "blocking/queue.hpp"

namespace noria::blocking {

#ifdef NORIA_MODEL
JobQueue::Shard& JobQueue::shard_of_thread() noexcept { return shards_[0]; }
#else
namespace {

constinit Atomic<std::uint32_t> g_threads_seen{0};
constinit thread_local std::uint32_t t_shard = 0;  // 0: not given yet

}  // namespace

JobQueue::Shard& JobQueue::shard_of_thread() noexcept {
  // ORDER: relaxed, any number will do.
  if (NORIA_UNLIKELY(t_shard == 0)) t_shard = g_threads_seen.fetch_add(1, NORIA_RELAXED) % kShards + 1;
  return shards_[t_shard - 1];
}
#endif

bool JobQueue::use_credit() noexcept {
  auto& credits = shard_of_thread().credits;
  // ORDER: relaxed, credits are counted, nothing is read through them.
  std::int64_t n = credits.load(NORIA_RELAXED);
  while (n > 0) {
    // ORDER: relaxed, as above.
    if (credits.compare_exchange_weak(n, n - 1, NORIA_RELAXED, NORIA_RELAXED)) return true;
  }
  return false;
}

void JobQueue::push(Job& job) noexcept {
  auto& head = shard_of_thread().head;
  // ORDER: relaxed, the CAS checks it.
  Job* old = head.load(NORIA_RELAXED);
  do {
    job.next = old;
    // ORDER: seq_cst, publishes the job to drain(), and stands before the submitter's look at
    // Crew::watch_: the store-load race of the sleep protocol. Relaxed on failure, as above.
  } while (!head.compare_exchange_weak(old, &job, NORIA_SEQ_CST, NORIA_RELAXED));
}

bool JobQueue::maybe_filled() const noexcept {
  for (const Shard& shard : shards_) {
    // ORDER: relaxed, only a hint; who acts on it looks again under the lock.
    if (shard.head.load(NORIA_RELAXED) != nullptr) return true;
  }
  return false;
}

bool JobQueue::empty() const noexcept {
  if (first_ != nullptr) return false;
  for (const Shard& shard : shards_) {
    // ORDER: seq_cst, stands after the store to Crew::watch_; pairs with the CAS in push().
    if (shard.head.load(NORIA_SEQ_CST) != nullptr) return false;
  }
  return true;
}

bool JobQueue::grant(std::uint64_t limit) noexcept {
  if (granted_ - taken_ >= limit) {
    for (Shard& shard : shards_) {
      // ORDER: relaxed, as in use_credit().
      granted_ -= static_cast<std::uint64_t>(shard.credits.exchange(0, NORIA_RELAXED));
    }
    if (granted_ - taken_ >= limit) return false;
  }
  ++granted_;
  std::uint64_t room = limit - (granted_ - taken_);
  std::uint64_t more = room < kGrant ? room : kGrant;
  granted_ += more;
  // ORDER: relaxed, as in use_credit().
  shard_of_thread().credits.fetch_add(static_cast<std::int64_t>(more), NORIA_RELAXED);
  return true;
}

std::uint64_t JobQueue::submitted() const noexcept {
  std::uint64_t credits = 0;
  for (const Shard& shard : shards_) {
    // ORDER: relaxed, a recent value; exact while nobody pushes.
    credits += static_cast<std::uint64_t>(shard.credits.load(NORIA_RELAXED));
  }
  return granted_ - credits;
}

void JobQueue::append(Job& job) noexcept {
  drain();
  link_last(&job);
}

Job* JobQueue::pop() noexcept {
  if (first_ == nullptr) drain();
  Job* job = first_;
  if (job == nullptr) return nullptr;
  unlink(job);
  return job;
}

bool JobQueue::remove(Job& job) noexcept {
  drain();
  if (!job.queued) return false;
  unlink(&job);
  return true;
}

Job* JobQueue::take_all() noexcept {
  drain();
  Job* all = first_;
  for (Job* job = all; job != nullptr; job = job->next) {
    job->queued = false;
    ++taken_;
  }
  first_ = last_ = nullptr;
  return all;
}

// Takes over what the shards hold, each in the order in which it came.
void JobQueue::drain() noexcept {
  for (std::size_t i = 0; i < kShards; ++i) {
    auto& head = shards_[(next_shard_ + i) % kShards].head;
    // ORDER: seq_cst, as in empty(): close() drains after it has stored watch_.
    if (head.load(NORIA_SEQ_CST) == nullptr) continue;
    // ORDER: acquire, pairs with the CAS in push() of each job in the list.
    Job* newest = head.exchange(nullptr, NORIA_ACQUIRE);
    Job* oldest = nullptr;
    while (newest != nullptr) {
      Job* next = newest->next;
      newest->next = oldest;
      oldest = newest;
      newest = next;
    }
    while (oldest != nullptr) {
      Job* next = oldest->next;
      link_last(oldest);
      oldest = next;
    }
  }
  next_shard_ = (next_shard_ + 1) % kShards;
}

void JobQueue::link_last(Job* job) noexcept {
  job->queued = true;
  job->next = nullptr;
  job->prev = last_;
  (last_ != nullptr ? last_->next : first_) = job;
  last_ = job;
}

void JobQueue::unlink(Job* job) noexcept {
  (job->prev != nullptr ? job->prev->next : first_) = job->next;
  (job->next != nullptr ? job->next->prev : last_) = job->prev;
  job->queued = false;
  ++taken_;
}

}  // namespace noria::blocking
