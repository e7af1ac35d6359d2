// queue.hpp: a first-in first-out list of tasks, linked through their headers. Not thread-safe.
#pragma once

#include <cstddef>
#include <utility>

#include "task/task.hpp"

namespace noria::task {

class Queue {
 public:
  bool empty() const { return head_ == nullptr; }
  std::size_t size() const { return size_; }

  void push(Task* task) {
    task->next = nullptr;
    if (tail_ == nullptr) {
      head_ = task;
    } else {
      tail_->next = task;
    }
    tail_ = task;
    ++size_;
  }

  // nullptr when empty.
  Task* pop() {
    Task* task = head_;
    if (task == nullptr) return nullptr;
    head_ = task->next;
    if (head_ == nullptr) tail_ = nullptr;
    --size_;
    return task;
  }

  // Takes the first `most` out, in one walk.
  Queue cut(std::size_t most) {
    Queue out;
    if (most == 0) return out;
    if (most >= size_) {
      std::swap(out, *this);
      return out;
    }
    Task* last = head_;
    for (std::size_t i = 1; i < most; ++i) last = last->next;
    out.head_ = head_;
    out.tail_ = last;
    out.size_ = most;
    head_ = last->next;
    last->next = nullptr;
    size_ -= most;
    return out;
  }

  // Puts all of `other` behind; it is empty then.
  void append(Queue& other) {
    if (other.head_ == nullptr) return;
    if (tail_ == nullptr) {
      head_ = other.head_;
    } else {
      tail_->next = other.head_;
    }
    tail_ = other.tail_;
    size_ += other.size_;
    other = Queue();
  }

 private:
  Task* head_ = nullptr;
  Task* tail_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace noria::task
