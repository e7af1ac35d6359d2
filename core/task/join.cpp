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
    next_ = task_->joining().joiners;
    task_->joining().joiners = this;
    listed_ = true;
  }
  if (task_->word.ask_for_completion()) complete_joiners(task_);
}

void complete_joiners(Task* task) {
  for (;;) {
    JoinFuture* first;
    {
      sync::MutexLock guard(join_lock(task));
      first = task->joining().joiners;
      if (first == nullptr) return;
      task->joining().joiners = first->next_;
      first->listed_ = false;
    }
    if (first->claim()) {
      first->finish(NORIA_OK);
    } else {
      first->release();
    }
  }
}

void JoinFuture::on_cancel(Future* future) {
  auto* self = static_cast<JoinFuture*>(future);
  if (!self->claim()) return;
  bool listed;
  {
    sync::MutexLock guard(join_lock(self->task_));
    listed = self->listed_;
    if (listed) {
      JoinFuture** link = &self->task_->joining().joiners;
      while (*link != self) link = &(*link)->next_;
      *link = self->next_;
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
