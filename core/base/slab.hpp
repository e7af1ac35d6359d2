// slab.hpp: the memory of one worker: slots for tasks, futures and the rest, freed from anywhere.
//
// Chunks of 64 KiB, aligned to 64 KiB, each of one kind and one slot size: masking a slot's address
// finds its chunk, and there the owner. What is larger than the largest class, or aligned more than
// a cache line, gets a chunk of its own, which goes back to the allocator when it is freed.
//
//   slot   | life word (8) | free list's link (8) | ... |     the object lies over all of it
//
// The life word is zero while the slot is free, and never zero while the object in it is live: it
// is the object's own state or count, which the object publishes last. So a walker may look at any
// slot at any time. The word is made with the slot and stays an atomic for as long as the chunk is:
// an object begins with a LifeWord, whose constructor leaves the eight bytes alone.
//
// Threads:    alloc, collect: the owner (one thread, or whoever holds the caller's lock).
//             free: any; it is local on the thread that has called set_current, else lock-free.
//             for_each_live: any thread, beside alloc and free.
// Invariants: S1 a chunk is in the slab's list from its making to its end; both happen under lock_.
//             S2 a chunk's kind and class change, and it leaves the list, only while nobody walks.
//             S3 the hot line of a chunk is written by the owner alone; frees by others go through
//             the slab's FreeList (or, for chunks of one slot, through lock_).
//             S4 a chunk in no list of its bin is the bin's current one, or full, or empty.
// Lifetime:   from create() until after orphan(), when the last slot has been freed.
//             Of empty chunks at most kMaxEmpty (4 MiB) are kept, the rest goes back at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "base/atomic.hpp"
#include "base/free_list.hpp"
#include "base/platform.hpp"
#include "base/poison.hpp"
#include "base/spin_lock.hpp"

namespace noria {

enum class SlotKind : std::uint8_t { kTask, kFuture, kOther };
inline constexpr std::size_t kSlotKinds = 3;

inline constexpr std::size_t kChunkSize = 64 * 1024;  // and alignment
// What is asked for. glibc looks for an aligned piece in one of both sizes together and a header: a little less than two chunks stays
// below its threshold for mappings of their own, and chunks lie side by side, not 128 KiB apart.
inline constexpr std::size_t kChunkMemory = kChunkSize - 128;
// 120 is for what has no need to begin with a cache line: a future and a timer.
inline constexpr std::size_t kSlotSizes[] = {64, 120, 128, 192, 256, 384, 512, 768, 1024};
inline constexpr std::size_t kSlotClasses = sizeof kSlotSizes / sizeof kSlotSizes[0];
inline constexpr std::size_t kMaxSlotSize = kSlotSizes[kSlotClasses - 1];
inline constexpr std::size_t kMaxSlotAlign = kChunkSize / 2;

// The first member of every object that lives in a slot. Its constructor does nothing, because a
// walker may be reading the word: it is zero until the object stores its state there.
class LifeWord {
 public:
  LifeWord() noexcept {}  // NOLINT: leaves the bytes alone on purpose
  LifeWord(const LifeWord&) = delete;
  LifeWord& operator=(const LifeWord&) = delete;

  Atomic<std::uint64_t>& word() noexcept { return *std::launder(reinterpret_cast<Atomic<std::uint64_t>*>(bytes_)); }
  const Atomic<std::uint64_t>& word() const noexcept {
    return *std::launder(reinterpret_cast<const Atomic<std::uint64_t>*>(bytes_));
  }

 private:
  alignas(8) std::byte bytes_[sizeof(Atomic<std::uint64_t>)];
};

struct FreeSlot {
  Atomic<std::uint64_t> life;
  FreeSlot* next;
};

struct Chunk {
  enum class State : std::uint8_t { kCurrent, kPartial, kFull, kEmpty, kSingle };

  // First line: read by every free, written only while no slot is out (and under lock_, S2).
  class Slab* home;  // whose thread may free here without a CAS; null for a chunk of one slot
  class Slab* slab;
  std::size_t size;   // of the whole chunk, for the allocator
  std::size_t align;  // likewise
  std::uint32_t slot_size;
  std::uint32_t first_slot;  // offset from the chunk's start
  std::uint32_t capacity;
  SlotKind kind;
  std::uint8_t slot_class;
  Chunk* list_next;  // the slab's list (S1)

