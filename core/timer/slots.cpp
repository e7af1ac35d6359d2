// slots.cpp: see slots.hpp.
#include "timer/slots.hpp"

#include <algorithm>
#include <bit>

#include "timer/tick.hpp"

namespace noria::timer {

Slots::Slots(std::uint64_t current_tick) : current_(current_tick) {}

Slots::Slot& Slots::slot_of(std::uint64_t tick) {
  if (tick <= current_) return slots_[kDue];
  int high = 63 - std::countl_zero(tick ^ current_);
  if (high >= kSpanBits) return slots_[kOverflow];
  int level = high / kSlotBits;
  std::uint64_t index = (tick >> (level * kSlotBits)) & (kSlotsPerLevel - 1);
  return slots_[static_cast<std::uint64_t>(level * kSlotsPerLevel) + index];
}

void Slots::place(Timer& timer, std::uint64_t tick) {
  Slot& slot = slot_of(tick);
  if (slot.empty()) {
    slot.min_tick = tick;
    std::uint64_t index = static_cast<std::uint64_t>(&slot - slots_);
    if (index < kSlotCount) occupied_[index / kSlotsPerLevel] |= 1ULL << (index % kSlotsPerLevel);
  } else {
    slot.min_tick = std::min(slot.min_tick, tick);
  }
  timer.next = &slot;
  timer.prev = slot.prev;
  slot.prev->next = &timer;
  slot.prev = &timer;
}

void Slots::unlink(Timer& timer) {
  TimerLink* next = timer.next;
  TimerLink* prev = timer.prev;
  prev->next = next;
  next->prev = prev;
  // Only a ring of one has the same neighbour on both sides, and that one is the slot itself.
  if (next == prev) emptied(next);
}

void Slots::emptied(const TimerLink* slot) {
  std::uint64_t index = static_cast<std::uint64_t>(static_cast<const Slot*>(slot) - slots_);
  if (index < kSlotCount) occupied_[index / kSlotsPerLevel] &= ~(1ULL << (index % kSlotsPerLevel));
}

Timer* Slots::pop(Slot& slot) {
  if (slot.empty()) return nullptr;
  Timer* timer = static_cast<Timer*>(slot.next);
  unlink(*timer);
  return timer;
}

void Slots::move_all(Slot& from, Slot& to) {
  to.min_tick = from.min_tick;
  to.next = from.next;
  to.prev = from.prev;
  to.next->prev = &to;
  to.prev->next = &to;
  from.next = from.prev = &from;
}

const Slots::Slot* Slots::first() const {
  for (int level = 0; level < kLevels; ++level) {
    if (occupied_[level] == 0) continue;
    return &slots_[level * kSlotsPerLevel + std::countr_zero(occupied_[level])];
  }
  return slots_[kOverflow].empty() ? nullptr : &slots_[kOverflow];
}

Timer* Slots::pop_any() {
  if (Timer* timer = pop_due()) return timer;
  if (Timer* timer = pop_cascade()) return timer;
  const Slot* slot = first();
  return slot == nullptr ? nullptr : pop(const_cast<Slot&>(*slot));
}

bool Slots::open_next(std::uint64_t target) {
  Slot* slot = const_cast<Slot*>(first());
  if (slot == nullptr) {
    current_ = std::max(current_, target);
    return false;
  }
  std::uint64_t begin;
  bool due = false;
  if (slot == &slots_[kOverflow]) {
    begin = slot->min_tick >> kSpanBits << kSpanBits;
  } else {
    std::uint64_t index = static_cast<std::uint64_t>(slot - slots_);
    std::uint64_t shift = index / kSlotsPerLevel * kSlotBits;
    begin = ((current_ >> shift >> kSlotBits << kSlotBits) | (index % kSlotsPerLevel)) << shift;
    due = shift == 0;
  }
  if (begin > target) {
    current_ = std::max(current_, target);
    return false;
  }
  current_ = begin;
  move_all(*slot, slots_[due ? kDue : kCascade]);
  emptied(slot);
  return true;
}

std::uint64_t Slots::earliest() const {
  if (!slots_[kDue].empty()) return current_;
  std::uint64_t tick = kNoTick;
  if (const Slot* slot = first()) tick = slot->min_tick;
  if (!slots_[kCascade].empty()) tick = std::min(tick, slots_[kCascade].min_tick);
  return tick;
}

void Slots::settle(int budget) {
  for (const Slot* seen = nullptr; first() != nullptr && first() != seen;) {
    Slot* slot = const_cast<Slot*>(first());
    std::uint64_t min_tick = kNoTick;
    for (TimerLink* link = slot->next; link != slot;) {
      if (budget-- == 0) return;
      Timer& timer = *static_cast<Timer*>(link);
      link = link->next;
      std::uint64_t tick = deadline_tick(timer.deadline_ns());
      if (&slot_of(tick) == slot) {
        min_tick = std::min(min_tick, tick);
      } else {
        unlink(timer);
        place(timer, tick);
      }
    }
    if (!slot->empty()) slot->min_tick = min_tick;
    seen = slot;
  }
}

}  // namespace noria::timer
