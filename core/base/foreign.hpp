// foreign.hpp: calls of functions that a user gave and that have nobody to report to: release, discard.
#pragma once

#include <utility>

namespace noria {

// `function` may be null. What it throws ends here: nothing unwinds into the engine.
template <typename... Parameters, typename... Arguments>
void call_foreign(void (*function)(Parameters...), Arguments&&... arguments) noexcept {
  if (function == nullptr) return;
  try {
    function(std::forward<Arguments>(arguments)...);
  } catch (...) {
    // It has nobody to tell.
  }
}

}  // namespace noria
