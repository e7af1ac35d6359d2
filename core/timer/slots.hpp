// slots.hpp: the levels, slots and bitmaps of a wheel; lists of timers and nothing else.
// Threads:    none of its own: the wheel's lock guards all of it, `next` and `prev` of timers too.
// Invariants: S1 a tick t > current() lies in level l, the highest group of 6 bits in which t and
//                current() differ, in the slot that this group of t names; so each occupied slot of
//                a level is later than every one of the level below, and none has begun.
//             S2 a tick that differs above bit 36 lies in the overflow list, later than all slots.
//             S3 a slot's min_tick is never later than the earliest tick in it (an unlink, or a
//             reset
//                to later that only wrote the deadline, leaves it early).
//             S4 kDue and kCascade are emptied before another slot is opened; all that was opened
//             is
//                earlier than all that was not.
#pragma once

#include <cstdint>

#include "timer/timer.hpp"

namespace noria::timer {

class Slots {
 public:
  static constexpr int kLevels = 6;
  static constexpr int kSlotBits = 6;
  static constexpr int kSlotsPerLevel = 1 << kSlotBits;
  static constexpr int kSpanBits = kLevels * kSlotBits;

  explicit Slots(std::uint64_t current_tick);
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;

  std::uint64_t current() const { return current_; }

  void place(Timer& timer, std::uint64_t tick);
  void unlink(Timer& timer);

  // The next timer whose tick has come, unlinked; null if none is open.
  Timer* pop_due() { return pop(slots_[kDue]); }
  // The next timer of a slot that was opened above level 0, unlinked: to be placed anew.
  Timer* pop_cascade() { return pop(slots_[kCascade]); }
  // Whatever comes first, unlinked; null if nothing is left.
  Timer* pop_any();

  // Opens the earliest slot if it begins at `target` or before, else moves current() to `target`.
  bool open_next(std::uint64_t target);

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

  Slot& slot_of(std::uint64_t tick);
  const Slot* first() const;
  Timer* pop(Slot& slot);
  void emptied(const TimerLink* slot);
  static void move_all(Slot& from, Slot& to);

  std::uint64_t current_;  // every tick up to here has been opened
  std::uint64_t occupied_[kLevels] = {};
  Slot slots_[kSlotCount + 3];
};

}  // namespace noria::timer
