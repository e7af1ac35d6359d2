#include "net/listener.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/clock.hpp"
#include "task/context.hpp"

namespace noria::net {

namespace {

constexpr std::uint64_t kFirstRestNs = 10 * kNsPerMs;
constexpr std::uint64_t kLongestRestNs = kNsPerSec;
constexpr int kPassedOver = 64;  // connections that died in the backlog, in one try
constexpr int kTries = 4;        // in one poll

bool is_shortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM || error == ENOSPC;
}

// Says something about a connection that came and went, not about the listener: accept(2), "Error handling".
bool is_of_connection(int error) {
  switch (error) {
    case ECONNABORTED:
    case EPROTO:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EPERM:
    case ETIMEDOUT:
    case EINTR:
      return true;
    default:
      return false;
  }
}

void set_flag(int fd, int level, int name) {
  int one = 1;
  (void)::setsockopt(fd, level, name, &one, sizeof one);
}

}  // namespace

const timer::TimerOps Listener::kRestOps = {
    [](timer::Timer*) noexcept {},
    // Only now may the timer be armed again, so the rest ends here and not when it fires.
    [](timer::Timer* timer) noexcept { static_cast<RestTimer*>(timer)->listener->rest_over(); },
};

Listener::RestTimer::RestTimer(Listener* of) : Timer(&kRestOps), listener(of) {}

Listener::Listener(runtime::Core* core, std::int32_t fd)
    : Socket(core, fd, destroy), kind_(Stream::kind_of(fd)), accepts_(*this, NORIA_READABLE), timer_(this) {}

Listener::~Listener() {
  while (Stream* stream = pop_kept()) stream->drop();
  if (spare_fd_ >= 0) {
    ::close(spare_fd_);
    live_add(Live::kDescriptors, -1);
  }
}

void Listener::destroy(Source* source) {
  static_cast<Listener*>(source)->~Listener();
  Slab::free(source);
}

std::int32_t Listener::make(runtime::Core* core, std::int32_t fd, Listener** out) {
  void* slot = core->alloc(SlotKind::kOther, sizeof(Listener), alignof(Listener));
  if (slot == nullptr) return -ENOMEM;
  auto* listener = new (slot) Listener(core, fd);
  if (std::int32_t error = listener->open(); error != 0) {
    listener->unref();
    return error;
  }
  *out = listener;
  return 0;
}

std::int32_t Listener::from_fd(runtime::Core* core, std::int32_t fd, Listener** out) {
  int listens = 0;
  int type = 0;
  socklen_t size = sizeof listens;
  if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0) return -errno;
  if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0) return -errno;
  if (listens == 0 || type != SOCK_STREAM) return -EINVAL;
  if (std::int32_t error = set_nonblocking(fd); error != 0) return error;
  return make(core, fd, out);
}

std::int32_t Listener::listen(runtime::Core* core, const SocketAddress& address,
                              const noria_tcp_listen_options& options, Listener** out) {
  int fd = ::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -errno;
  set_flag(fd, SOL_SOCKET, SO_REUSEADDR);
  if (options.reuse_port != 0) set_flag(fd, SOL_SOCKET, SO_REUSEPORT);
  if (options.ipv6_only != 0 && address.family() == AF_INET6) set_flag(fd, IPPROTO_IPV6, IPV6_V6ONLY);
  int backlog =
      options.backlog == 0 ? 1024 : static_cast<int>(options.backlog < INT32_MAX ? options.backlog : INT32_MAX);
  std::int32_t error = 0;
  if (::bind(fd, address.get(), address.size) != 0 || ::listen(fd, backlog) != 0) error = -errno;
  if (error == 0) error = make(core, fd, out);
  if (error != 0) ::close(fd);
  return error;
}

std::int32_t Listener::adopt(std::int32_t fd, Stream** out) {
  if (kind_ == Stream::Kind::kTcp) set_flag(fd, IPPROTO_TCP, TCP_NODELAY);
  std::int32_t error = Stream::make(core(), fd, kind_, Stream::kWorthATry, out);
  SpinScope scope(lock_);
  if (error == 0) {
    delay_ns_ = 0;
  } else if (is_shortage(-error) && spare_fd_ < 0) {
    spare_fd_ = fd;
    live_add(Live::kDescriptors, 1);
    return error;
  } else {
    ::close(fd);
  }
  return error;
}

