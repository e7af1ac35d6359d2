// stream.hpp: a connected stream socket: what noria_tcp is.
// Threads:    one reader and one writer at a time for the poll forms; operations in future form from any thread.
// Invariants: T1 bytes leave in the order in which the system gave them: kept ones first. T2 on TCP a short read or write
//             means that the kernel has no more (room), so readiness is cleared without another call; not while urgent data
//             is about, at whose mark a read stops short. A Unix socket stops short at descriptors and credentials too.
// Lifetime:   the handle, operations and copies hold references; closed with the handle at the latest.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include <noria/tcp.h>

#include "net/address.hpp"
#include "net/kept.hpp"
#include "net/op_queue.hpp"
#include "net/socket.hpp"

namespace noria::net {

class Stream final : public Socket {
 public:
  // What a connected socket is taken for at first: one try costs less than waiting for the first report.
  static constexpr std::uint32_t kWorthATry = NORIA_READABLE | NORIA_WRITABLE;
  enum class Kind : bool { kOther, kTcp };
  // Of a caller's socket.
  static Kind kind_of(std::int32_t fd);

  // Around a non-blocking socket, which it takes over; on an error it stays the caller's.
  [[nodiscard]] static std::int32_t make(runtime::Core* core, std::int32_t fd, Kind kind, std::uint32_t assumed,
                                         Stream** out);
  // The same for a caller's socket, of which nothing is known.
  [[nodiscard]] static std::int32_t from_fd(runtime::Core* core, std::int32_t fd, Stream** out);

  enum class Take { kRead, kPeek };
  [[nodiscard]] std::int32_t poll_read(const noria_cx* cx, const iovec* pieces, std::size_t count, Take take,
                                       std::size_t* got);
  [[nodiscard]] std::int32_t poll_write(const noria_cx* cx, const iovec* pieces, std::size_t count, std::size_t* sent);
  // Once, without waiting: -EAGAIN where nothing can be done now.
  [[nodiscard]] std::int32_t try_read(const iovec* pieces, std::size_t count, std::size_t* got);
  [[nodiscard]] std::int32_t try_write(const iovec* pieces, std::size_t count, std::size_t* sent);
  // The same for who has passed the gate; with -EAGAIN the readiness is cleared.
  // `place`: of the first byte that was read; not set by a peek.
  [[nodiscard]] std::int32_t read_once(const iovec* pieces, std::size_t count, Take take, std::size_t* got,
                                       std::uint64_t* place);
  [[nodiscard]] std::int32_t write_once(const iovec* pieces, std::size_t count, std::size_t* sent);
  [[nodiscard]] std::int32_t poll_worth(std::uint32_t interest, const noria_cx* cx);

  // Into the capacity of `buf`; the rest of the length of `buf`, behind the first `*done` bytes.
  [[nodiscard]] std::int32_t poll_read_buf(const noria_cx* cx, noria_buf* buf);
  [[nodiscard]] std::int32_t poll_write_buf(const noria_cx* cx, noria_buf* buf, std::size_t* done);
  // Of NORIA_READABLE and NORIA_WRITABLE one; queues up with the operations of that side.
  [[nodiscard]] std::int32_t ready(std::uint32_t interest, noria_future** out);
  bool worth_a_try(std::uint32_t interest) const {
    return (interest == NORIA_READABLE && has_kept()) ||
           (look().events & reactor::ready_mask(interest) & ~reactor::kGone) != 0;
  }

  [[nodiscard]] std::int32_t read(noria_buf* buf, noria_future** out);
  [[nodiscard]] std::int32_t write(noria_buf* buf, noria_future** out);

  [[nodiscard]] std::int32_t shutdown(std::uint32_t how);
  [[nodiscard]] std::int32_t set_option(std::uint32_t option, std::int32_t value);
  [[nodiscard]] std::int32_t get_option(std::uint32_t option, std::int32_t* value) const;
  [[nodiscard]] std::int32_t local_address(noria_address* out) const;
  [[nodiscard]] std::int32_t peer_address(noria_address* out) const;

  // On success the handle's reference is given back.
  [[nodiscard]] std::int32_t into_fd(std::int32_t* out);
  void drop();

  // Bytes that came back, to their place; takes the node. After close they are dropped.
  void keep(Kept* kept);
  bool has_kept() const {
    // ORDER: acquire, pairs with keep: a reader that is told of bytes finds them.
    return kept_count_.load(NORIA_ACQUIRE) != 0;
  }
  // The place in the stream of `count` bytes that the system has just given.
  std::uint64_t take_place(std::size_t count) {
    // ORDER: relaxed, readers are serialised; the number orders kept bytes only.
    return place_.fetch_add(count, NORIA_RELAXED);
  }
  Stream* next_accepted = nullptr;  // in a listener's list of connections that nobody took

  // The two sides, for copies.
  OpQueue& reads() { return reads_; }
  OpQueue& writes() { return writes_; }

  // A copy uses the stream: it cannot be taken apart.
  void copy_begins() {
    // ORDER: relaxed, whoever starts it orders it against its own into_fd.
    copies_.fetch_add(1, NORIA_RELAXED);
  }
  void copy_ends() {
    // ORDER: release, pairs with into_fd: what the copy did comes first.
    copies_.fetch_sub(1, NORIA_RELEASE);
  }

  // A Kept node for bytes of this stream, or nullptr.
  Kept* make_kept() { return core()->make<Kept>(SlotKind::kOther); }

 private:
  friend class runtime::Core;
  Stream(runtime::Core* core, std::int32_t fd, Kind kind);
  ~Stream();

  static void destroy(Source* source);
  [[nodiscard]] std::int32_t poll_side(std::uint32_t interest, const noria_cx* cx);
  Kept* pop_kept();
  void push_kept(Kept* kept);
  [[nodiscard]] std::int32_t read_kept(const iovec* pieces, std::size_t count, Take take, std::size_t* got,
                                       std::uint64_t* place);

  const bool short_is_last_;  // T2
  OpQueue reads_;
  OpQueue writes_;
  SpinLock kept_lock_;
  Kept* kept_ NORIA_GUARDED_BY(kept_lock_) = nullptr;
  Atomic<std::size_t> kept_count_{0};  // written under kept_lock_
  Atomic<std::uint64_t> place_{0};     // of what the system gives next
  Atomic<std::uint32_t> copies_{0};    // that have begun and not ended
};

inline noria_tcp* to_c(Stream* stream) { return reinterpret_cast<noria_tcp*>(stream); }
inline Stream* from_c(noria_tcp* tcp) { return reinterpret_cast<Stream*>(tcp); }
inline const Stream* from_c(const noria_tcp* tcp) { return reinterpret_cast<const Stream*>(tcp); }

}  // namespace noria::net
