#include "net/stream.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <limits>
#include <utility>

#include "task/context.hpp"

namespace noria::net {

namespace {

constexpr std::uint32_t kReadMask = reactor::ready_mask(NORIA_READABLE) & ~reactor::kGone;
constexpr std::uint32_t kWriteMask = reactor::ready_mask(NORIA_WRITABLE) & ~reactor::kGone;

std::size_t total(const iovec* pieces, std::size_t count) {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += pieces[i].iov_len;
  return sum;
}

msghdr message_of(const iovec* pieces, std::size_t count) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces);
  message.msg_iovlen = count;
  return message;
}

// One piece goes through recv and send: the kernel's way for a message header costs 4 % of a small request.
ssize_t receive(std::int32_t fd, const iovec* pieces, std::size_t count, int flags) {
  if (count == 1) return ::recv(fd, pieces->iov_base, pieces->iov_len, flags);
  msghdr message = message_of(pieces, count);
  return ::recvmsg(fd, &message, flags);
}

ssize_t send(std::int32_t fd, const iovec* pieces, std::size_t count, int flags) {
  if (count == 1) return ::send(fd, pieces->iov_base, pieces->iov_len, flags);
  msghdr message = message_of(pieces, count);
  return ::sendmsg(fd, &message, flags);
}

// What a poll form answers that waits at the gate.
std::int32_t held_off() {
  task::budget_restore(task::t_context);
  return NORIA_PENDING;
}

}  // namespace

Stream::Stream(runtime::Core* core, std::int32_t fd, Kind kind)
    : Socket(core, fd, destroy),
      short_is_last_(kind == Kind::kTcp),
      reads_(*this, NORIA_READABLE),
      writes_(*this, NORIA_WRITABLE) {}

Stream::~Stream() {
  while (Kept* kept = pop_kept()) kept->drop();
}

void Stream::destroy(Source* source) {
  static_cast<Stream*>(source)->~Stream();
  Slab::free(source);
}

std::int32_t Stream::make(runtime::Core* core, std::int32_t fd, Kind kind, std::uint32_t assumed, Stream** out) {
  void* slot = core->alloc(SlotKind::kOther, sizeof(Stream), alignof(Stream));
  if (slot == nullptr) return -ENOMEM;
  auto* stream = new (slot) Stream(core, fd, kind);
  stream->assume(assumed);
  if (std::int32_t error = stream->open(); error != 0) {
    stream->unref();
    return error;
  }
  *out = stream;
  return 0;
}

Stream::Kind Stream::kind_of(std::int32_t fd) {
  int domain = 0;
  socklen_t size = sizeof domain;
  if (::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0) return Kind::kOther;
  return domain == AF_INET || domain == AF_INET6 ? Kind::kTcp : Kind::kOther;
}

std::int32_t Stream::from_fd(runtime::Core* core, std::int32_t fd, Stream** out) {
  int type = 0;
  socklen_t size = sizeof type;
  if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0) return -errno;
  int listens = 0;
  size = sizeof listens;
  if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0) return -errno;
  if (type != SOCK_STREAM || listens != 0) return -EINVAL;
  sockaddr_storage peer;
  size = sizeof peer;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return -errno;
  if (std::int32_t error = set_nonblocking(fd); error != 0) return error;
  std::int32_t error = make(core, fd, kind_of(fd), kWorthATry, out);
  if (error == 0) (*out)->may_linger();
  return error;
}

