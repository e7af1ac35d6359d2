// watch.hpp: readiness of a caller's descriptor: what noria_source is.
// Threads:    poll form: one at a time a direction. The rest: any.
// Lifetime:   the handle and each pending future hold a reference; deregistered with the handle at the latest. The
//             descriptor is the caller's.
#pragma once

#include <cstdint>

#include <noria/source.h>

#include "reactor/reactor.hpp"
#include "runtime/core.hpp"

namespace noria::net {

class Watch final : public reactor::Source {
 public:
  [[nodiscard]] static std::int32_t make(runtime::Core* core, std::int32_t fd, Watch** out);

  runtime::Core* core() const { return core_; }
  [[nodiscard]] std::int32_t poll(std::uint32_t interest, const noria_cx* cx, noria_readiness* out);
  [[nodiscard]] std::int32_t ready(std::uint32_t interest, noria_future** out);
  void stop() { core_->reactor()->remove(*this); }
  void drop() {
    stop();
    unref();
  }

 private:
  Watch(runtime::Core* core, std::int32_t fd) : Source(fd, destroy), core_(core) {}
  ~Watch() = default;
  static void destroy(Source* source);

  runtime::Core* const core_;
};

inline noria_source* to_c(Watch* watch) { return reinterpret_cast<noria_source*>(watch); }
inline Watch* from_c(noria_source* source) { return reinterpret_cast<Watch*>(source); }

}  // namespace noria::net
