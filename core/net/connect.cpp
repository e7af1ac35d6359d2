#include "net/connect.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.hpp"
#include "net/listener.hpp"
#include "net/lookup.hpp"
#include "net/stepper.hpp"
#include "net/stream.hpp"
#include "timer/timer.hpp"

namespace noria::net {

namespace {

// References besides the owner's and the operation's: one each for the armed timer, the look-up and the queued waiter, given
// back by what ends them.
struct ConnectOp : Stepper {
  enum Signal : std::uint32_t { kStart = 1, kCancel = 2, kTimeout = 4, kLookedUp = 8, kWritable = 16 };
  struct Deadline : timer::Timer {
    explicit Deadline(ConnectOp* of) : Timer(&kTimerOps), op(of) {}
    ConnectOp* const op;
  };
  struct Ready : reactor::Waiter {
    ConnectOp* op;
  };
  struct Name : Lookup {
    explicit Name(ConnectOp* of) : Lookup(looked_up), op(of) {}
    ConnectOp* const op;
  };
  static const task::FutureOps kOps;
  static const timer::TimerOps kTimerOps;

  ConnectOp(runtime::Core* owner, const noria_tcp_connect_options& wanted)
      : Stepper(&kOps, owner, step), options(wanted), deadline(this), name(this) {
    ready.interest = NORIA_WRITABLE;
    ready.fire = fired;
    ready.op = this;
  }

  const noria_tcp_connect_options options;
  HostPort host;            // immutable once started, like the next three
  noria_address numeric{};  // family 0: the host is a name
  SocketAddress local;
  bool has_local = false;

  // Whoever steps.
  bool over = false;
  bool looking_up = false;
  std::int32_t last_error = -NORIA_ERESOLVE;
  const addrinfo* next = nullptr;
  Stream* stream = nullptr;  // connecting, then the result
  Deadline deadline;
  Ready ready;
  Name name;

  void start();
  void found();
  void reported();
  void try_next();
  std::int32_t try_one(const SocketAddress& address);
  std::int32_t prepare(int fd, const SocketAddress& address) const;
  std::int32_t progress();
  bool met_itself(const noria_address& peer) const;
  void end(std::int32_t status);

