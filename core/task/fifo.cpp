#include "task/fifo.hpp"

#include <utility>

#include "base/allocator.hpp"

namespace noria::task {

bool Fifo::make_room(std::size_t count) {
  std::size_t size = tail_ - head_;
  if (!rest_.empty() || count > kMost - size) return false;
  std::size_t capacity = capacity_ != 0 ? capacity_ : kLeast;
  while (capacity - size < count) capacity *= 2;
  auto** places = static_cast<Task**>(raw_alloc(capacity * sizeof(Task*), alignof(Task*)));
  if (places == nullptr) return false;
  for (std::size_t i = 0; i < size; ++i) places[i] = places_[(head_ + i) & (capacity_ - 1)];
  give_back();
  places_ = places;
  capacity_ = capacity;
  tail_ = size;
  return true;
}

std::size_t Fifo::pop_rest(std::span<Task*> out) {
  std::size_t count = 0;
  while (count < out.size() && !rest_.empty()) out[count++] = rest_.pop();
  return count;
}

void Fifo::give_back() {
  raw_free(places_, capacity_ * sizeof(Task*), alignof(Task*));
  places_ = nullptr;
  capacity_ = head_ = tail_ = 0;
}

}  // namespace noria::task
