// way.hpp: one direction of a copy: bytes from one stream to another, through a block of memory as long as little comes at once, and through
// a pipe by splice(2) once much does, where the kernel and the descriptors allow that.
//   from    to      when
//   block   pipe    a read brought kMuch
//   pipe    block   kLittleInARow times what came until the stream had nothing was less than kLittle, or there is no splice
// A message through the block takes a read and a write, for a short read says that the stream has nothing (T2). A splice that brought little may
// have filled the pipe's slots, so it takes one more call; and each that goes to a socket has SIGPIPE held back around it. But it copies nothing.
// Threads:    the task of the copy; `moved` may be read by anyone.
// Invariants: Y1 the pipe is filled only when it is empty, so "not now" on the way in means that the stream has nothing.
//             Y2 moved counts what the target's kernel has accepted, nothing that is still held.
//             Y3 between two steps a way has a block only while there are bytes in it: little in one of that size, much in the one that
//             is the worker's spare one otherwise.
// Lifetime:   part of a copy, which holds references of both streams.
#pragma once

#include <csignal>
#include <cstdint>

#include "net/stream.hpp"

namespace noria::net {

// splice(2) to a socket whose peer has gone raises SIGPIPE, and has no flag against it. A worker belongs to us but the
// signal mask is inherited by what user code starts on it, so it is blocked for one poll of a copy only: two system calls
// for up to sixteen splices, and one more where a signal was raised, which takes it away before the mask is put back.
class NoSigpipe {
 public:
  NoSigpipe() = default;
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;
  ~NoSigpipe();

  void block();   // before the first splice to a socket
  void raised();  // after EPIPE

 private:
  bool blocked_ = false;
  bool was_pending_ = false;  // the user's own, which stays
  sigset_t before_;
};

class Way {
 public:
  Way() = default;
  Way(const Way&) = delete;
  Way& operator=(const Way&) = delete;
  ~Way();

  // -ENOMEM. `pass_end`: an end of stream is passed on as a half-close. `cancelled`: of the copy.
  [[nodiscard]] std::int32_t init(Stream* from, Stream* to, bool pass_end, const Atomic<bool>* cancelled);

  enum class Step { kMoved, kPending, kOver, kFailed };
  // One piece; with kPending the waker was left (or the copy was cancelled), kFailed has set error().
  [[nodiscard]] Step step(const noria_cx* cx, NoSigpipe& signals);

  bool over() const { return over_; }
  std::int32_t error() const { return error_; }
  std::uint64_t moved() const {
    // ORDER: relaxed, a count that others look at.
    return moved_.load(NORIA_RELAXED);
  }
  // What is held and was not delivered goes back to the stream it came from.
  void give_back();

 private:
  Step fail(std::int32_t error);
  Step fill(const noria_cx* cx);
  Step watch_target(const noria_cx* cx);
  Step fill_pipe(reactor::Readiness seen);
  void source_is_empty();
  Step fill_block();
  Step flush(const noria_cx* cx, NoSigpipe& signals);
  Step flush_pipe(reactor::Readiness seen, NoSigpipe& signals);
  Step flush_block();
  void wait_with_little();
  Step finish();
  Step pipe_to_block();
  void count(std::size_t bytes) {
    // ORDER: relaxed, only the copy's task writes it.
    moved_.store(moved_.load(NORIA_RELAXED) + bytes, NORIA_RELAXED);
  }

  Stream* from_ = nullptr;
  Stream* to_ = nullptr;
  const Atomic<bool>* cancelled_ = nullptr;
  Kept* held_ = nullptr;     // pipe and block, and what is in them
  std::uint64_t place_ = 0;  // of what was read last, a part of which may be held
  std::int32_t error_ = 0;
  std::size_t since_empty_ = 0;  // bytes that the pipe took since the source had nothing
  std::uint8_t little_in_a_row_ = 0;
  bool pass_end_ = false;
  bool by_pipe_ = false;  // what comes next
  bool no_splice_ = false;
  bool ended_ = false;  // the end of `from` was read
  bool over_ = false;
  Atomic<std::uint64_t> moved_{0};
};

}  // namespace noria::net
