#include "net/way.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/spare_block.hpp"

namespace noria::net {

namespace {

constexpr std::size_t kPipeSize = 64 * 1024;
// From there on a pipe costs less than copying (measured: 16 KiB go through a block for 8 % less, 32 KiB for 7 % more).
constexpr std::size_t kMuch = 24 * 1024;
constexpr std::size_t kLittle = 16 * 1024;
constexpr int kLittleInARow = 4;  // a bulk stream pauses too
// A block takes as much as a pipe. With 32 KiB, what a bulk stream begins with was so small that the target's receive window never grew.
static_assert(SpareBlock::kSize == kPipeSize);
constexpr std::uint32_t kReadMask = reactor::ready_mask(NORIA_READABLE);
constexpr std::uint32_t kWriteMask = reactor::ready_mask(NORIA_WRITABLE);

sigset_t sigpipe_only() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGPIPE);
  return set;
}

// splice(2) answers so where one of the two ends does not know it.
bool no_splice_here(int error) { return error == EINVAL || error == ENOSYS || error == EOPNOTSUPP; }

}  // namespace

void NoSigpipe::block() {
  if (blocked_) return;
  blocked_ = true;
  sigset_t set = sigpipe_only();
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  if (::sigismember(&before_, SIGPIPE) == 0) return;
  sigset_t pending;
  was_pending_ = ::sigpending(&pending) == 0 && ::sigismember(&pending, SIGPIPE) == 1;
}

void NoSigpipe::raised() {
  if (was_pending_) return;
  sigset_t set = sigpipe_only();
  const timespec now{};
  while (::sigtimedwait(&set, nullptr, &now) < 0 && errno == EINTR) {
  }
}

