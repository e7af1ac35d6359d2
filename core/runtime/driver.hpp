// driver.hpp: the reactor, the wheels and the clock, as the schedulers see them.
#pragma once

#include "base/allocated.hpp"
#include "task/driver.hpp"

namespace noria::runtime {

class Core;

class EngineDriver final : public task::Driver, public Allocated {
 public:
  explicit EngineDriver(Core& core) : core_(core) {}

  void wait(std::uint64_t timeout_ns, std::uint64_t cap_ns) override;
  void interrupt() override;
  bool has_sources() const override;
  std::uint64_t now_ns() const override;
  std::uint64_t next_deadline_ns(std::uint32_t wheel) const override;
  bool due(std::uint32_t wheel, std::uint64_t now_ns) const override;
  void fire_due(std::uint32_t wheel, std::uint64_t now_ns, bool owner) override;
  bool sort_some(std::uint32_t wheel) override;
  bool jump(std::uint64_t deadline_ns) override;
  bool would_jump() const override;
  void pushed_late() override;

 private:
  std::uint64_t virtual_wait_ns(std::uint64_t timeout_ns) const;

  Core& core_;
};

}  // namespace noria::runtime
