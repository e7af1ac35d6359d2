#include "noria/tcp.h"

#include "check.hpp"
#include "net/connect.hpp"
#include "net/stream.hpp"

using namespace noria;
using net::Stream;

namespace {

constexpr size_t kMostPieces = 1024;  // the system takes so many; a short read or write is allowed

int32_t check_alive(const Stream* stream) { return stream == nullptr ? -EINVAL : capi::check_core(stream->core()); }

// A stream whose runtime still does things.
int32_t check_open(const Stream* stream) {
  if (int32_t error = check_alive(stream); error != NORIA_OK) return error;
  return stream->core()->closed() ? -NORIA_ESHUTDOWN : NORIA_OK;
}

// Of the same layout: layouts.cpp.
const iovec* to_system(const noria_iovec* pieces) { return reinterpret_cast<const iovec*>(pieces); }
size_t clip(size_t pieces_count) { return pieces_count < kMostPieces ? pieces_count : kMostPieces; }

int32_t poll_read(noria_tcp* tcp, const noria_cx* cx, const iovec* pieces, size_t pieces_count, Stream::Take take,
                  size_t* count) {
  if (count == nullptr || !capi::usable(cx)) return -EINVAL;
  Stream* stream = net::from_c(tcp);
  if (int32_t error = check_open(stream); error != NORIA_OK) return error;
  return stream->poll_read(cx, pieces, clip(pieces_count), take, count);
}

int32_t poll_write(noria_tcp* tcp, const noria_cx* cx, const iovec* pieces, size_t pieces_count, size_t* count) {
  if (count == nullptr || !capi::usable(cx)) return -EINVAL;
  Stream* stream = net::from_c(tcp);
  if (int32_t error = check_open(stream); error != NORIA_OK) return error;
  return stream->poll_write(cx, pieces, clip(pieces_count), count);
}

}  // namespace

