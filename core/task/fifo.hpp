// fifo.hpp: a first-in first-out buffer of tasks: pointers side by side, so that what many tasks wait in is filled and emptied without
// touching them, and whoever takes some can fetch their lines ahead. Not thread-safe.
// Invariants: F1 what is in rest_ is younger than what is in the array; rest_ is used where there is no memory for more of the array,
//             or its limit is reached, and until it is empty again.
// Lifetime:   empty when it goes. Of an array that was emptied kKept places stay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/platform.hpp"
#include "task/queue.hpp"

namespace noria::task {

class Fifo {
 public:
  Fifo() = default;
  ~Fifo() { give_back(); }
  Fifo(const Fifo&) = delete;
  Fifo& operator=(const Fifo&) = delete;

  std::size_t size() const { return tail_ - head_ + rest_.size(); }

  void push(std::span<Task* const> tasks) {
    if (NORIA_UNLIKELY(capacity_ - (tail_ - head_) < tasks.size() || !rest_.empty())) {
      if (!make_room(tasks.size())) return rest_.push(tasks);
    }
    for (Task* task : tasks) places_[tail_++ & (capacity_ - 1)] = task;
  }

  // Takes the oldest; how many there were, up to what `out` holds.
  std::size_t pop(std::span<Task*> out) {
    std::size_t count = tail_ - head_ < out.size() ? tail_ - head_ : out.size();
    for (std::size_t i = 0; i < count; ++i) out[i] = places_[head_++ & (capacity_ - 1)];
    if (NORIA_UNLIKELY(count < out.size() && !rest_.empty())) count += pop_rest(out.subspan(count));
    if (NORIA_UNLIKELY(head_ == tail_ && capacity_ > kKept)) give_back();
    return count;
  }

 private:
  static constexpr std::size_t kLeast = 1024;       // places
  static constexpr std::size_t kKept = 32 * 1024;   // 256 KiB
  static constexpr std::size_t kMost = 256 * 1024;  // 2 MiB: to move them takes a fraction of a millisecond

  bool make_room(std::size_t count);
  std::size_t pop_rest(std::span<Task*> out);
  void give_back();

  Task** places_ = nullptr;
  std::size_t capacity_ = 0;  // a power of two, or none
  std::size_t head_ = 0;
  std::size_t tail_ = 0;
  Queue rest_;
};

}  // namespace noria::task
