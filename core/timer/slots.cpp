// slots.cpp: see slots.hpp.
#include "timer/slots.hpp"

#include <algorithm>
#include <bit>

#include "timer/tick.hpp"

namespace noria::timer {

Slots::Slots(std::uint64_t current_tick) : current_(current_tick) {}

Slots::Slot& Slots::slot_of(std::uint64_t tick, int below) {
  if (tick <= current_) return slots_[kDue];
  int level = (63 - std::countl_zero(tick - current_)) / kBits;
  if (level > 0 && (tick >> level * kBits) - (current_ >> level * kBits) <= 1) --level;
  if (level >= kLevels) return slots_[kOverflow];
  std::uint32_t above = ahead_ & ((1U << below) - 1) & ~((2U << level) - 1);
  for (; above != 0; above &= above - 1) {
    int other = std::countr_zero(above);
    std::uint64_t number = tick >> other * kBits;
    if (number == (current_ >> other * kBits) + 1 && holds(other, number)) level = other;
  }
  return slot_at(level, tick >> level * kBits);
}

void Slots::append(Slot& slot, Timer& timer, std::uint64_t tick) {
  slot.min_tick = slot.empty() ? tick : std::min(slot.min_tick, tick);
  timer.next = &slot;
  timer.prev = slot.prev;
  slot.prev->next = &timer;
  slot.prev = &timer;
}

void Slots::place(Timer& timer, std::uint64_t tick, int below) {
  Slot& slot = slot_of(tick, below);
  auto index = static_cast<std::uint64_t>(&slot - slots_);
  if (index < kSlotCount) occupied_[index / kSlotsPerLevel] |= 1ULL << (index % kSlotsPerLevel);
  append(slot, timer, tick);
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

Timer* Slots::pop_ahead(int level) {
  if ((ahead_ >> level & 1) == 0) return nullptr;
  Timer* timer = pop(slot_at(level, (current_ >> level * kBits) + 1));
  if (timer == nullptr) ahead_ &= ~(1U << level);
  return timer;
}

void Slots::advance_to(std::uint64_t tick) {
  bool moved = tick >> kBits != current_ >> kBits;
  current_ = tick;
  if (!moved) return;
  ahead_ = 0;
  for (int level = 1; level < kLevels; ++level) {
    if (holds(level, (tick >> level * kBits) + 1)) ahead_ |= 1U << level;
  }
}

Slots::First Slots::first_of(int level) const {
  First first;
  first.level = level;
  if (level == kOverflowLevel) {
    const Slot& slot = slots_[kOverflow];
    if (slot.empty()) return first;
    first.slot = const_cast<Slot*>(&slot);
    first.begin = slot.min_tick >> kSpanBits << kSpanBits;
  } else if (occupied_[level] != 0) {
    std::uint64_t number = current_ >> level * kBits;
    number += static_cast<std::uint64_t>(
        std::countr_zero(std::rotr(occupied_[level], static_cast<int>(number % kSlotsPerLevel))));
    first.slot = const_cast<Slots*>(this)->slots_ + level * kSlotsPerLevel + number % kSlotsPerLevel;
    first.begin = number << level * kBits;
  }
  return first;
}

// Of those that begin at the same tick the overflow list, then the lowest: what it holds of this tick is older (S2).
Slots::First Slots::opens_first() const {
  First first;
  for (int level = 0; level <= kOverflowLevel; ++level) {
    First other = first_of(level);
    if (other.slot == nullptr) continue;
    if (other.begin < first.begin || (level == kOverflowLevel && other.begin == first.begin)) first = other;
  }
  return first;
}

// Where the earliest tick is, as far as min_tick tells.
Slots::First Slots::earliest_slot() const {
  First earliest;
  for (int level = 0; level <= kOverflowLevel; ++level) {
    First other = first_of(level);
    if (other.slot == nullptr) continue;
    if (earliest.slot == nullptr || other.slot->min_tick < earliest.slot->min_tick) earliest = other;
  }
  return earliest;
}

Timer* Slots::pop_any() {
  if (Timer* timer = pop_due()) return timer;
  if (Timer* timer = pop_cascade()) return timer;
  if (Timer* timer = pop_fresh()) return timer;
  First first = opens_first();
  return first.slot == nullptr ? nullptr : pop(*first.slot);
}

bool Slots::open_next(std::uint64_t target) {
  First first = opens_first();
  if (first.slot == nullptr || first.begin > target) {
    if (target > current_) advance_to(target);
    return false;
  }
  if (first.begin > current_) advance_to(first.begin);
  move_all(*first.slot, slots_[first.level == 0 ? kDue : kCascade]);
  emptied(first.slot);
  return true;
}

std::uint64_t Slots::earliest() const {
  if (!slots_[kDue].empty()) return current_;
  First first = earliest_slot();
  std::uint64_t tick = first.slot == nullptr ? kNoTick : first.slot->min_tick;
  for (int list : {kCascade, kFresh}) {
    if (!slots_[list].empty()) tick = std::min(tick, slots_[list].min_tick);
  }
  return tick;
}

void Slots::settle(int budget) {
  const Slot* seen = nullptr;
  for (First first = earliest_slot(); first.slot != nullptr && first.slot != seen; first = earliest_slot()) {
    Slot* slot = first.slot;
    std::uint64_t min_tick = kNoTick;
    for (TimerLink* link = slot->next; link != slot;) {
      if (budget-- == 0) return;
      Timer& timer = *static_cast<Timer*>(link);
      link = link->next;
      std::uint64_t tick = deadline_tick(timer.deadline_ns());
      bool stays = first.level == kOverflowLevel ? &slot_of(tick, kLevels) == slot
                                                 : tick >> first.level * kBits == first.begin >> first.level * kBits;
      if (stays) {
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
