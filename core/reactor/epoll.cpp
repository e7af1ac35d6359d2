#include "reactor/epoll.hpp"

#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>

#include <noria/runtime.h>
#include "base/allocator.hpp"
#include "base/assert.hpp"
#include "base/clock.hpp"

namespace noria::reactor {

namespace {

constexpr std::uint32_t kInterest = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET;

std::uint64_t pack(std::uint32_t fd, std::uint32_t generation) { return std::uint64_t{generation} << 32 | fd; }

// What the kernel's bits mean to a source. A hang-up ends both directions; an error alone is how the writing end of a pipe
// learns that its reader has gone.
std::uint32_t translate(std::uint32_t bits) {
  std::uint32_t events = 0;
  if ((bits & EPOLLIN) != 0) events |= NORIA_READABLE;
  if ((bits & EPOLLOUT) != 0) events |= NORIA_WRITABLE;
  if ((bits & EPOLLPRI) != 0) events |= NORIA_PRIORITY | NORIA_READABLE;
  if ((bits & EPOLLRDHUP) != 0) events |= NORIA_READ_CLOSED;
  if ((bits & EPOLLHUP) != 0) events |= NORIA_READ_CLOSED | NORIA_WRITE_CLOSED;
  if ((bits & EPOLLERR) != 0) {
    events |= NORIA_ERROR;
    if ((bits & EPOLLOUT) != 0 || bits == EPOLLERR) events |= NORIA_WRITE_CLOSED;
  }
  return events;
}

// The whole milliseconds that are not less than `timeout_ns`: rounding down would make a sleeper spin through the last one.
int to_ms_up(std::uint64_t timeout_ns) {
  if (timeout_ns == kForEver) return -1;
  std::uint64_t ms = timeout_ns / kNsPerMs + (timeout_ns % kNsPerMs != 0 ? 1 : 0);
  return ms > INT_MAX ? INT_MAX : static_cast<int>(ms);
}

}  // namespace

SourceTable::~SourceTable() {
  for (std::size_t chunk = 0; chunk < size_; ++chunk) {
    raw_free(chunks_[chunk], kChunk * sizeof(Entry), alignof(Entry));
  }
  raw_free(chunks_, size_ * sizeof(Entry*), alignof(Entry*));
}

SourceTable::Entry* SourceTable::find_or_make(std::uint32_t fd) {
  std::size_t chunk = fd / kChunk;
  if (chunk >= size_) {
    std::size_t size = chunk + 1 > 2 * size_ ? chunk + 1 : 2 * size_;
    auto** grown = static_cast<Entry**>(raw_alloc(size * sizeof(Entry*), alignof(Entry*)));
    if (grown == nullptr) return nullptr;
    std::memset(grown, 0, size * sizeof(Entry*));
    if (size_ != 0) std::memcpy(grown, chunks_, size_ * sizeof(Entry*));
    raw_free(chunks_, size_ * sizeof(Entry*), alignof(Entry*));
    chunks_ = grown;
    size_ = size;
  }
  if (chunks_[chunk] == nullptr) {
    void* room = raw_alloc(kChunk * sizeof(Entry), alignof(Entry));
    if (room == nullptr) return nullptr;
    std::memset(room, 0, kChunk * sizeof(Entry));
    chunks_[chunk] = static_cast<Entry*>(room);
  }
  return &chunks_[chunk][fd % kChunk];
}

std::int32_t Epoll::create(std::unique_ptr<Reactor>& out) {
  std::int32_t epoll_fd = ::epoll_create1(EPOLL_CLOEXEC);
  if (epoll_fd < 0) return -errno;
  std::int32_t wake_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event event{EPOLLIN | EPOLLET, {.u64 = kWakeData}};
  Epoll* epoll = nullptr;
  std::int32_t error = 0;
  if (wake_fd < 0 || ::epoll_ctl(epoll_fd, EPOLL_CTL_ADD, wake_fd, &event) != 0) {
    error = -errno;
  } else if ((epoll = new (std::nothrow) Epoll(epoll_fd, wake_fd)) == nullptr) {
    error = -ENOMEM;
  }
  if (error != 0) {
    if (wake_fd >= 0) ::close(wake_fd);
    ::close(epoll_fd);
    return error;
  }
  live_add(Live::kDescriptors, 2);
  out.reset(epoll);
  return 0;
}

Epoll::~Epoll() {
  NORIA_ASSERT(sources() == 0, "a reactor outlives its sources");
  ::close(wake_fd_);
  ::close(epoll_fd_);
  live_add(Live::kDescriptors, -2);
}

std::uint32_t Epoll::kind() const { return NORIA_REACTOR_EPOLL; }

// ORDER: relaxed, a number for reports.
std::uint64_t Epoll::sources() const { return count_.load(NORIA_RELAXED); }

int Epoll::wait(std::uint64_t timeout_ns) {
  if (timeout_ns != 0 && timeout_ns != kForEver && !no_pwait2_) {
#ifdef SYS_epoll_pwait2
    timespec timeout;
    timeout.tv_sec = static_cast<time_t>(timeout_ns / kNsPerSec);
    timeout.tv_nsec = static_cast<long>(timeout_ns % kNsPerSec);
    long count = ::syscall(SYS_epoll_pwait2, epoll_fd_, events_, kBatch, &timeout, nullptr, std::size_t{0});
    if (count >= 0 || (errno != ENOSYS && errno != EPERM)) return static_cast<int>(count);
#endif
    no_pwait2_ = true;
  }
  return ::epoll_wait(epoll_fd_, events_, kBatch, to_ms_up(timeout_ns));
}

// Fills found_ from the first `count` of events_, with a reference each; answers how many.
int Epoll::look_up(int count) {
  int found = 0;
  sync::MutexLock lock(lock_);
  for (int i = 0; i < count; ++i) {
    std::uint64_t data = events_[i].data.u64;
    if (data == kWakeData) continue;
    SourceTable::Entry* entry = table_.find(static_cast<std::uint32_t>(data));
    if (entry == nullptr || entry->source == nullptr || entry->generation != data >> 32) continue;
    entry->source->ref();
    found_[found++] = {entry->source, translate(events_[i].events)};
  }
  return found;
}

int Epoll::poll(std::uint64_t timeout_ns) {
  if (timeout_ns != 0) {
    // ORDER: acq_rel, pairs with unpark: what was made ready before it is seen by this poller.
    if (owed_ || unparked_.exchange(0, NORIA_ACQ_REL) != 0) timeout_ns = 0;
    owed_ = false;
    if (timeout_ns == 0) return poll(0);
  }
  int count = wait(timeout_ns);
  int error = count < 0 ? errno : 0;
  // ORDER: relaxed look, acq_rel exchange: as above. One that is missed is there for the next poll.
  if (unparked_.load(NORIA_RELAXED) != 0 && unparked_.exchange(0, NORIA_ACQ_REL) != 0) owed_ = timeout_ns == 0;
  int found = count > 0 ? look_up(count) : 0;
  {
    Fired fired;
    take_deferred(fired);
    for (int i = 0; i < found; ++i) {
      found_[i].source->report(found_[i].events, fired);
      if (fired.crowded()) fired.run();
    }
  }
  for (int i = 0; i < found; ++i) found_[i].source->unref();
  return error == 0 || error == EINTR ? found : -error;
}

void Epoll::unpark() {
  // ORDER: acq_rel, publishes what the caller made ready; a 1 there means that an edge is on its way already.
  if (unparked_.exchange(1, NORIA_ACQ_REL) != 0) return;
  const std::uint64_t one = 1;
  // It cannot fail: the counter would have to overflow. EINTR does not come from a write that cannot wait.
  ssize_t written = ::write(wake_fd_, &one, sizeof one);
  NORIA_ASSERT(written == sizeof one, "the wake descriptor takes a write");
}

std::int32_t Epoll::add(Source& source) {
  if (source.fd() < 0) return -EBADF;
  auto fd = static_cast<std::uint32_t>(source.fd());
  Source* closed = nullptr;
  {
    sync::MutexLock lock(lock_);
    SourceTable::Entry* entry = table_.find_or_make(fd);
    if (entry == nullptr) return -ENOMEM;
    epoll_event event{kInterest, {.u64 = pack(fd, entry->generation + 1)}};
    if (::epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, source.fd(), &event) != 0) {
      int error = errno;
      if (error != EEXIST || entry->source != nullptr) return -error;
      if (::epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, source.fd(), &event) != 0) return -errno;
    }
    closed = entry->source;
    if (closed != nullptr) closed->ref();
    entry->source = &source;
    ++entry->generation;
    // ORDER: relaxed, a number for reports, written under the lock.
    if (closed == nullptr) count_.store(count_.load(NORIA_RELAXED) + 1, NORIA_RELAXED);
  }
  if (closed != nullptr) {
    closed->close();
    closed->unref();
  }
  return 0;
}

void Epoll::remove(Source& source) {
  {
    sync::MutexLock lock(lock_);
    SourceTable::Entry* entry = table_.find(static_cast<std::uint32_t>(source.fd()));
    if (entry != nullptr && entry->source == &source) {
      entry->source = nullptr;
      // It fails when the caller has closed the descriptor: then there is nothing to take out.
      ::epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, source.fd(), nullptr);
      // ORDER: relaxed, a number for reports, written under the lock.
      count_.store(count_.load(NORIA_RELAXED) - 1, NORIA_RELAXED);
    }
  }
  source.close();
}

void Epoll::close_all() {
  // Waking under the lock is not allowed, so a few at a time; who is gone already is passed over.
  Source* some[kBatch / 4];
  for (int count = 1; count != 0;) {
    count = 0;
    {
      sync::MutexLock lock(lock_);
      table_.for_each([&](Source& source) {
        if (count == kBatch / 4 || (source.look().events & kGone) != 0) return;
        source.ref();
        some[count++] = &source;
      });
    }
    for (int i = 0; i < count; ++i) {
      some[i]->close();
      some[i]->unref();
    }
  }
}

}  // namespace noria::reactor
