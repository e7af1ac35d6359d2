// epoll.hpp: the reactor on Linux's epoll, edge-triggered.
//
// Stale events. The kernel may hand out an event that was collected before the source was removed, or one of a
// description that lives on in a duplicate after its descriptor was closed. So an event carries no pointer but the
// descriptor's number and the generation of its registration. The poller looks the whole batch up in a table
// under lock_, takes a reference of each source that is still registered under just that generation, and drops the
// references when the batch is over. remove() empties the entry under the same lock, so:
//   - a source found by the poller is alive until the batch is over, whatever others do meanwhile;
//   - a source removed before the look-up is not found, nor is another that got its number since;
//   - nothing waits for anybody, and memory goes back at once.
// A generation is 32 bits wide; to be mistaken, 2^32 registrations of one number would have to fit into one batch.
//
// Closed behind our back. When a number is registered anew and the kernel agrees, an entry still there belongs to a
// descriptor that was closed: that source is told (-EBADF), and its later remove() leaves the number alone.
// When the kernel says that it exists and no source of ours has the number, it is the leftover of a description that
// came back under its old number: the registration is taken over.
//
// Threads:    see reactor.hpp.
// Invariants: E1 table_, counts: under lock_. E2 events_, found_, owed_: the poller's. E3 the wake descriptor is registered
//             edge-triggered and never read: each write is an edge, pending until it is reported.
#pragma once

#include <sys/epoll.h>

#include "reactor/reactor.hpp"
#include "sync/mutex.hpp"

namespace noria::reactor {

// Descriptor number -> the source registered for it. Chunks come with their first use and stay.
class SourceTable {
 public:
  struct Entry {
    Source* source;
    std::uint32_t generation;
  };

  SourceTable() = default;
  SourceTable(const SourceTable&) = delete;
  SourceTable& operator=(const SourceTable&) = delete;
  ~SourceTable();

  // nullptr: nothing was ever there.
  Entry* find(std::uint32_t fd) const {
    std::uint32_t chunk = fd / kChunk;
    return chunk < size_ && chunks_[chunk] != nullptr ? &chunks_[chunk][fd % kChunk] : nullptr;
  }
  // nullptr: out of memory.
  Entry* find_or_make(std::uint32_t fd);

  template <typename F>
  void for_each(F&& visit) const {
    for (std::size_t chunk = 0; chunk < size_; ++chunk) {
      if (chunks_[chunk] == nullptr) continue;
      for (std::size_t i = 0; i < kChunk; ++i) {
        if (chunks_[chunk][i].source != nullptr) visit(*chunks_[chunk][i].source);
      }
    }
  }

 private:
  static constexpr std::uint32_t kChunk = 256;

  Entry** chunks_ = nullptr;
  std::size_t size_ = 0;
};

class Epoll final : public Reactor {
 public:
  [[nodiscard]] static std::int32_t create(std::unique_ptr<Reactor>& out);
  ~Epoll() override;

  [[nodiscard]] int poll(std::uint64_t timeout_ns) override;
  void unpark() override;
  std::int32_t fd() const override { return epoll_fd_; }
  std::uint32_t kind() const override;
  [[nodiscard]] std::int32_t add(Source& source) override;
  void remove(Source& source) override;
  std::uint64_t sources() const override;

 private:
  void close_all() override;

  static constexpr int kBatch = 256;
  static constexpr std::uint64_t kWakeData = UINT64_MAX;

  Epoll(std::int32_t epoll_fd, std::int32_t wake_fd) : epoll_fd_(epoll_fd), wake_fd_(wake_fd) {}

  int wait(std::uint64_t timeout_ns);
  int look_up(int count) NORIA_EXCLUDES(lock_);

  const std::int32_t epoll_fd_;
  const std::int32_t wake_fd_;
  bool owed_ = false;       // the poller's: a poll that did not sleep has seen an unpark
  bool no_pwait2_ = false;  // the poller's: the kernel has no epoll_pwait2, or it is forbidden

  struct Found {
    Source* source;
    std::uint32_t events;
  };
  epoll_event events_[kBatch];  // the poller's
  Found found_[kBatch];         // the poller's

  Atomic<std::uint32_t> unparked_{0};  // 1: an edge is, or is about to be, on the wake descriptor
  Atomic<std::uint64_t> count_{0};     // written under lock_

  sync::Mutex lock_;
  SourceTable table_ NORIA_GUARDED_BY(lock_);
};

}  // namespace noria::reactor
