// listener.hpp: a listening socket: what noria_tcp_listener is.
//
// Rest. Out of descriptors or memory, accept cannot take the connection that the kernel goes on reporting. Then the
// listener forgets that it is readable, tries nothing for a while, and a timer reports it readable again: who waits
// then waits as if no connection had come. The delay doubles from 10 ms to 1 s until an accept succeeds.
// Threads:    poll_accept: one at a time. The rest: any.
// Invariants: L1 while resting_ is set the timer is armed or about to report. L2 an accepted connection that nobody took goes
//             to the next who asks.
// Lifetime:   the handle, each pending future and the armed timer hold a reference.
#pragma once

#include <cstdint>

#include <noria/tcp.h>

#include "net/op_queue.hpp"
#include "net/stream.hpp"
#include "timer/timer.hpp"

namespace noria::net {

class Listener final : public Socket {
 public:
  // Binds and listens.
  [[nodiscard]] static std::int32_t listen(runtime::Core* core, const SocketAddress& address,
                                           const noria_tcp_listen_options& options, Listener** out);
  // Around a listening, non-blocking socket, which it takes over; on an error it stays the caller's.
  [[nodiscard]] static std::int32_t make(runtime::Core* core, std::int32_t fd, Listener** out);
  [[nodiscard]] static std::int32_t from_fd(runtime::Core* core, std::int32_t fd, Listener** out);

  [[nodiscard]] std::int32_t poll_accept(const noria_cx* cx, Stream** out);
  // Once, without waiting; -EAGAIN: nobody is there, or the listener rests.
  [[nodiscard]] std::int32_t accept_once(Stream** out);
  [[nodiscard]] std::int32_t accept(noria_future** out);

  [[nodiscard]] std::int32_t address(noria_address* out) const;
  std::uint64_t rests() const {
    // ORDER: relaxed, a number for reports.
    return rests_.load(NORIA_RELAXED);
  }
  void drop();

  // A connection that was accepted and that nobody took; takes the reference.
  void keep(Stream* stream);

 private:
  struct RestTimer : timer::Timer {
    explicit RestTimer(Listener* of);
    Listener* const listener;
  };
  static const timer::TimerOps kRestOps;

  Listener(runtime::Core* core, std::int32_t fd);
  ~Listener();
  static void destroy(Source* source);

  Stream* pop_kept();
  [[nodiscard]] std::int32_t adopt(std::int32_t fd, Stream** out);
  void rest();
  void rest_over();

  const Stream::Kind kind_;
  OpQueue accepts_;
  RestTimer timer_;
  SpinLock lock_;
  Stream* kept_ NORIA_GUARDED_BY(lock_) = nullptr;      // linked by Stream::next_accepted, newest last
  std::int32_t spare_fd_ NORIA_GUARDED_BY(lock_) = -1;  // accepted when there was no memory for a stream
  std::uint64_t delay_ns_ NORIA_GUARDED_BY(lock_) = 0;  // of the next rest
  Atomic<bool> resting_{false};                         // set under lock_
  Atomic<bool> has_kept_{false};                        // written under lock_
  Atomic<std::uint64_t> rests_{0};
};

inline noria_tcp_listener* to_c(Listener* listener) { return reinterpret_cast<noria_tcp_listener*>(listener); }
inline Listener* from_c(noria_tcp_listener* listener) { return reinterpret_cast<Listener*>(listener); }
inline const Listener* from_c(const noria_tcp_listener* listener) {
  return reinterpret_cast<const Listener*>(listener);
}

}  // namespace noria::net
