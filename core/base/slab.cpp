#include "base/slab.hpp"

#include <algorithm>
#include <new>

#include "base/allocator.hpp"
#include "base/assert.hpp"

namespace noria {
namespace {

constexpr std::uint32_t kCarveBatch = 16;     // slots made at once: a few pages at most
constexpr std::uint32_t kCollectBatch = 256;  // slots taken in before an allocation goes on

static_assert(sizeof(Chunk) == 2 * kCacheLine);
static_assert(sizeof(FreeSlot) == 16);
static_assert(sizeof(LifeWord) == 8);

// What a bin starts with: no slot free, none to carve. Nobody writes to it.
constinit Chunk g_no_chunk{};

bool has_room(Chunk* chunk) noexcept { return chunk->free != nullptr || chunk->handed < chunk->capacity; }

void give_back(Chunk* chunk) noexcept {
  std::size_t size = chunk->size;
  std::size_t align = chunk->align;
  unpoison(chunk, size);
  raw_free(chunk, size, align);
}

// A chunk's memory changes its use: no slot is out, nobody walks.
void format(Chunk* chunk, SlotKind kind, std::size_t slot_class) noexcept {
  chunk->kind = kind;
  chunk->slot_class = static_cast<std::uint8_t>(slot_class);
  chunk->slot_size = static_cast<std::uint32_t>(kSlotSizes[slot_class]);
  chunk->first_slot = sizeof(Chunk);
  chunk->capacity = static_cast<std::uint32_t>((kChunkMemory - sizeof(Chunk)) / chunk->slot_size);
  chunk->free = nullptr;
  chunk->used = 0;
  chunk->handed = 0;
  // ORDER: relaxed, published by the lock under which the chunk is listed or changed.
  chunk->carved.store(0, NORIA_RELAXED);
}

}  // namespace

Slab::Slab(EmptyFn on_empty, void* data) noexcept : on_empty_(on_empty), data_(data) {
  for (auto& kind : bins_) {
    for (Bin& bin : kind) bin = Bin{&g_no_chunk, nullptr};
  }
}

Slab* Slab::create(EmptyFn on_empty, void* data) noexcept {
  void* room = raw_alloc(sizeof(Slab), alignof(Slab));
  return room == nullptr ? nullptr : new (room) Slab(on_empty, data);
}

// The bin's current chunk has no free slot. In this order: what others freed, room in the current
// chunk, chunks with room, empty chunks, memory.
void* Slab::alloc_slow(SlotKind kind, std::size_t slot_class) noexcept {
  Bin& bin = bins_[static_cast<std::size_t>(kind)][slot_class];
  collect_some();
  Chunk* chunk = bin.current;
  if (!has_room(chunk)) {
    Chunk* next = bin.partial;
    if (next != nullptr) {
      bin.partial = next->next;
      if (next->next != nullptr) next->next->prev = nullptr;
    } else {
      next = reuse_empty(kind, slot_class);
      if (next == nullptr) next = add_chunk(kind, slot_class);
      if (next == nullptr) return nullptr;
    }
    if (chunk != &g_no_chunk) chunk->state = Chunk::State::kFull;
    next->state = Chunk::State::kCurrent;
    bin.current = chunk = next;
  }
  if (chunk->free == nullptr) carve(chunk);
  FreeSlot* slot = chunk->free;
  NORIA_ASSERT(slot != nullptr, "a chunk that is made the current one has room");
  chunk->free = slot->next;
  ++chunk->used;
  unpoison(slot, chunk->slot_size);
  return slot;
}

// Lists the next few slots of a chunk whose free list is empty, in the order of their addresses (the processor reads ahead), and
// makes those that have not been made.
void Slab::carve(Chunk* chunk) noexcept {
  // ORDER: relaxed, the owner alone writes it.
  std::uint32_t carved = chunk->carved.load(NORIA_RELAXED);
  std::uint32_t begin = chunk->handed;
  std::size_t slot_size = chunk->slot_size;
  std::uint32_t end = begin + kCarveBatch < chunk->capacity ? begin + kCarveBatch : chunk->capacity;
  for (std::uint32_t i = std::max(begin, carved); i < end; ++i) {
    FreeSlot* slot = chunk->slot(i);
    unpoison(slot, sizeof(FreeSlot));
    new (static_cast<void*>(slot)) FreeSlot{0, nullptr};
    poison(slot + 1, chunk->slot_size - sizeof(FreeSlot));
  }
  FreeSlot* last = chunk->slot(end - 1);
  for (FreeSlot* slot = chunk->slot(begin); slot != last;) {
    auto* next = reinterpret_cast<FreeSlot*>(reinterpret_cast<char*>(slot) + slot_size);
    slot->next = next;
    slot = next;
  }
  last->next = nullptr;
  chunk->free = chunk->slot(begin);
  chunk->handed = end;
  // ORDER: release, publishes the life words to the acquire in for_each_live().
  if (end > carved) chunk->carved.store(end, NORIA_RELEASE);
}

// Puts slots that others have freed back into their chunks, a bounded number, so that no single
// allocation pays for all of them.
void Slab::collect_some() noexcept {
  if (pending_ == nullptr && freed_.maybe_filled()) pending_ = freed_.take();
  for (std::uint32_t n = 0; pending_ != nullptr && n < kCollectBatch; ++n) {
    FreeSlot* slot = pending_;
    pending_ = slot->next;
    free_local(Chunk::of(slot), slot);
  }
}

void Slab::collect_all() noexcept {
  while (pending_ != nullptr || freed_.maybe_filled()) collect_some();
}

Chunk* Slab::add_chunk(SlotKind kind, std::size_t slot_class) noexcept {
  void* room = raw_alloc(kChunkMemory, kChunkSize);
  if (room == nullptr) return nullptr;
  auto* chunk = new (room) Chunk{};
  chunk->home = chunk->slab = this;
  chunk->size = kChunkMemory;
  chunk->align = kChunkSize;
  format(chunk, kind, slot_class);
  SpinScope scope(lock_);
  link(chunk);
  return chunk;
}

Chunk* Slab::reuse_empty(SlotKind kind, std::size_t slot_class) noexcept {
  Chunk* chunk = empty_;
  if (chunk == nullptr) return nullptr;
  if (chunk->kind != kind || chunk->slot_class != slot_class) {
    SpinScope scope(lock_);
    if (walkers_ != 0) return nullptr;  // S2
    format(chunk, kind, slot_class);
  }
  empty_ = chunk->next;
  --empty_count_;
  return chunk;
}

// A full chunk got a slot back: it has room again.
void Slab::leave_full(Chunk* chunk) noexcept {
  Bin& bin = bins_[static_cast<std::size_t>(chunk->kind)][chunk->slot_class];
  chunk->state = Chunk::State::kPartial;
  chunk->prev = nullptr;
  chunk->next = bin.partial;
  if (bin.partial != nullptr) bin.partial->prev = chunk;
  bin.partial = chunk;
  if (chunk->used == 0) leave_partial(chunk);
}

// A chunk with room became empty: it is kept for whatever comes next, or goes back.
void Slab::leave_partial(Chunk* chunk) noexcept {
  Bin& bin = bins_[static_cast<std::size_t>(chunk->kind)][chunk->slot_class];
  (chunk->prev != nullptr ? chunk->prev->next : bin.partial) = chunk->next;
  if (chunk->next != nullptr) chunk->next->prev = chunk->prev;
  chunk->state = Chunk::State::kEmpty;
  if (empty_count_ >= kMaxEmpty) {
    lock_.lock();
    bool walked = walkers_ != 0;
    if (!walked) unlink(chunk);
    lock_.unlock();
    if (!walked) return give_back(chunk);
  }
  // Handed out by address again: a free list would lead through cold memory in the order of the frees.
  chunk->free = nullptr;
  chunk->handed = 0;
  chunk->next = empty_;
  empty_ = chunk;
  ++empty_count_;
}

void* Slab::alloc_single(SlotKind kind, std::size_t size, std::size_t align) noexcept {
  std::size_t first = align > sizeof(Chunk) ? align : sizeof(Chunk);
  if (align > kMaxSlotAlign || size > SIZE_MAX - kChunkSize) return nullptr;
  if (size < sizeof(FreeSlot)) size = sizeof(FreeSlot);
  void* room = raw_alloc(first + size, kChunkSize);
  if (room == nullptr) return nullptr;
  auto* chunk = new (room) Chunk{};
  chunk->slab = this;
  chunk->size = first + size;
  chunk->align = kChunkSize;
  chunk->kind = kind;
  chunk->first_slot = static_cast<std::uint32_t>(first);
  chunk->capacity = 1;
  chunk->state = Chunk::State::kSingle;
  auto* slot = new (chunk->slot(0)) FreeSlot{0, nullptr};
  // ORDER: relaxed, published by the lock.
  chunk->carved.store(1, NORIA_RELAXED);
  SpinScope scope(lock_);
  link(chunk);
  ++singles_;
  return slot;
}

void Slab::free_elsewhere(Chunk* chunk, FreeSlot* slot) noexcept {
  Slab* slab = chunk->slab;
  if (chunk->home == nullptr) return slab->free_single(chunk);
  poison(slot + 1, chunk->slot_size - sizeof(FreeSlot));
  if (slab->freed_.push(slot)) return;  // F4: the slab may be gone by now
  if (slab->freed_.leave()) slab->end();
}

void Slab::free_single(Chunk* chunk) noexcept {
  lock_.lock();
  bool orphaned = orphaned_;
  bool walked = walkers_ != 0;
  if (!orphaned) --singles_;
  if (walked) {
    chunk->next = deferred_;
    deferred_ = chunk;
  } else {
    unlink(chunk);
  }
  lock_.unlock();
  // From here on the slab is alive only if this slot is still counted, that is after orphan().
  if (!walked) give_back(chunk);
  if (orphaned && freed_.leave()) end();
}

void Slab::link(Chunk* chunk) noexcept {
  chunk->list_prev = nullptr;
  chunk->list_next = chunks_;
  if (chunks_ != nullptr) chunks_->list_prev = chunk;
  chunks_ = chunk;
}

void Slab::unlink(Chunk* chunk) noexcept {
  (chunk->list_prev != nullptr ? chunk->list_prev->list_next : chunks_) = chunk->list_next;
  if (chunk->list_next != nullptr) chunk->list_next->list_prev = chunk->list_prev;
}

Chunk* Slab::begin_walk() noexcept {
  SpinScope scope(lock_);
  NORIA_ASSERT(!orphaned_, "no walk over a slab without owner");
  ++walkers_;
  return chunks_;
}

void Slab::end_walk() noexcept {
  Chunk* ended = nullptr;
  {
    SpinScope scope(lock_);
    if (--walkers_ != 0) return;
    ended = deferred_;
    deferred_ = nullptr;
    for (Chunk* c = ended; c != nullptr; c = c->next) unlink(c);
  }
  while (ended != nullptr) {
    Chunk* next = ended->next;
    give_back(ended);
    ended = next;
  }
}

// How many slots are out, by the chunks' own counts: what others have freed must be back in them.
std::int64_t Slab::count_out() noexcept {
  SpinScope scope(lock_);
  std::int64_t out = 0;
  for (Chunk* c = chunks_; c != nullptr; c = c->list_next) out += c->used;
  return out;
}

void Slab::orphan() noexcept {
  if (t_current_ == this) t_current_ = nullptr;
  std::int64_t singles = 0;
  {
    SpinScope scope(lock_);
    NORIA_ASSERT(!orphaned_ && walkers_ == 0, "a slab loses its owner once, and not during a walk");
    orphaned_ = true;
    singles = singles_;
  }
  // What was freed before the list closed is not out; what comes later counts down.
  std::int64_t freed = 0;
  for (FreeSlot* s = pending_; s != nullptr; s = s->next) ++freed;
  for (FreeSlot* s = freed_.close(); s != nullptr; s = s->next) ++freed;
  if (freed_.settle(count_out() - freed + singles)) end();
}

// The last slot has been freed, by this thread or seen through settle and leave (F3).
void Slab::end() noexcept {
  EmptyFn on_empty = on_empty_;
  void* data = data_;
  lock_.lock();
  Chunk* chunk = chunks_;
  lock_.unlock();
  while (chunk != nullptr) {
    Chunk* next = chunk->list_next;
    give_back(chunk);
    chunk = next;
  }
  this->~Slab();
  raw_free(this, sizeof(Slab), alignof(Slab));
  if (on_empty != nullptr) on_empty(data);
}

}  // namespace noria
