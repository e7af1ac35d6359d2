#include "runtime/buffers.hpp"

#include <cerrno>

#include "base/allocator.hpp"

namespace noria::runtime {
namespace {

constexpr std::size_t kHeader = (sizeof(task::Buffer) + kCacheLine - 1) / kCacheLine * kCacheLine;
constexpr std::size_t kMaxInline = kMaxSlotSize - kHeader;

}  // namespace

std::int32_t buffer_create(Core& core, std::size_t capacity, task::Buffer** out) {
  bool block = capacity > kMaxInline;
  void* slot = core.alloc(SlotKind::kOther, block ? sizeof(task::Buffer) : kHeader + capacity, kCacheLine);
  if (slot == nullptr) return -ENOMEM;
  char* data = static_cast<char*>(slot) + kHeader;
  if (block) {
    data = static_cast<char*>(raw_alloc(capacity, kCacheLine));
    if (data == nullptr) {
      Slab::free(slot);
      return -ENOMEM;
    }
  }
  *out = new (slot) task::Buffer(&core, data, capacity, block);
  return NORIA_OK;
}

std::int32_t buffer_wrap(Core& core, void* data, std::size_t size, task::Buffer::GiveBack give_back, void* arg,
                         task::Buffer** out) {
  *out = core.make<task::Buffer>(SlotKind::kOther, &core, static_cast<char*>(data), size, give_back, arg);
  return *out != nullptr ? NORIA_OK : -ENOMEM;
}

std::int32_t buffer_slice(task::Buffer* from, std::size_t offset, std::size_t length, task::Buffer** out) {
  Core* core = from->core();
  *out = core->make<task::Buffer>(SlotKind::kOther, core, from, offset, length);
  return *out != nullptr ? NORIA_OK : -ENOMEM;
}

}  // namespace noria::runtime