  static ConnectOp* of(task::Future* future) { return static_cast<ConnectOp*>(future); }
  static void step(Stepper* stepper, std::uint32_t signals);
  static void cancel(task::Future* future) { of(future)->signal(kCancel); }
  static void fired(reactor::Waiter* waiter) {
    ConnectOp* op = static_cast<Ready*>(waiter)->op;
    op->signal(kWritable);
    op->release();
  }
  static void looked_up(Lookup* lookup) {
    ConnectOp* op = static_cast<Name*>(lookup)->op;
    op->signal(kLookedUp);
    lookup->let_clock_go();
    op->release();
  }
  static void result(task::Future* future, void* out) {
    *static_cast<noria_tcp**>(out) = to_c(std::exchange(of(future)->stream, nullptr));
  }
  static void destroy(task::Future* future) {
    if (of(future)->stream != nullptr) of(future)->stream->drop();
    of(future)->~ConnectOp();
  }
};

const task::FutureOps ConnectOp::kOps = {cancel, result, destroy, sizeof(noria_tcp*), false, "tcp connect"};
const timer::TimerOps ConnectOp::kTimerOps = {
    [](timer::Timer* timer) noexcept { static_cast<Deadline*>(timer)->op->signal(kTimeout); },
    [](timer::Timer* timer) noexcept { static_cast<Deadline*>(timer)->op->release(); },
};

// What came in comes before a deadline that passed meanwhile.
void ConnectOp::step(Stepper* stepper, std::uint32_t signals) {
  auto* self = static_cast<ConnectOp*>(stepper);
  if (!self->over && (signals & kCancel) != 0) self->end(-ECANCELED);
  if (!self->over && (signals & kStart) != 0) self->start();
  if (!self->over && (signals & kLookedUp) != 0) self->found();
  if (!self->over && (signals & kWritable) != 0) self->reported();
  if (!self->over && (signals & kTimeout) != 0) self->end(-ETIMEDOUT);
}

void ConnectOp::found() {
  looking_up = false;
  if (name.status() != 0) return end(name.status());
  next = name.first();
  try_next();
}

void ConnectOp::reported() {
  std::int32_t status = progress();
  if (status == NORIA_PENDING) return;
  if (status == NORIA_OK || next == nullptr) return end(status);
  last_error = status;
  try_next();
}

// The look-up begins before the deadline is armed: paused time would jump to it at once.
void ConnectOp::start() {
  if (numeric.family == 0) {
    looking_up = true;
    ref();
    if (std::int32_t error = name.start(*core(), host, false); error != 0) {
      looking_up = false;
      release();
      return end(error);
    }
  }
  if (options.timeout_ns != 0 && options.timeout_ns != NORIA_FOREVER) {
    ref();
    if (!core()->timer_arm(deadline, saturating_add(core()->now_ns(), options.timeout_ns))) {
      release();
      return end(-NORIA_ESHUTDOWN);
    }
  }
  if (numeric.family == 0) return;
  SocketAddress address;
  std::int32_t status = to_system(numeric, address);
  if (status == 0) status = try_one(address);
  if (status != NORIA_PENDING) end(status);
}

void ConnectOp::try_next() {
  while (next != nullptr) {
    SocketAddress address;
    to_system(*std::exchange(next, next->ai_next), address);
    std::int32_t status = try_one(address);
    if (status == NORIA_PENDING) return;
    if (status == NORIA_OK) return end(NORIA_OK);
    last_error = status;
  }
  end(last_error);
}

std::int32_t ConnectOp::prepare(int fd, const SocketAddress& address) const {
  int one = 1;
  if (options.delay == 0) (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (!has_local) return 0;
  if (local.family() != address.family()) return -EAFNOSUPPORT;
  // With port 0 the source port is chosen by connect, where it need not be unique: else 28,000 connections use them up.
  (void)::setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
  return ::bind(fd, local.get(), local.size) == 0 ? 0 : -errno;
}

// NORIA_PENDING: it is on its way, `ready` waits or has been told.
std::int32_t ConnectOp::try_one(const SocketAddress& address) {
  if (stream != nullptr) std::exchange(stream, nullptr)->drop();
  int fd = ::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -errno;
  std::int32_t status = prepare(fd, address);
  bool connected = false;
  if (status == 0) {
    connected = ::connect(fd, address.get(), address.size) == 0;
    // A signal does not stop a connect: it goes on behind it.
    if (!connected && errno != EINPROGRESS && errno != EINTR) status = -errno;
  }
  if (status == 0) status = Stream::make(core(), fd, Stream::Kind::kTcp, connected ? Stream::kWorthATry : 0, &stream);
  if (status != 0) {
    ::close(fd);
    return status;
  }
  if (connected) return progress();
  ref();
  if (!stream->wait(ready)) {
    release();
    return progress();
  }
  return NORIA_PENDING;
}

// A port of the range that the kernel takes source ports from may be given to the very socket that connects to it, and then
// connects to itself. Nobody listens there.
bool ConnectOp::met_itself(const noria_address& peer) const {
  noria_address own;
  return stream->local_address(&own) == NORIA_OK && own.port == peer.port && own.family == peer.family &&
         std::memcmp(own.ip, peer.ip, sizeof own.ip) == 0;
}

// The socket was reported: connected, failed, or reported for nothing.
std::int32_t ConnectOp::progress() {
  for (;;) {
    if (stream->gone()) return -NORIA_ESHUTDOWN;
    reactor::Readiness seen = stream->look();
    std::int32_t error = 0;
    if (std::int32_t failed = stream->get_option(NORIA_TCP_ERROR, &error); failed != 0) return failed;
    if (error != 0) return error;
    noria_address peer;
    std::int32_t connected = stream->peer_address(&peer);
    if (connected == NORIA_OK) return met_itself(peer) ? -ECONNREFUSED : NORIA_OK;
    if (connected != -ENOTCONN) return connected;
    stream->clear(seen, seen.events);
    ref();
    if (stream->wait(ready)) return NORIA_PENDING;
    release();
  }
}

void ConnectOp::end(std::int32_t status) {
  over = true;
  if (deadline.armed()) (void)core()->timer_cancel(deadline);
  if (looking_up && name.cancel(*core())) release();
  if (stream != nullptr && stream->forget(ready)) release();
  if (status != NORIA_OK && stream != nullptr) std::exchange(stream, nullptr)->drop();
  finish_if_claimed(status);
}

struct ListenOp : Stepper {
  enum Signal : std::uint32_t { kStart = 1, kCancel = 2, kLookedUp = 4 };
  struct Name : Lookup {
    explicit Name(ListenOp* of) : Lookup(looked_up), op(of) {}
    ListenOp* const op;
  };
  static const task::FutureOps kOps;

  ListenOp(runtime::Core* owner, const noria_tcp_listen_options& wanted)
      : Stepper(&kOps, owner, step), options(wanted), name(this) {}

  const noria_tcp_listen_options options;
  HostPort host;
  noria_address numeric{};
  bool over = false;
  bool looking_up = false;
  Listener* listener = nullptr;
  Name name;

  void start() {
    SocketAddress address;
    std::int32_t status = 0;
    if (numeric.family != 0) {
      status = to_system(numeric, address);
      return end(status != 0 ? status : Listener::listen(core(), address, options, &listener));
    }
    looking_up = true;
    ref();
    status = name.start(*core(), host, true);
    if (status == 0) return;
    looking_up = false;
    release();
    end(status);
  }
  void looked_up() {
    looking_up = false;
    std::int32_t status = name.status();
    for (const addrinfo* at = name.first(); at != nullptr && listener == nullptr; at = at->ai_next) {
      SocketAddress address;
      to_system(*at, address);
      status = Listener::listen(core(), address, options, &listener);
    }
    end(status);
  }
  void end(std::int32_t status) {
    over = true;
    if (looking_up && name.cancel(*core())) release();
    finish_if_claimed(status);
  }

  static ListenOp* of(task::Future* future) { return static_cast<ListenOp*>(future); }
  static void step(Stepper* stepper, std::uint32_t signals) {
    auto* self = static_cast<ListenOp*>(stepper);
    if (self->over) return;
    if ((signals & kCancel) != 0) return self->end(-ECANCELED);
    if ((signals & kStart) != 0) self->start();
    if (!self->over && (signals & kLookedUp) != 0) self->looked_up();
  }
  static void cancel(task::Future* future) { of(future)->signal(kCancel); }
  static void looked_up(Lookup* lookup) {
    ListenOp* op = static_cast<Name*>(lookup)->op;
    op->signal(kLookedUp);
    lookup->let_clock_go();
    op->release();
  }
  static void result(task::Future* future, void* out) {
    *static_cast<noria_tcp_listener**>(out) = to_c(std::exchange(of(future)->listener, nullptr));
  }
  static void destroy(task::Future* future) {
    if (of(future)->listener != nullptr) of(future)->listener->drop();
    of(future)->~ListenOp();
  }
};

const task::FutureOps ListenOp::kOps = {cancel, result, destroy, sizeof(noria_tcp_listener*), false, "tcp listen"};

// The host is a number or a name; a number in brackets only may be IPv6.
std::int32_t read_host(const char* text, HostPort& host, noria_address& numeric) {
  if (std::int32_t error = split_host(text, host); error != 0) return error;
  if (to_numeric(host, numeric) == 0) return 0;
  numeric = noria_address{};
  return host.bracketed ? -EINVAL : 0;
}

}  // namespace

std::int32_t connect(runtime::Core* core, const char* address, const noria_tcp_connect_options& options,
                     noria_future** out) {
  HostPort host;
  noria_address numeric;
  noria_address local;
  if (std::int32_t error = read_host(address, host, numeric); error != 0) return error;
  if (options.local != nullptr && parse_address(options.local, local) != 0) return -EINVAL;
  if (options.timeout_ns != 0 && !core->time_enabled()) return -NORIA_ENODRIVER;
  auto* op = core->make_future<ConnectOp>(options);
  if (op == nullptr) return -ENOMEM;
  op->host = host;
  op->numeric = numeric;
  op->has_local = options.local != nullptr && to_system(local, op->local) == 0;
  *out = reinterpret_cast<noria_future*>(static_cast<task::Future*>(op));
  op->signal(ConnectOp::kStart);
  return 0;
}

std::int32_t listen(runtime::Core* core, const char* address, const noria_tcp_listen_options& options,
                    noria_future** out) {
  HostPort host;
  noria_address numeric;
  if (std::int32_t error = read_host(address, host, numeric); error != 0) return error;
  auto* op = core->make_future<ListenOp>(options);
  if (op == nullptr) return -ENOMEM;
  op->host = host;
  op->numeric = numeric;
  *out = reinterpret_cast<noria_future*>(static_cast<task::Future*>(op));
  op->signal(ListenOp::kStart);
  return 0;
}

}  // namespace noria::net
