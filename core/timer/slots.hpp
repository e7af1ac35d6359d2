// slots.hpp: the levels, slots and bitmaps of a wheel; lists of timers and nothing else.
// Threads:    none of its own: the wheel's lock guards all of it, `next` and `prev` of timers too.
// Invariants: S1 slot n of level l covers the ticks from n * 32^l to (n + 1) * 32^l; p_l is the one that covers current(). Level l has room for those
//                whose first 32 ticks of level l + 1 are the ones that current() lies in, or the next 32: 64 slots, named by n mod 64.
//             S2 a tick t > current() is placed in the lowest level that has room for it. Where slot p_l + 1 of a level above covers t too and has not been
//                emptied yet, in that one (the highest): what it holds is older, and timers of a tick fire in the order of their arming.
//             S3 a slot's min_tick is never later than the earliest tick in it (an unlink, or a reset to later that only wrote the deadline, leaves it early).
//             S4 slots that have begun are empty, but for those that open_next has still to open, of levels above 0 only while an advance is on its way.
//             S5 kDue and kCascade are emptied before another slot is opened; all that was opened is no later than all that was not.
//             S6 fresh timers, which have been armed and not placed yet, may have any tick; of a tick they are younger than those that were fresh before. (Where another
//                thread's reset, or a guest's arm while kCascade holds some of its tick, comes between, the order of that tick is not kept.)
#pragma once

#include <cstdint>

#include "timer/timer.hpp"

namespace noria::timer {

class Slots {
 public:
  static constexpr int kLevels = 7;
  static constexpr int kBits = 5;
  static constexpr int kSlotsPerLevel = 2 << kBits;
  static constexpr int kSpanBits = kLevels * kBits;

  explicit Slots(std::uint64_t current_tick);
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;

  std::uint64_t current() const { return current_; }

  // `below`: what comes out of a slot of that level, before it is opened, goes to one below.
  void place(Timer& timer, std::uint64_t tick, int below = kLevels);
  void unlink(Timer& timer);
  // A list beside the slots (S6): behind the others in it.
  void add_fresh(Timer& timer, std::uint64_t tick) { append(slots_[kFresh], timer, tick); }
  // The oldest of those, unlinked; null if there is none.
  Timer* pop_fresh() { return pop(slots_[kFresh]); }

  // The next timer whose tick has come, unlinked; null if none is open.
  Timer* pop_due() { return pop(slots_[kDue]); }
  bool has_due() const { return !slots_[kDue].empty(); }
  // The next timer of a slot that was opened above level 0, unlinked: to be placed anew.
  Timer* pop_cascade() { return pop(slots_[kCascade]); }
  // The next timer of the slot of `level`, 1 or more, that begins next, unlinked: to be placed below it. So that few are left, or none, to be moved in
  // the tick at which that slot is opened: they would be late by the time that all of it takes.
  Timer* pop_ahead(int level);
  // Whatever comes first, unlinked; null if nothing is left.
  Timer* pop_any();

  // Opens the earliest slot if it begins at `target` or before, else moves current() to `target`.
  bool open_next(std::uint64_t target);

  // Not later than the earliest tick of the fresh ones; kNoTick if there are none.
  std::uint64_t fresh_tick() const { return slots_[kFresh].empty() ? UINT64_MAX : slots_[kFresh].min_tick; }

  // Not later than the earliest tick; kNoTick if empty. current() means that something is due.
  std::uint64_t earliest() const;

  // Makes earliest() exact where looking at `budget` timers is enough.
  void settle(int budget);

 private:
  struct Slot : TimerLink {
    Slot() { next = prev = this; }
    bool empty() const { return next == this; }
    std::uint64_t min_tick = 0;  // S3; without meaning while empty
  };
  static constexpr int kSlotCount = kLevels * kSlotsPerLevel;
  // Lists behind the levels' slots.
  static constexpr int kDue = kSlotCount;
  static constexpr int kCascade = kSlotCount + 1;
  static constexpr int kOverflow = kSlotCount + 2;
  static constexpr int kFresh = kSlotCount + 3;

  static constexpr int kOverflowLevel = kLevels;
  // The slot of a level that begins first.
  struct First {
    Slot* slot = nullptr;
    int level = 0;
    std::uint64_t begin = UINT64_MAX;
  };

  Slot& slot_at(int level, std::uint64_t number) {
    return slots_[static_cast<std::uint64_t>(level * kSlotsPerLevel) + number % kSlotsPerLevel];
  }
  bool holds(int level, std::uint64_t number) const { return (occupied_[level] >> number % kSlotsPerLevel & 1) != 0; }
  Slot& slot_of(std::uint64_t tick, int below);
  First first_of(int level) const;
  First opens_first() const;
  First earliest_slot() const;
  void advance_to(std::uint64_t tick);
  static void append(Slot& slot, Timer& timer, std::uint64_t tick);
  Timer* pop(Slot& slot);
  void emptied(const TimerLink* slot);
  static void move_all(Slot& from, Slot& to);

  std::uint64_t current_;    // every tick up to here has been opened
  std::uint32_t ahead_ = 0;  // bit l: slot p_l + 1 may hold something; others never do (S2)
  std::uint64_t occupied_[kLevels] = {};
  Slot slots_[kSlotCount + 4];
};

}  // namespace noria::timer
