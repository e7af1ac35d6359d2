// allocated.hpp: what the engine makes once (schedulers, workers, wheels, their tables) comes from the allocator door too.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "base/allocator.hpp"

namespace noria {

// A base for classes that are made by new: std::bad_alloc where there is no memory.
class Allocated {
 public:
  // NOLINTNEXTLINE(misc-new-delete-overloads): the sized delete below matches it
  static void* operator new(std::size_t size) { return checked(raw_alloc(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__)); }
  static void* operator new(std::size_t size, std::align_val_t align) {
    return checked(raw_alloc(size, static_cast<std::size_t>(align)));
  }
  static void operator delete(void* p, std::size_t size) { raw_free(p, size, __STDCPP_DEFAULT_NEW_ALIGNMENT__); }
  static void operator delete(void* p, std::size_t size, std::align_val_t align) {
    raw_free(p, size, static_cast<std::size_t>(align));
  }

 protected:
  ~Allocated() = default;

 private:
  static void* checked(void* p) {
    if (p == nullptr) throw std::bad_alloc();
    return p;
  }
};

// For an Allocated whose constructor may throw: a new-expression would find no delete without a size to undo it with.
template <typename T, typename... Arguments>
std::unique_ptr<T> make_allocated(Arguments&&... arguments) {
  constexpr std::size_t kDefault = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
  constexpr std::size_t kAlign = alignof(T) > kDefault ? alignof(T) : kDefault;
  void* room = raw_alloc(sizeof(T), kAlign);
  if (room == nullptr) throw std::bad_alloc();
  try {
    return std::unique_ptr<T>(::new (room) T(std::forward<Arguments>(arguments)...));
  } catch (...) {
    raw_free(room, sizeof(T), kAlign);
    throw;
  }
}

template <typename T>
struct EngineAllocator {
  using value_type = T;
  EngineAllocator() = default;
  template <typename U>
  EngineAllocator(const EngineAllocator<U>&) {}

  T* allocate(std::size_t n) {
    if (n > SIZE_MAX / sizeof(T)) throw std::bad_alloc();
    void* p = raw_alloc(n * sizeof(T), alignof(T));
    if (p == nullptr) throw std::bad_alloc();
    return static_cast<T*>(p);
  }
  void deallocate(T* p, std::size_t n) { raw_free(p, n * sizeof(T), alignof(T)); }
  bool operator==(const EngineAllocator&) const { return true; }
};

template <typename T>
using Vector = std::vector<T, EngineAllocator<T>>;

}  // namespace noria
