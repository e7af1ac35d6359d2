#include "task/buffer.hpp"

#include "base/allocator.hpp"
#include "base/foreign.hpp"
#include "base/platform.hpp"

namespace noria::task {

Buffer::Buffer(runtime::Core* core, char* data, std::size_t capacity, bool block)
    : core_(core),
      data_(data),
      capacity_(capacity),
      length_(0),
      root_(nullptr),
      arg_(nullptr),
      source_(block ? Source::kBlock : Source::kInline) {
  live_add(Live::kBuffers, 1);
}

Buffer::Buffer(runtime::Core* core, char* data, std::size_t size, GiveBack give_back, void* arg)
    : core_(core),
      data_(data),
      capacity_(size),
      length_(size),
      give_back_(give_back),
      arg_(arg),
      source_(Source::kLent) {
  live_add(Live::kBuffers, 1);
}

Buffer::Buffer(runtime::Core* core, Buffer* from, std::size_t offset, std::size_t length)
    : core_(core),
      data_(from->data_ + offset),
      capacity_(length),
      length_(length),
      root_(from->source_ == Source::kSlice ? from->root_ : from),
      arg_(nullptr),
      source_(Source::kSlice) {
  root_->ref();
  live_add(Live::kBuffers, 1);
}

Buffer::~Buffer() {
  live_add(Live::kBuffers, -1);
  switch (source_) {
    case Source::kInline:
      break;
    case Source::kBlock:
      raw_free(data_, capacity_, kCacheLine);
      break;
    case Source::kLent:
      call_foreign(give_back_, static_cast<void*>(data_), arg_);
      break;
    case Source::kSlice:
      root_->release();
      break;
  }
}

}  // namespace noria::task
