#include "check.hpp"
#include "net/connect.hpp"
#include "net/listener.hpp"
#include "noria/tcp.h"

using namespace noria;
using net::Listener;

namespace {

int32_t check_alive(const Listener* listener) {
  return listener == nullptr ? -EINVAL : capi::check_core(listener->core());
}

int32_t check_open(const Listener* listener) {
  if (int32_t error = check_alive(listener); error != NORIA_OK) return error;
  return listener->core()->closed() ? -NORIA_ESHUTDOWN : NORIA_OK;
}

}  // namespace

extern "C" {

int32_t noria_tcp_listen(noria_runtime* rt, const char* address, const noria_tcp_listen_options* options,
                         noria_future** out) {
  if (address == nullptr || out == nullptr) return -EINVAL;
  runtime::Core* core = nullptr;
  if (int32_t error = capi::resolve_io(rt, core); error != NORIA_OK) return error;
  noria_tcp_listen_options known{};
  if (options != nullptr) {
    if (int32_t error = capi::read_struct(options, known); error != NORIA_OK) return error;
    if (int32_t error = capi::check_switch(known.reuse_port); error != NORIA_OK) return error;
    if (int32_t error = capi::check_switch(known.ipv6_only); error != NORIA_OK) return error;
    if (known.backlog == NORIA_NONE) return -EINVAL;
  }
  return net::listen(core, address, known, out);
}

int32_t noria_tcp_listener_from_fd(noria_runtime* rt, int32_t fd, noria_tcp_listener** out) {
  if (out == nullptr) return -EINVAL;
  runtime::Core* core = nullptr;
  if (int32_t error = capi::resolve_io(rt, core); error != NORIA_OK) return error;
  Listener* listener = nullptr;
  int32_t error = Listener::from_fd(core, fd, &listener);
  if (error == NORIA_OK) *out = net::to_c(listener);
  return error;
}

int32_t noria_tcp_poll_accept(noria_tcp_listener* listener, const noria_cx* cx, noria_tcp** out) {
  if (out == nullptr || !capi::usable(cx)) return -EINVAL;
  Listener* self = net::from_c(listener);
  if (int32_t error = check_open(self); error != NORIA_OK) return error;
  net::Stream* stream = nullptr;
  int32_t status = self->poll_accept(cx, &stream);
  if (status == NORIA_READY) *out = net::to_c(stream);
  return status;
}

int32_t noria_tcp_accept(noria_tcp_listener* listener, noria_future** out) {
  if (out == nullptr) return -EINVAL;
  Listener* self = net::from_c(listener);
  if (int32_t error = check_open(self); error != NORIA_OK) return error;
  return self->accept(out);
}

int32_t noria_tcp_listener_address(const noria_tcp_listener* listener, noria_address* out) {
  if (out == nullptr) return -EINVAL;
  const Listener* self = net::from_c(listener);
  if (int32_t error = check_open(self); error != NORIA_OK) return error;
  return self->address(out);
}

int32_t noria_tcp_listener_rests(const noria_tcp_listener* listener, uint64_t* out) {
  if (out == nullptr) return -EINVAL;
  const Listener* self = net::from_c(listener);
  if (int32_t error = check_alive(self); error != NORIA_OK) return error;
  *out = self->rests();
  return NORIA_OK;
}

int32_t noria_tcp_listener_close(noria_tcp_listener* listener) {
  Listener* self = net::from_c(listener);
  if (int32_t error = check_alive(self); error != NORIA_OK) return error;
  self->close();
  return NORIA_OK;
}

int32_t noria_tcp_listener_drop(noria_tcp_listener* listener) {
  Listener* self = net::from_c(listener);
  if (int32_t error = check_alive(self); error != NORIA_OK) return error;
  self->drop();
  return NORIA_OK;
}

}  // extern "C"