std::int32_t Stream::read_once(const iovec* pieces, std::size_t count, Take take, std::size_t* got,
                               std::uint64_t* place) {
  if (has_kept()) {
    std::int32_t status = read_kept(pieces, count, take, got, place);
    if (status != -EAGAIN) return status;
  }
  reactor::Readiness seen = look();
  Use use(*this);
  if (!use) return -EBADF;
  for (;;) {
    ssize_t n = receive(fd(), pieces, count, take == Take::kPeek ? MSG_PEEK : 0);
    if (n >= 0) {
      *got = static_cast<std::size_t>(n);
      if (take == Take::kRead) *place = take_place(*got);
      bool last = short_is_last_ && n > 0 && take == Take::kRead && *got < total(pieces, count);
      if (last && (seen.events & NORIA_PRIORITY) == 0) clear(seen, NORIA_READABLE);
      return NORIA_READY;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return -errno;
    clear(seen, kReadMask);
    return -EAGAIN;
  }
}

std::int32_t Stream::write_once(const iovec* pieces, std::size_t count, std::size_t* sent) {
  reactor::Readiness seen = look();
  Use use(*this);
  if (!use) return -EBADF;
  for (;;) {
    ssize_t n = send(fd(), pieces, count, MSG_NOSIGNAL);
    if (n >= 0) {
      *sent = static_cast<std::size_t>(n);
      if (short_is_last_ && n > 0 && *sent < total(pieces, count)) clear(seen, NORIA_WRITABLE);
      return NORIA_READY;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return -errno;
    clear(seen, kWriteMask);
    return -EAGAIN;
  }
}

std::int32_t Stream::try_read(const iovec* pieces, std::size_t count, std::size_t* got) {
  std::uint64_t place;
  return reads_.held() ? -EAGAIN : read_once(pieces, count, Take::kRead, got, &place);
}

std::int32_t Stream::try_write(const iovec* pieces, std::size_t count, std::size_t* sent) {
  return writes_.held() ? -EAGAIN : write_once(pieces, count, sent);
}

std::int32_t Stream::poll_read(const noria_cx* cx, const iovec* pieces, std::size_t count, Take take,
                               std::size_t* got) {
  if (!task::budget_poll(cx)) return NORIA_PENDING;
  if (reads_.wait_at_gate(cx)) return held_off();
  for (;;) {
    if (!has_kept() && (look().events & kReadMask) == 0) {
      std::int32_t ready = poll_side(NORIA_READABLE, cx);
      if (ready != NORIA_READY) return ready;
    }
    std::uint64_t place;
    std::int32_t status = read_once(pieces, count, take, got, &place);
    if (status != -EAGAIN) return status;
  }
}

std::int32_t Stream::poll_write(const noria_cx* cx, const iovec* pieces, std::size_t count, std::size_t* sent) {
  if (!task::budget_poll(cx)) return NORIA_PENDING;
  if (writes_.wait_at_gate(cx)) return held_off();
  for (;;) {
    std::int32_t ready = poll_side(NORIA_WRITABLE, cx);
    if (ready != NORIA_READY) return ready;
    std::int32_t status = write_once(pieces, count, sent);
    if (status != -EAGAIN) return status;
  }
}

std::int32_t Stream::poll_worth(std::uint32_t interest, const noria_cx* cx) {
  if (!task::budget_poll(cx)) return NORIA_PENDING;
  constexpr std::uint32_t kReading = NORIA_READABLE | NORIA_PRIORITY;
  if ((interest & kReading) != 0 && reads_.wait_at_gate(cx)) interest &= ~kReading;
  if ((interest & NORIA_WRITABLE) != 0 && writes_.wait_at_gate(cx)) interest &= ~std::uint32_t{NORIA_WRITABLE};
  if (interest == 0) return held_off();
  if ((interest & NORIA_READABLE) != 0 && has_kept()) return NORIA_READY;
  return poll_side(interest, cx);
}

// Readiness for a poll form: PENDING gives the unit of budget back. The stream may be gone without being closed.
std::int32_t Stream::poll_side(std::uint32_t interest, const noria_cx* cx) {
  reactor::Readiness seen;
  std::int32_t ready = poll_ready(interest, cx, seen);
  if (ready == NORIA_PENDING) task::budget_restore(task::t_context);
  return ready == -EBADF && !closed() ? -NORIA_ESHUTDOWN : ready;
}

Kept* Stream::pop_kept() {
  SpinScope scope(kept_lock_);
  Kept* first = kept_;
  if (first == nullptr) return nullptr;
  kept_ = first->next;
  // ORDER: relaxed load, release store: written under the lock; see has_kept.
  kept_count_.store(kept_count_.load(NORIA_RELAXED) - 1, NORIA_RELEASE);
  return first;
}

void Stream::push_kept(Kept* kept) {
  SpinScope scope(kept_lock_);
  Kept** place = &kept_;
  while (*place != nullptr && (*place)->place < kept->place) place = &(*place)->next;
  kept->next = *place;
  *place = kept;
  // ORDER: relaxed load, release store: written under the lock; see has_kept.
  kept_count_.store(kept_count_.load(NORIA_RELAXED) + 1, NORIA_RELEASE);
}

void Stream::keep(Kept* kept) {
  if (kept->empty() || gone()) return kept->drop();
  push_kept(kept);
  report_readable();
}

std::int32_t Stream::read_kept(const iovec* pieces, std::size_t count, Take take, std::size_t* got,
                               std::uint64_t* place) {
  if (closed()) return -EBADF;
  Kept* kept = pop_kept();
  if (kept == nullptr) return -EAGAIN;
  *place = kept->place;
  std::int32_t status = kept->read(pieces, count, take == Take::kPeek, got);
  if (take == Take::kRead) kept->place += *got;  // of what is left
  if (kept->empty()) {
    kept->drop();
  } else {
    push_kept(kept);
  }
  return status;
}

std::int32_t Stream::shutdown(std::uint32_t how) {
  static constexpr int kHow[] = {0, SHUT_RD, SHUT_WR, SHUT_RDWR};
  if (how < NORIA_SHUTDOWN_READ || how > NORIA_SHUTDOWN_BOTH) return -EINVAL;
  Use use(*this);
  if (!use) return -EBADF;
  return ::shutdown(fd(), kHow[how]) == 0 ? NORIA_OK : -errno;
}

std::int32_t Stream::local_address(noria_address* out) const {
  Use use(*this);
  if (!use) return -EBADF;
  SocketAddress address;
  address.size = sizeof address.storage;
  if (::getsockname(fd(), reinterpret_cast<sockaddr*>(&address.storage), &address.size) != 0) return -errno;
  return from_system(address, *out);
}

std::int32_t Stream::peer_address(noria_address* out) const {
  Use use(*this);
  if (!use) return -EBADF;
  SocketAddress address;
  address.size = sizeof address.storage;
  if (::getpeername(fd(), reinterpret_cast<sockaddr*>(&address.storage), &address.size) != 0) return -errno;
  return from_system(address, *out);
}

std::int32_t Stream::into_fd(std::int32_t* out) {
  if (closed()) return -EBADF;
  // ORDER: acquire, pairs with copy_ends.
  if (copies_.load(NORIA_ACQUIRE) != 0) return -EBUSY;
  if (!reads_.idle() || !writes_.idle() || has_kept()) return -EBUSY;  // in this order (O3)
  std::int32_t error = take_fd(out);
  if (error == 0) unref();
  return error;
}

void Stream::drop() {
  close();
  unref();
}

}  // namespace noria::net
