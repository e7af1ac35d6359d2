// queue.hpp: a first-in first-out list of tasks, linked through their headers. Not thread-safe.
#pragma once

#include <cstddef>
#include <span>

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

  // Puts those behind, in their order.
  void push(std::span<Task* const> tasks) {
    if (tasks.empty()) return;
    for (std::size_t i = 1; i < tasks.size(); ++i) tasks[i - 1]->next = tasks[i];
    tasks.back()->next = nullptr;
    if (tail_ == nullptr) {
      head_ = tasks.front();
    } else {
      tail_->next = tasks.front();
    }
    tail_ = tasks.back();
    size_ += tasks.size();
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