extern "C" {

int32_t noria_tcp_connect(noria_runtime* rt, const char* address, const noria_tcp_connect_options* options,
                          noria_future** out) {
  if (address == nullptr || out == nullptr) return -EINVAL;
  runtime::Core* core = nullptr;
  if (int32_t error = capi::resolve_io(rt, core); error != NORIA_OK) return error;
  noria_tcp_connect_options known{};
  if (options != nullptr) {
    if (int32_t error = capi::read_struct(options, known); error != NORIA_OK) return error;
    if (int32_t error = capi::check_switch(known.delay); error != NORIA_OK) return error;
  }
  return net::connect(core, address, known, out);
}

int32_t noria_tcp_from_fd(noria_runtime* rt, int32_t fd, noria_tcp** out) {
  if (out == nullptr) return -EINVAL;
  runtime::Core* core = nullptr;
  if (int32_t error = capi::resolve_io(rt, core); error != NORIA_OK) return error;
  Stream* stream = nullptr;
  int32_t error = Stream::from_fd(core, fd, &stream);
  if (error == NORIA_OK) *out = net::to_c(stream);
  return error;
}

int32_t noria_tcp_poll_read(noria_tcp* tcp, const noria_cx* cx, void* data, size_t size, size_t* count) {
  if (data == nullptr && size != 0) return -EINVAL;
  iovec piece{data, size};
  return poll_read(tcp, cx, &piece, 1, Stream::Take::kRead, count);
}

int32_t noria_tcp_poll_readv(noria_tcp* tcp, const noria_cx* cx, const noria_iovec* pieces, size_t pieces_count,
                             size_t* count) {
  if (pieces == nullptr && pieces_count != 0) return -EINVAL;
  return poll_read(tcp, cx, to_system(pieces), pieces_count, Stream::Take::kRead, count);
}

int32_t noria_tcp_poll_peek(noria_tcp* tcp, const noria_cx* cx, void* data, size_t size, size_t* count) {
  if (data == nullptr && size != 0) return -EINVAL;
  iovec piece{data, size};
  return poll_read(tcp, cx, &piece, 1, Stream::Take::kPeek, count);
}

int32_t noria_tcp_poll_write(noria_tcp* tcp, const noria_cx* cx, const void* data, size_t size, size_t* count) {
  if (data == nullptr && size != 0) return -EINVAL;
  iovec piece{const_cast<void*>(data), size};
  return poll_write(tcp, cx, &piece, 1, count);
}

int32_t noria_tcp_poll_writev(noria_tcp* tcp, const noria_cx* cx, const noria_iovec* pieces, size_t pieces_count,
                              size_t* count) {
  if (pieces == nullptr && pieces_count != 0) return -EINVAL;
  return poll_write(tcp, cx, to_system(pieces), pieces_count, count);
}

int32_t noria_tcp_try_read(noria_tcp* tcp, void* data, size_t size, size_t* count) {
  if ((data == nullptr && size != 0) || count == nullptr) return -EINVAL;
  Stream* stream = net::from_c(tcp);
  if (int32_t error = check_open(stream); error != NORIA_OK) return error;
  iovec piece{data, size};
  return stream->try_read(&piece, 1, count);
}

int32_t noria_tcp_try_write(noria_tcp* tcp, const void* data, size_t size, size_t* count) {
  if ((data == nullptr && size != 0) || count == nullptr) return -EINVAL;
  Stream* stream = net::from_c(tcp);
  if (int32_t error = check_open(stream); error != NORIA_OK) return error;
  iovec piece{const_cast<void*>(data), size};
  return stream->try_write(&piece, 1, count);
}

int32_t noria_tcp_poll_ready(noria_tcp* tcp, uint32_t interest, const noria_cx* cx) {
  constexpr uint32_t kInterests = NORIA_READABLE | NORIA_WRITABLE | NORIA_PRIORITY;
  if (!capi::usable(cx) || interest == 0 || (interest & ~kInterests) != 0) return -EINVAL;
  Stream* stream = net::from_c(tcp);
  if (int32_t error = check_open(stream); error != NORIA_OK) return error;
  return stream->poll_worth(interest, cx);
}

int32_t noria_tcp_ready(noria_tcp* tcp, uint32_t interest, noria_future** out) {
  if (out == nullptr || (interest != NORIA_READABLE && interest != NORIA_WRITABLE)) return -EINVAL;
  Stream* stream = net::from_c(tcp);
  if (int32_t error = check_open(stream); error != NORIA_OK) return error;
  return stream->ready(interest, out);
}

int32_t noria_tcp_poll_read_buf(noria_tcp* tcp, const noria_cx* cx, noria_buf* buf) {
  if (buf == nullptr || !capi::usable(cx)) return -EINVAL;
  Stream* stream = net::from_c(tcp);
  if (int32_t error = check_open(stream); error != NORIA_OK) return error;
  return stream->poll_read_buf(cx, buf);
}

int32_t noria_tcp_poll_write_buf(noria_tcp* tcp, const noria_cx* cx, noria_buf* buf, size_t* count) {
  if (buf == nullptr || count == nullptr || !capi::usable(cx)) return -EINVAL;
  Stream* stream = net::from_c(tcp);
  if (int32_t error = check_open(stream); error != NORIA_OK) return error;
  return stream->poll_write_buf(cx, buf, count);
}

int32_t noria_tcp_read(noria_tcp* tcp, noria_buf* buf, noria_future** out) {
  if (buf == nullptr || out == nullptr) return -EINVAL;
  Stream* stream = net::from_c(tcp);
  if (int32_t error = check_open(stream); error != NORIA_OK) return error;
  return stream->read(buf, out);
}

int32_t noria_tcp_write(noria_tcp* tcp, noria_buf* buf, noria_future** out) {
  if (buf == nullptr || out == nullptr) return -EINVAL;
  Stream* stream = net::from_c(tcp);
  if (int32_t error = check_open(stream); error != NORIA_OK) return error;
  return stream->write(buf, out);
}

int32_t noria_tcp_shutdown(noria_tcp* tcp, uint32_t how) {
  Stream* stream = net::from_c(tcp);
  if (int32_t error = check_open(stream); error != NORIA_OK) return error;
  return stream->shutdown(how);
}

int32_t noria_tcp_set_option(noria_tcp* tcp, uint32_t option, int32_t value) {
  Stream* stream = net::from_c(tcp);
  if (int32_t error = check_open(stream); error != NORIA_OK) return error;
  return stream->set_option(option, value);
}

int32_t noria_tcp_get_option(const noria_tcp* tcp, uint32_t option, int32_t* value) {
  const Stream* stream = net::from_c(tcp);
  if (value == nullptr) return -EINVAL;
  if (int32_t error = check_open(stream); error != NORIA_OK) return error;
  return stream->get_option(option, value);
}

int32_t noria_tcp_local_address(const noria_tcp* tcp, noria_address* out) {
  const Stream* stream = net::from_c(tcp);
  if (out == nullptr) return -EINVAL;
  if (int32_t error = check_open(stream); error != NORIA_OK) return error;
  return stream->local_address(out);
}

int32_t noria_tcp_peer_address(const noria_tcp* tcp, noria_address* out) {
  const Stream* stream = net::from_c(tcp);
  if (out == nullptr) return -EINVAL;
  if (int32_t error = check_open(stream); error != NORIA_OK) return error;
  return stream->peer_address(out);
}

int32_t noria_tcp_into_fd(noria_tcp* tcp, int32_t* fd) {
  Stream* stream = net::from_c(tcp);
  if (fd == nullptr) return -EINVAL;
  if (int32_t error = check_alive(stream); error != NORIA_OK) return error;
  return stream->into_fd(fd);
}

int32_t noria_tcp_close(noria_tcp* tcp) {
  Stream* stream = net::from_c(tcp);
  if (int32_t error = check_alive(stream); error != NORIA_OK) return error;
  stream->close();
  return NORIA_OK;
}

int32_t noria_tcp_drop(noria_tcp* tcp) {
  Stream* stream = net::from_c(tcp);
  if (int32_t error = check_alive(stream); error != NORIA_OK) return error;
  stream->drop();
  return NORIA_OK;
}

}  // extern "C"
