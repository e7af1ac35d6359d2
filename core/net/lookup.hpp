// lookup.hpp: a name looked up on the blocking pool.
// Threads:    start, cancel: serialised by the owner; done is called on a thread of the pool.
// Lifetime:   part of an operation, which keeps itself alive until done was called or cancel answered true.
#pragma once

#include <netdb.h>

#include <cstdint>

#include "blocking/pool.hpp"
#include "net/address.hpp"
#include "runtime/core.hpp"

namespace noria::net {

class Lookup : private blocking::Job {
 public:
  using DoneFn = void (*)(Lookup*);

  explicit Lookup(DoneFn done) : done_(done) {}
  ~Lookup();
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;

  // On an error done is not called.
  [[nodiscard]] std::int32_t start(runtime::Core& core, const HostPort& host, bool passive);
  // True: done will not be called.
  [[nodiscard]] bool cancel(runtime::Core& core);

  // By done(), when whoever waits has been told: until then paused time stands still.
  void let_clock_go() { core_->release_clock(); }

  // Once done: the status and the addresses, in order of preference.
  std::int32_t status() const { return status_; }
  const addrinfo* first() const { return list_; }

 private:
  void look_up();

  const DoneFn done_;
  runtime::Core* core_ = nullptr;
  HostPort name_;
  bool passive_ = false;
  std::int32_t status_ = 0;
  addrinfo* list_ = nullptr;
};

// One of the list as a socket address.
void to_system(const addrinfo& from, SocketAddress& to);

}  // namespace noria::net
