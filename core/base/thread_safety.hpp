// thread_safety.hpp: names for clang's -Wthread-safety; nothing to other compilers.
// A field says NORIA_GUARDED_BY(lock_), a function that wants the lock held NORIA_REQUIRES(lock_).
#pragma once

#if defined(__clang__)
#define NORIA_TS(x) __attribute__((x))
#else
#define NORIA_TS(x)
#endif

#define NORIA_CAPABILITY(name) NORIA_TS(capability(name))
#define NORIA_SCOPED_CAPABILITY NORIA_TS(scoped_lockable)
#define NORIA_GUARDED_BY(lock) NORIA_TS(guarded_by(lock))
#define NORIA_REQUIRES(...) NORIA_TS(requires_capability(__VA_ARGS__))
#define NORIA_EXCLUDES(...) NORIA_TS(locks_excluded(__VA_ARGS__))
#define NORIA_LOCKS(...) NORIA_TS(acquire_capability(__VA_ARGS__))
#define NORIA_UNLOCKS(...) NORIA_TS(release_capability(__VA_ARGS__))
#define NORIA_TRY_LOCKS(...) NORIA_TS(try_acquire_capability(__VA_ARGS__))
#define NORIA_NO_THREAD_SAFETY_ANALYSIS NORIA_TS(no_thread_safety_analysis)
