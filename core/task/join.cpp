#include "task/join.hpp"

#include <cerrno>
#include <new>

#include "base/platform.hpp"

namespace noria::task {
namespace {

constexpr std::size_t kShards = 16;

struct alignas(kCacheLine) Shard {
  sync::Mutex lock;
};
constinit Shard g_shards[kShards];

}  // namespace

sync::Mutex& join_lock(const Task* task) {
  return g_shards[(reinterpret_cast<std::uintptr_t>(task) / kCacheLine) % kShards].lock;
}

void forget_join_locks() {
  for (Shard& shard : g_shards) new (&shard) Shard;
}

const FutureOps JoinFuture::kOps = {on_cancel, on_result, on_destroy, sizeof(noria_join_result), false, "join"};

JoinFuture::JoinFuture(runtime::Core* core, Task* task) : Future(&kOps, core), task_(task) { task->word.ref(); }

JoinFuture::~JoinFuture() { unref(task_); }

void JoinFuture::begin() {
  {
    sync::MutexLock guard(join_lock(task_));
    Atomic<JoinFuture*>& joiners = task_->joining().joiners;
    // ORDER: relaxed, under the lock.
    next_ = joiners.load(NORIA_RELAXED);
    // ORDER: relaxed, published by the flag below (J2).
    joiners.store(this, NORIA_RELAXED);
    listed_ = true;
  }
  if (task_->word.ask_for_completion()) complete_joiners(task_);
}

void complete_joiners(Task* task) {
  Atomic<JoinFuture*>& joiners = task->joining().joiners;
  // ORDER: relaxed, what entered before its flag is seen since the word was (J2); what comes later finds the task complete.
  while (joiners.load(NORIA_RELAXED) != nullptr) {
    JoinFuture* first;
    {
      sync::MutexLock guard(join_lock(task));
      // ORDER: relaxed, under the lock.
      first = joiners.load(NORIA_RELAXED);
      if (first == nullptr) return;
      // ORDER: relaxed, under the lock.
      joiners.store(first->next_, NORIA_RELAXED);
      first->listed_ = false;
    }
    if (first->claim()) {
      first->finish(NORIA_OK);
    } else {
      first->release();
    }
  }
}

// Under the join lock.
void JoinFuture::unlist() {
  Atomic<JoinFuture*>& joiners = task_->joining().joiners;
  // ORDER: relaxed, under the lock.
  JoinFuture* before = joiners.load(NORIA_RELAXED);
  if (before == this) {
    // ORDER: relaxed, under the lock.
    joiners.store(next_, NORIA_RELAXED);
    return;
  }
  while (before->next_ != this) before = before->next_;
  before->next_ = next_;
}

void JoinFuture::on_cancel(Future* future) {
  auto* self = static_cast<JoinFuture*>(future);
  if (!self->claim()) return;
  bool listed;
  {
    sync::MutexLock guard(join_lock(self->task_));
    listed = self->listed_;
    if (listed) {
      self->unlist();
      self->listed_ = false;
    }
  }
  // Not listed: completion took it out and will give the operation's reference back, or it was made after the end of the runtime, and
  // begin() will. What has ended is not cancelled any more.
  bool complete = (self->task_->word.load() & StateWord::kComplete) != 0;
  self->publish(complete ? NORIA_OK : -ECANCELED);
  if (listed) self->release();
}

void JoinFuture::on_result(Future* future, void* out) {
  *static_cast<noria_join_result*>(out) = outcome_of(static_cast<JoinFuture*>(future)->task_);
}

void JoinFuture::on_destroy(Future* future) { static_cast<JoinFuture*>(future)->~JoinFuture(); }

}  // namespace noria::task
