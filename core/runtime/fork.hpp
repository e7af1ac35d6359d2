// fork.hpp: counts the forks between this process and the one that loaded the library (A15).
#pragma once

#include <cstdint>

namespace noria::runtime {

// Differs between a process and its children. Cheap: read on every call of the C ABI.
std::uint64_t fork_generation();

}  // namespace noria::runtime