std::int32_t Listener::accept_once(Stream** out) {
  if (closed()) return -EBADF;
  // ORDER: acquire, pairs with keep.
  if (has_kept_.load(NORIA_ACQUIRE) && (*out = pop_kept()) != nullptr) return NORIA_READY;
  reactor::Readiness seen = look();
  // ORDER: acquire, pairs with rest_over: who sees its report sees the rest over.
  if (resting_.load(NORIA_ACQUIRE)) {
    clear(seen, reactor::ready_mask(NORIA_READABLE));
    return -EAGAIN;
  }
  Use use(*this);
  if (!use) return -EBADF;
  int error = 0;
  for (int tries = 0; tries < kPassedOver; ++tries) {
    int fd = -1;
    {
      SpinScope scope(lock_);
      std::swap(fd, spare_fd_);
    }
    if (fd >= 0) {
      live_add(Live::kDescriptors, -1);
    } else {
      fd = ::accept4(this->fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    }
    error = fd >= 0 ? -adopt(fd, out) : errno;
    if (error == 0) return NORIA_READY;
    if (!is_of_connection(error)) break;
  }
  if (is_shortage(error)) {
    clear(seen, reactor::ready_mask(NORIA_READABLE));
    rest();
    return -EAGAIN;
  }
  if (error == EAGAIN) clear(seen, reactor::ready_mask(NORIA_READABLE));
  return is_of_connection(error) ? -EAGAIN : -error;
}

std::int32_t Listener::poll_accept(const noria_cx* cx, Stream** out) {
  if (!task::budget_poll(cx)) return NORIA_PENDING;
  for (int tries = 0; tries < kTries; ++tries) {
    // ORDER: acquire, pairs with keep.
    if (!has_kept_.load(NORIA_ACQUIRE)) {
      reactor::Readiness seen;
      std::int32_t ready = poll_ready(NORIA_READABLE, cx, seen);
      if (ready == NORIA_PENDING) task::budget_restore(task::t_context);
      if (ready != NORIA_READY) return ready;
    }
    std::int32_t status = accept_once(out);
    if (status != -EAGAIN) return status;
  }
  task::budget_restore(task::t_context);
  cx->waker->vtable->wake_by_ref(cx->waker);  // a storm of connections that die: others get their turn
  return NORIA_PENDING;
}

void Listener::rest() {
  std::uint64_t delay_ns = 0;
  {
    SpinScope scope(lock_);
    // ORDER: release, written under the lock; pairs with the acquire in accept_once.
    if (resting_.exchange(true, NORIA_RELEASE)) return;
    delay_ns = delay_ns_ == 0 ? kFirstRestNs : delay_ns_;
    delay_ns_ = delay_ns * 2 < kLongestRestNs ? delay_ns * 2 : kLongestRestNs;
  }
  // ORDER: relaxed, a number for reports.
  rests_.fetch_add(1, NORIA_RELAXED);
  ref();
  if (!core()->timer_arm(timer_, saturating_add(core()->now_ns(), delay_ns))) {
    rest_over();
  } else if (closed()) {
    (void)core()->timer_cancel(timer_);
  }
}

void Listener::rest_over() {
  // ORDER: release, before the report: who sees that may try again.
  resting_.store(false, NORIA_RELEASE);
  report_readable();
  unref();
}

void Listener::keep(Stream* stream) {
  bool kept = false;
  {
    SpinScope scope(lock_);
    if (!gone()) {
      kept = true;
      Stream** place = &kept_;
      while (*place != nullptr) place = &(*place)->next_accepted;
      stream->next_accepted = nullptr;
      *place = stream;
      // ORDER: release, who is told of the connection finds it.
      has_kept_.store(true, NORIA_RELEASE);
    }
  }
  if (kept) {
    report_readable();
  } else {
    stream->drop();
  }
}

Stream* Listener::pop_kept() {
  SpinScope scope(lock_);
  Stream* stream = kept_;
  if (stream != nullptr) kept_ = stream->next_accepted;
  // ORDER: release, as in keep.
  has_kept_.store(kept_ != nullptr, NORIA_RELEASE);
  return stream;
}

std::int32_t Listener::address(noria_address* out) const {
  Use use(*this);
  if (!use) return -EBADF;
  SocketAddress address;
  address.size = sizeof address.storage;
  if (::getsockname(fd(), reinterpret_cast<sockaddr*>(&address.storage), &address.size) != 0) return -errno;
  return from_system(address, *out);
}

void Listener::drop() {
  close();
  // ORDER: acquire, pairs with rest(): the timer is armed, or rest() sees that the listener is closed.
  if (resting_.load(NORIA_ACQUIRE)) (void)core()->timer_cancel(timer_);
  unref();
}

namespace {

struct AcceptOp : Op {
  static const task::FutureOps kOps;

  AcceptOp(runtime::Core* owner, Listener* of, OpQueue* op_queue) : Op(&kOps, owner, op_queue, attempt), listener(of) {
    listener->ref();
  }

  Listener* const listener;
  Stream* stream = nullptr;  // until the result is taken

  static std::int32_t attempt(Op* op) {
    auto* self = static_cast<AcceptOp*>(op);
    std::int32_t status = self->listener->accept_once(&self->stream);
    return status == -EAGAIN ? NORIA_PENDING : status;
  }
  static void result(task::Future* future, void* out) {
    Stream* taken = std::exchange(static_cast<AcceptOp*>(future)->stream, nullptr);
    *static_cast<noria_tcp**>(out) = to_c(taken);
  }
  static void destroy(task::Future* future) {
    auto* self = static_cast<AcceptOp*>(future);
    if (self->stream != nullptr) self->listener->keep(self->stream);
    self->listener->unref();
    self->~AcceptOp();
  }
};

const task::FutureOps AcceptOp::kOps = {OpQueue::cancel, result, destroy, sizeof(noria_tcp*), false, "tcp accept"};

}  // namespace

std::int32_t Listener::accept(noria_future** out) {
  if (closed()) return -EBADF;
  auto* op = core()->make_future<AcceptOp>(this, &accepts_);
  if (op == nullptr) return -ENOMEM;
  *out = reinterpret_cast<noria_future*>(static_cast<task::Future*>(op));
  accepts_.submit(op);
  return 0;
}

}  // namespace noria::net
