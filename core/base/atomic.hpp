// atomic.hpp: the one door to atomics, so that a model checker can stand behind it.
// Under NORIA_MODEL the type and the orders are relacy's; everywhere else they are the standard's.
// Protocol headers (ring, idle word, task word, free list, wheel inbox) name no other atomic type.
#pragma once

#ifdef NORIA_MODEL
#include <relacy/relacy.hpp>
namespace noria {
template <typename T>
using Atomic = rl::atomic<T>;
}  // namespace noria
// Relacy wants the place of each access, which its own order macros carry as a second argument.
#define NORIA_RELAXED rl::mo_relaxed, $
#define NORIA_ACQUIRE rl::mo_acquire, $
#define NORIA_RELEASE rl::mo_release, $
#define NORIA_ACQ_REL rl::mo_acq_rel, $
#define NORIA_SEQ_CST rl::mo_seq_cst, $
#define NORIA_PLAIN(type) rl::var<type>
#define NORIA_PLAIN_GET(v) (v)($)
#else
#include <atomic>
namespace noria {
template <typename T>
using Atomic = std::atomic<T>;
}  // namespace noria
#define NORIA_RELAXED std::memory_order_relaxed
#define NORIA_ACQUIRE std::memory_order_acquire
#define NORIA_RELEASE std::memory_order_release
#define NORIA_ACQ_REL std::memory_order_acq_rel
#define NORIA_SEQ_CST std::memory_order_seq_cst
#define NORIA_PLAIN(type) type
#define NORIA_PLAIN_GET(v) (v)
#endif
