// poison.hpp: tells AddressSanitizer which bytes of pooled memory are free; nothing elsewhere.
#pragma once

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define NORIA_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define NORIA_ASAN 1
#endif

#ifdef NORIA_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace noria {

inline void poison([[maybe_unused]] const void* p, [[maybe_unused]] std::size_t size) noexcept {
#ifdef NORIA_ASAN
  ASAN_POISON_MEMORY_REGION(p, size);
#endif
}

inline void unpoison([[maybe_unused]] const void* p, [[maybe_unused]] std::size_t size) noexcept {
#ifdef NORIA_ASAN
  ASAN_UNPOISON_MEMORY_REGION(p, size);
#endif
}

}  // namespace noria
