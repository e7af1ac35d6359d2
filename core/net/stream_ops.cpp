// Reads and writes of a stream in future form.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "net/stream.hpp"

namespace noria::net {

namespace {

struct IoOp : Op {
  IoOp(runtime::Core* owner, const task::FutureOps* io_ops, Stream* io_stream, OpQueue* op_queue, AttemptFn op_attempt)
      : Op(io_ops, owner, op_queue, op_attempt), stream(io_stream) {
    stream->ref();
  }

  Stream* const stream;
  noria_buf* buf = nullptr;  // a reference, until the result is taken
  Kept* kept = nullptr;      // of a read: where its bytes go if nobody takes them
  char* data = nullptr;
  std::size_t size = 0;     // of a read the room, of a write the bytes
  std::size_t count = 0;    // done so far
  std::uint64_t place = 0;  // of the bytes read

  static IoOp* of(task::Future* future) { return static_cast<IoOp*>(future); }

  static void result(task::Future* future, void* out) {
    IoOp* self = of(future);
    *static_cast<noria_io_result*>(out) = {self->count, std::exchange(self->buf, nullptr)};
    OpQueue::taken(self);
  }

  static void destroy(task::Future* future) {
    IoOp* self = of(future);
    bool bytes_left = self->kept != nullptr && self->buf != nullptr && self->count != 0;
    if (bytes_left) {
      self->kept->buf = std::exchange(self->buf, nullptr);
      self->kept->end = self->count;
      self->kept->place = self->place;
      self->stream->keep(self->kept);
    } else if (self->kept != nullptr) {
      self->kept->drop();
    }
    if (self->buf != nullptr) (void)noria_buf_release(self->buf);
    self->stream->unref();
    self->~IoOp();
  }
};

std::int32_t attempt_read(Op* op) {
  auto* self = static_cast<IoOp*>(op);
  iovec piece{self->data, self->size};
  std::int32_t status = self->stream->read_once(&piece, 1, Stream::Take::kRead, &self->count, &self->place);
  if (status == -EAGAIN) return NORIA_PENDING;
  if (status == NORIA_OK) (void)noria_buf_set_length(self->buf, self->count);
  return status;
}

std::int32_t attempt_write(Op* op) {
  auto* self = static_cast<IoOp*>(op);
  iovec piece{self->data + self->count, self->size - self->count};
  std::size_t sent = 0;
  std::int32_t status = self->stream->write_once(&piece, 1, &sent);
  if (status == -EAGAIN) return NORIA_PENDING;
  if (status != NORIA_OK) return status;
  self->count += sent;
  return self->count == self->size ? NORIA_OK : NORIA_PENDING;
}

constexpr task::FutureOps kReadOps = {OpQueue::cancel,         IoOp::result, IoOp::destroy,
                                      sizeof(noria_io_result), true,         "tcp read"};
constexpr task::FutureOps kWriteOps = {OpQueue::cancel,         IoOp::result, IoOp::destroy,
                                       sizeof(noria_io_result), true,         "tcp write"};

// Moves nothing, so it holds nobody at the gate.
struct ReadyOp : Op {
  static const task::FutureOps kOps;

  ReadyOp(runtime::Core* owner, Stream* of, OpQueue* op_queue, std::uint32_t wanted)
      : Op(&kOps, owner, op_queue, attempt_ready), stream(of), interest(wanted) {
    stream->ref();
  }

  Stream* const stream;
  const std::uint32_t interest;

  static std::int32_t attempt_ready(Op* op) {
    auto* self = static_cast<ReadyOp*>(op);
    OpQueue::taken(op);
    return self->stream->worth_a_try(self->interest) ? NORIA_OK : NORIA_PENDING;
  }
  static void destroy(task::Future* future) {
    auto* self = static_cast<ReadyOp*>(future);
    self->stream->unref();
    self->~ReadyOp();
  }
};

const task::FutureOps ReadyOp::kOps = {OpQueue::cancel, nullptr, destroy, 0, false, "tcp ready"};

}  // namespace

std::int32_t Stream::ready(std::uint32_t interest, noria_future** out) {
  if (closed()) return -EBADF;
  OpQueue& side = interest == NORIA_READABLE ? reads_ : writes_;
  auto* op = core()->make_future<ReadyOp>(this, &side, interest);
  if (op == nullptr) return -ENOMEM;
  *out = reinterpret_cast<noria_future*>(static_cast<task::Future*>(op));
  side.submit(op);
  return 0;
}

std::int32_t Stream::poll_read_buf(const noria_cx* cx, noria_buf* buf) {
  iovec room{};
  if (std::int32_t error = noria_buf_data(buf, &room.iov_base); error != 0) return error;
  if (std::int32_t error = noria_buf_capacity(buf, &room.iov_len); error != 0) return error;
  if (room.iov_len == 0) return -EINVAL;  // would read like an end of stream
  std::size_t got = 0;
  std::int32_t status = poll_read(cx, &room, 1, Take::kRead, &got);
  if (status == NORIA_READY) (void)noria_buf_set_length(buf, got);
  return status;
}

std::int32_t Stream::poll_write_buf(const noria_cx* cx, noria_buf* buf, std::size_t* done) {
  void* data = nullptr;
  std::size_t size = 0;
  if (std::int32_t error = noria_buf_data(buf, &data); error != 0) return error;
  if (std::int32_t error = noria_buf_length(buf, &size); error != 0) return error;
  if (*done > size) return -EINVAL;
  do {  // once where nothing is left, too: what a write of nothing is told, and its unit of the budget (A10)
    iovec rest{static_cast<char*>(data) + *done, size - *done};
    std::size_t sent = 0;
    std::int32_t status = poll_write(cx, &rest, 1, &sent);
    if (status != NORIA_READY) return status;
    *done += sent;
  } while (*done < size);
  return NORIA_READY;
}

std::int32_t Stream::read(noria_buf* buf, noria_future** out) {
  if (closed()) return -EBADF;
  void* data = nullptr;
  std::size_t size = 0;
  if (std::int32_t error = noria_buf_data(buf, &data); error != 0) return error;
  if (std::int32_t error = noria_buf_capacity(buf, &size); error != 0) return error;
  if (size == 0) return -EINVAL;  // as above
  Kept* kept = make_kept();
  if (kept == nullptr) return -ENOMEM;
  auto* op = core()->make_future<IoOp>(&kReadOps, this, &reads_, attempt_read);
  if (op == nullptr) {
    kept->drop();
    return -ENOMEM;
  }
  op->buf = buf;
  op->kept = kept;
  op->data = static_cast<char*>(data);
  op->size = size;
  *out = reinterpret_cast<noria_future*>(static_cast<task::Future*>(op));
  reads_.submit(op);
  return 0;
}

std::int32_t Stream::write(noria_buf* buf, noria_future** out) {
  if (closed()) return -EBADF;
  void* data = nullptr;
  std::size_t size = 0;
  if (std::int32_t error = noria_buf_data(buf, &data); error != 0) return error;
  if (std::int32_t error = noria_buf_length(buf, &size); error != 0) return error;
  auto* op = core()->make_future<IoOp>(&kWriteOps, this, &writes_, attempt_write);
  if (op == nullptr) return -ENOMEM;
  op->buf = buf;
  op->data = static_cast<char*>(data);
  op->size = size;
  *out = reinterpret_cast<noria_future*>(static_cast<task::Future*>(op));
  writes_.submit(op);
  return 0;
}

}  // namespace noria::net
