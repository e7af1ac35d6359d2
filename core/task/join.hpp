// join.hpp: futures that are ready when a task is; any number of them for one task.
// Threads:    join() by who holds the handle; complete_joiners by the thread that completed the task.
// Invariants: J1 a join future is in its task's list exactly while it is neither finished nor cancelled; the lists are
//             changed under the join lock (sharded by the task's address, never held while foreign code runs).
//             J2 it is put in the list, then JOIN_WAKER is set; so completion, which looks at the flag, sees it.
// Lifetime:   a join future holds a reference of its task until it is destroyed.
#pragma once

#include <cstdint>

#include "sync/mutex.hpp"
#include "task/future.hpp"
#include "task/task.hpp"

namespace noria::task {

class JoinFuture : public Future {
 public:
  JoinFuture(runtime::Core* core, Task* task);  // takes a new reference of the task
  ~JoinFuture();

  // Enters the task's list, or finishes at once if the task is complete.
  void begin();

 private:
  friend void complete_joiners(Task* task);
  void unlist();
  static void on_cancel(Future* future);
  static void on_result(Future* future, void* out);
  static void on_destroy(Future* future);
  static const FutureOps kOps;

  Task* task_;
  JoinFuture* next_ = nullptr;  // guarded by the join lock
  bool listed_ = false;         // guarded by the join lock
};

// The join lock of a task.
sync::Mutex& join_lock(const Task* task);
// In the child of a fork: whoever held one of them is not there.
void forget_join_locks();

// Finishes every join future of a complete task.
void complete_joiners(Task* task);

}  // namespace noria::task
