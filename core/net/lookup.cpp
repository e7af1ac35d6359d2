#include "net/lookup.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace noria::net {

Lookup::~Lookup() {
  if (list_ != nullptr) ::freeaddrinfo(list_);
}

std::int32_t Lookup::start(runtime::Core& core, const HostPort& host, bool passive) {
  core_ = &core;
  name_ = host;
  passive_ = passive;
  Job::name = "name look-up";
  run = [](Job* job) { static_cast<Lookup*>(job)->look_up(); };
  discard = [](Job* job) {
    auto* self = static_cast<Lookup*>(job);
    self->status_ = -NORIA_ESHUTDOWN;
    self->done_(self);
  };
  core.hold_clock();  // paused time must not jump to a deadline while the answer is on its way
  std::int32_t error = core.pool().submit(*this, blocking::PoolClass::kNames);
  if (error == 0) return 0;
  core.release_clock();
  return error == -ESHUTDOWN ? -NORIA_ESHUTDOWN : error;
}

bool Lookup::cancel(runtime::Core& core) {
  if (!core.pool().cancel(*this)) return false;
  core.release_clock();
  return true;
}

void Lookup::look_up() {
  char port[8];
  std::snprintf(port, sizeof port, "%u", static_cast<unsigned>(name_.port));
  addrinfo wish{};
  wish.ai_socktype = SOCK_STREAM;
  wish.ai_flags = AI_NUMERICSERV | (passive_ ? AI_PASSIVE : 0);
  int error = ::getaddrinfo(name_.host, port, &wish, &list_);
  if (error == EAI_SYSTEM) {
    status_ = -errno;
  } else if (error == EAI_MEMORY) {
    status_ = -ENOMEM;
  } else if (error != 0 || list_ == nullptr) {
    status_ = -NORIA_ERESOLVE;
  }
  done_(this);
}

void to_system(const addrinfo& from, SocketAddress& to) {
  to.size = from.ai_addrlen <= sizeof to.storage ? from.ai_addrlen : sizeof to.storage;
  std::memcpy(&to.storage, from.ai_addr, to.size);
}

}  // namespace noria::net