  // Second line: the owner's. `used` and `state` lie in different words: a free stores one and reads both at once, and a load that
  // is wider than the store before it waits for the store to reach the cache.
  alignas(kCacheLine) FreeSlot* free;
  std::uint32_t used;
  std::uint32_t handed;  // slots given out by address since the chunk was empty; those behind are not in the free list
  Chunk* next;           // in the bin's partial list, the slab's empty list, or the list of deferred ends
  Chunk* prev;           // in the bin's partial list
  Chunk* list_prev;      // the slab's list (S1), no walker reads it
  // Slots that have a life word; walkers look no further. Grows lazily: memory is touched when used.
  Atomic<std::uint32_t> carved;
  State state;

  FreeSlot* slot(std::uint32_t index) noexcept {
    return reinterpret_cast<FreeSlot*>(reinterpret_cast<char*>(this) + first_slot + std::size_t{index} * slot_size);
  }
  static Chunk* of(const void* slot) noexcept {
    return reinterpret_cast<Chunk*>(reinterpret_cast<std::uintptr_t>(slot) & ~std::uintptr_t{kChunkSize - 1});
  }
};

class Slab {
 public:
  using EmptyFn = void (*)(void* data);

  static constexpr std::size_t kMaxEmpty = 64;

  // Null where there is no memory. `on_empty(data)` is called once, on the thread that frees the
  // last slot after orphan() (or inside orphan()), when all memory of the slab has gone back.
  [[nodiscard]] static Slab* create(EmptyFn on_empty, void* data) noexcept;

  // Uninitialised room whose life word is zero, or null: no memory, or `align` above kMaxSlotAlign.
  [[nodiscard]] void* alloc(SlotKind kind, std::size_t size, std::size_t align) noexcept {
    if (NORIA_UNLIKELY(size > kMaxSlotSize || align > kCacheLine)) {
      return alloc_single(kind, size, align);
    }
    std::size_t slot_class = class_of(size, align);
    Chunk* chunk = bins_[static_cast<std::size_t>(kind)][slot_class].current;
    FreeSlot* slot = chunk->free;
    if (NORIA_UNLIKELY(slot == nullptr)) return alloc_slow(kind, slot_class);
    chunk->free = slot->next;
    __builtin_prefetch(slot->next, 1);  // its link is what the next alloc waits for; null is harmless
    // Those that need not begin with a line reach into the next one, or the one after it.
    if (slot_class == 1) prefetch_behind(slot->next);
    ++chunk->used;
    unpoison(slot, chunk->slot_size);
    return slot;
  }

  // Ends the object's memory; the object itself has been destroyed. Any thread, never blocks.
  static void free(void* p) noexcept {
    auto* slot = static_cast<FreeSlot*>(p);
    Chunk* chunk = Chunk::of(p);
    // ORDER: release, a walker that still sees the old state finds the object as it was left.
    slot->life.store(0, NORIA_RELEASE);
    Slab* home = chunk->home;
    if (NORIA_LIKELY(home != nullptr && home == t_current_)) return home->free_local(chunk, slot);
    free_elsewhere(chunk, slot);
  }

  // Thread-local: this thread is the owner of `slab` (null: of none) until it says otherwise. Not
  // for slabs that several threads allocate from under a lock.
  static void set_current(Slab* slab) noexcept { t_current_ = slab; }
  static Slab* current() noexcept { return t_current_; }

  // Owner: takes in what others have freed, so that idle workers hold no more than kMaxEmpty. Cheap
  // where there is nothing.
  void collect() noexcept {
    if (NORIA_UNLIKELY(freed_.maybe_filled() || pending_ != nullptr)) collect_all();
  }

  // Calls visit(void* slot) for each slot of `kind` whose life word was not zero a moment ago. By
  // then the object may have been freed: visit pins it through the word (raise the count unless it
  // is zero) before it looks further. visit may allocate from and free to this slab; slots that
  // come to life during the walk may be left out. Not beside or after orphan().
  template <typename F>
  void for_each_live(SlotKind kind, F&& visit) {
    Chunk* chunk = begin_walk();
    for (; chunk != nullptr; chunk = chunk->list_next) {
      if (chunk->kind != kind) continue;
      // ORDER: acquire, pairs with the release in carve(): the life words have been made.
      std::uint32_t carved = chunk->carved.load(NORIA_ACQUIRE);
      for (std::uint32_t i = 0; i < carved; ++i) {
        FreeSlot* slot = chunk->slot(i);
        // ORDER: acquire, pairs with the object's release when it publishes its state.
        if (slot->life.load(NORIA_ACQUIRE) != 0) visit(static_cast<void*>(slot));
      }
    }
    end_walk();
  }