NoSigpipe::~NoSigpipe() {
  if (blocked_) ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

Way::~Way() {
  if (held_ != nullptr) held_->drop();
}

std::int32_t Way::init(Stream* from, Stream* to, bool pass_end, const Atomic<bool>* cancelled) {
  from_ = from;
  to_ = to;
  pass_end_ = pass_end;
  cancelled_ = cancelled;
  held_ = from->make_kept();
  return held_ != nullptr ? 0 : -ENOMEM;
}

Way::Step Way::fail(std::int32_t error) {
  error_ = error;
  return Step::kFailed;
}

Way::Step Way::step(const noria_cx* cx, NoSigpipe& signals) {
  if (over_) return Step::kOver;
  if (!held_->empty()) return flush(cx, signals);
  return ended_ ? finish() : fill(cx);
}

Way::Step Way::finish() {
  over_ = true;
  held_->pipe.close();  // the other way may go on for long
  if (!pass_end_) return Step::kOver;
  std::int32_t status = to_->shutdown(NORIA_SHUTDOWN_WRITE);
  // ENOTCONN: the peer has gone altogether, and needs no half-close.
  return status == 0 || status == -ENOTCONN ? Step::kOver : fail(status);
}

Way::Step Way::fill(const noria_cx* cx) {
  // Once: the end of what was dropped before this copy began is all that there is to wait for.
  if (from_->reads().wait_at_gate(cx, cancelled_)) return Step::kPending;
  for (;;) {
    if (from_->has_kept()) {
      Step step = fill_block();
      if (step != Step::kPending) return step;
    }
    reactor::Readiness seen;
    std::int32_t ready = from_->poll_ready(NORIA_READABLE, cx, seen);
    if (ready == NORIA_PENDING) return watch_target(cx);
    if (ready != NORIA_READY) return fail(ready);
    // Out of descriptors: through memory this time.
    if (by_pipe_ && !held_->pipe.is_open()) by_pipe_ = held_->pipe.open() == 0;
    Step step = by_pipe_ ? fill_pipe(seen) : fill_block();
    if (step != Step::kPending) return step;
  }
}

// Nothing comes from the source. Should the target be reset meanwhile, nobody else would notice: it has ended, perhaps, and
// is not read any more.
Way::Step Way::watch_target(const noria_cx* cx) {
  for (;;) {
    reactor::Readiness seen;
    std::int32_t ready = to_->poll_ready(NORIA_WRITE_CLOSED, cx, seen);
    if (ready == NORIA_PENDING) return Step::kPending;
    if (ready != NORIA_READY) return fail(ready);
    if ((seen.events & NORIA_WRITE_CLOSED) == 0) {
      to_->clear(seen, NORIA_ERROR);
      continue;
    }
    std::int32_t error = 0;
    std::int32_t failed = to_->get_option(NORIA_TCP_ERROR, &error);
    return fail(failed != 0 ? failed : error != 0 ? error : -EPIPE);
  }
}

// What comes next may be little too.
void Way::source_is_empty() {
  little_in_a_row_ = since_empty_ < kLittle ? static_cast<std::uint8_t>(little_in_a_row_ + 1) : std::uint8_t{0};
  since_empty_ = 0;
  if (little_in_a_row_ < kLittleInARow) return;
  little_in_a_row_ = 0;
  by_pipe_ = false;
  held_->pipe.close();
}

// kPending: not now, the readiness was cleared; or not at all, and no_splice_ is set.
Way::Step Way::fill_pipe(reactor::Readiness seen) {
  Socket::Use use(*from_);
  if (!use) return fail(-EBADF);
  for (;;) {
    ssize_t n =
        ::splice(from_->fd(), nullptr, held_->pipe.write_fd, nullptr, kPipeSize, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (n > 0) {
      held_->pipe.held = static_cast<std::size_t>(n);
      place_ = from_->take_place(held_->pipe.held);
      since_empty_ += held_->pipe.held;
      return Step::kMoved;
    }
    if (n == 0) {
      ended_ = true;
      return Step::kMoved;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN) {
      from_->clear(seen, kReadMask);
      source_is_empty();
      return Step::kPending;
    }
    if (!no_splice_here(errno)) return fail(-errno);
    no_splice_ = true;
    by_pipe_ = false;
    held_->pipe.close();
    return Step::kPending;
  }
}

Way::Step Way::fill_block() {
  if (!held_->block.borrow(*from_->core())) return fail(-ENOMEM);
  iovec piece{held_->block.data, held_->block.size};
  std::size_t got = 0;
  std::int32_t status = from_->read_once(&piece, 1, Stream::Take::kRead, &got, &place_);
  if (got == 0) held_->block.give_back(*from_->core());
  if (status == -EAGAIN) return Step::kPending;
  if (status != NORIA_OK) return fail(status);
  held_->begin = 0;
  held_->end = got;
  if (got == 0) ended_ = true;
  if (got >= kMuch && !no_splice_) by_pipe_ = true;
  return Step::kMoved;
}

Way::Step Way::flush(const noria_cx* cx, NoSigpipe& signals) {
  if (to_->writes().wait_at_gate(cx, cancelled_)) return Step::kPending;
  for (;;) {
    reactor::Readiness seen;
    std::int32_t ready = to_->poll_ready(NORIA_WRITABLE, cx, seen);
    if (ready == NORIA_PENDING) return Step::kPending;
    if (ready != NORIA_READY) return fail(ready);
    bool from_block = held_->begin != held_->end;  // what is in both came to the block first
    Step step = from_block ? flush_block() : no_splice_ ? pipe_to_block() : flush_pipe(seen, signals);
    if (step != Step::kPending) return step;
  }
}

Way::Step Way::flush_pipe(reactor::Readiness seen, NoSigpipe& signals) {
  Socket::Use use(*to_);
  if (!use) return fail(-EBADF);
  signals.block();
  for (;;) {
    ssize_t n =
        ::splice(held_->pipe.read_fd, nullptr, to_->fd(), nullptr, held_->pipe.held, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (n > 0) {
      held_->pipe.held -= static_cast<std::size_t>(n);
      count(static_cast<std::size_t>(n));
      return Step::kMoved;
    }
    int error = n == 0 ? EAGAIN : errno;
    if (error == EINTR) continue;
    if (error == EAGAIN) {
      to_->clear(seen, kWriteMask);
      return Step::kPending;
    }
    if (error == EPIPE) signals.raised();
    if (!no_splice_here(error)) return fail(-error);
    return pipe_to_block();
  }
}

// The target does not know splice: what is in the pipe goes on through memory, and so does the rest.
Way::Step Way::pipe_to_block() {
  no_splice_ = true;
  by_pipe_ = false;
  if (!held_->block.borrow(*from_->core())) return fail(-ENOMEM);
  iovec piece{held_->block.data, held_->block.size};
  std::size_t got = 0;
  if (std::int32_t error = held_->read(&piece, 1, false, &got); error != 0) return fail(error);
  held_->begin = 0;
  held_->end = got;
  if (held_->pipe.held == 0) held_->pipe.close();
  return Step::kMoved;
}

Way::Step Way::flush_block() {
  iovec piece{held_->block.data + held_->begin, held_->end - held_->begin};
  std::size_t sent = 0;
  std::int32_t status = to_->write_once(&piece, 1, &sent);
  if (status != NORIA_OK && status != -EAGAIN) return fail(status);
  held_->begin += sent;
  count(sent);
  if (held_->begin == held_->end) {
    held_->block.give_back(*from_->core());
  } else {
    wait_with_little();
  }
  return status == NORIA_OK ? Step::kMoved : Step::kPending;
}

// The target takes no more at present. Many ways that wait so shall not have a large block each.
void Way::wait_with_little() {
  std::size_t rest = held_->end - held_->begin;
  if (!held_->block.lent() || rest > kLittle) return;
  Block little;
  if (!little.make(rest)) return;
  std::memcpy(little.data, held_->block.data + held_->begin, rest);
  held_->block.give_back(*from_->core());
  held_->block = little;
  held_->begin = 0;
  held_->end = rest;
}

void Way::give_back() {
  if (held_ == nullptr) return;
  Kept* held = std::exchange(held_, nullptr);
  if (held->empty()) {
    held->drop();  // the pipe goes now: a timer may hold the copy for longer
    return;
  }
  held->place = place_;
  from_->keep(held);
}

}  // namespace noria::net
