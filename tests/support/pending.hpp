// pending.hpp: a future that is ready when the test says so, with a pointer as its result.
#pragma once

#include "support/runtime_fixture.hpp"

namespace noria::test {

// The receive future of a oneshot. end() before it goes; the future itself may have any owner.
class Pending {
 public:
  explicit Pending(noria_runtime* rt) {
    assert_ok(noria_oneshot_new(rt, nullptr, &tx_, &rx_), "oneshot_new");
    assert_ok(noria_oneshot_receive(rx_, &future), "oneshot_receive");
  }
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;
  ~Pending() {
    if (tx_ != nullptr) assert_ok(noria_oneshot_sender_drop(tx_), "sender_drop");
    assert_ok(noria_oneshot_receiver_drop(rx_), "receiver_drop");
  }

  // Makes it ready, with `value` as its result.
  void complete(void* value = nullptr) {
    assert_ok(noria_oneshot_send(tx_, value), "oneshot_send");
    tx_ = nullptr;
  }
  // Makes it ready with -NORIA_ECLOSED.
  void fail() {
    assert_ok(noria_oneshot_sender_drop(tx_), "sender_drop");
    tx_ = nullptr;
  }

  noria_future* future = nullptr;

 private:
  noria_oneshot_sender* tx_ = nullptr;
  noria_oneshot_receiver* rx_ = nullptr;
};

}  // namespace noria::test