  // Once: nobody allocates any more, and no thread but the caller has this slab as its current one.
  // The slab ends with its last slot, at once if there is none: touch it no more.
  void orphan() noexcept;

 private:
  struct Bin {
    Chunk* current;  // never null: at first a chunk with no slots
    Chunk* partial;  // chunks with room, doubly linked
  };

  static void prefetch_behind(const FreeSlot* slot) noexcept {
    // As a number: there may be no next slot.
    __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(slot) + kCacheLine), 1);
  }

  static constexpr std::size_t kUnaligned = 8;  // what the slots of 120 bytes are aligned to
  static constexpr std::uint8_t kClassOf[] = {0, 0, 2, 3, 4, 5, 5, 6, 6, 7, 7, 7, 7, 8, 8, 8, 8};
  static std::size_t class_of(std::size_t size, std::size_t align) noexcept {
    if (size > kSlotSizes[0] && size <= kSlotSizes[1] && align <= kUnaligned) return 1;
    return kClassOf[(size + 63) / 64];
  }

  Slab(EmptyFn on_empty, void* data) noexcept;
  ~Slab() = default;

  void free_local(Chunk* chunk, FreeSlot* slot) noexcept {
    poison(slot + 1, chunk->slot_size - sizeof(FreeSlot));
    slot->next = chunk->free;
    chunk->free = slot;
    --chunk->used;
    if (NORIA_UNLIKELY(chunk->state == Chunk::State::kFull)) return leave_full(chunk);
    if (NORIA_UNLIKELY(chunk->used == 0 && chunk->state == Chunk::State::kPartial)) {
      leave_partial(chunk);
    }
  }

  NORIA_APART static void free_elsewhere(Chunk* chunk, FreeSlot* slot) noexcept;
  void free_single(Chunk* chunk) noexcept;
  NORIA_APART void* alloc_slow(SlotKind kind, std::size_t slot_class) noexcept;
  NORIA_APART void* alloc_single(SlotKind kind, std::size_t size, std::size_t align) noexcept;

  void carve(Chunk* chunk) noexcept;
  void collect_some() noexcept;
  void collect_all() noexcept;
  Chunk* add_chunk(SlotKind kind, std::size_t slot_class) noexcept;
  Chunk* reuse_empty(SlotKind kind, std::size_t slot_class) noexcept;
  NORIA_APART void leave_full(Chunk* chunk) noexcept;
  NORIA_APART void leave_partial(Chunk* chunk) noexcept;
  void link(Chunk* chunk) noexcept NORIA_REQUIRES(lock_);
  void unlink(Chunk* chunk) noexcept NORIA_REQUIRES(lock_);
  Chunk* begin_walk() noexcept NORIA_EXCLUDES(lock_);
  void end_walk() noexcept NORIA_EXCLUDES(lock_);
  std::int64_t count_out() noexcept;
  void end() noexcept;

  static inline constinit thread_local Slab* t_current_ __attribute__((tls_model("initial-exec"))) = nullptr;

  // The owner's.
  Bin bins_[kSlotKinds][kSlotClasses];
  Chunk* empty_ = nullptr;  // kept for any bin, newest first
  std::size_t empty_count_ = 0;
  FreeSlot* pending_ = nullptr;  // freed by others, taken, not yet back in their chunks
  EmptyFn on_empty_;             // immutable
  void* data_;                   // immutable

  // Everyone's.
  alignas(kCacheLine) FreeList<FreeSlot> freed_;
  alignas(kCacheLine) SpinLock lock_;
  Chunk* chunks_ NORIA_GUARDED_BY(lock_) = nullptr;
  Chunk* deferred_ NORIA_GUARDED_BY(lock_) = nullptr;  // single chunks freed during a walk
  std::uint32_t walkers_ NORIA_GUARDED_BY(lock_) = 0;
  std::int64_t singles_ NORIA_GUARDED_BY(lock_) = 0;  // chunks of one slot that are out
  bool orphaned_ NORIA_GUARDED_BY(lock_) = false;
};

}  // namespace noria
