// Row reset-storm: connects that are unreachable, time out or lose their packets, in a network of their own.
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "support/tcp.hpp"

using namespace noria::test;

namespace {

// A network namespace for this process alone; false: not allowed here.
bool own_network() { return unshare(CLONE_NEWNET) == 0 && system("ip link set lo up") == 0; }

void configure(const char* command) { cr_assert_eq(system(command), 0, "%s", command); }

}  // namespace

Test(Cases, ResetStorm_unreachable_and_silent_peers_are_told_apart, .timeout = 60) {
  if (!own_network()) cr_skip_test("needs a network namespace");
  configure("ip route add 10.9.9.0/24 dev lo");  // what goes there comes to nobody
  configure("ip route add unreachable 192.0.2.0/24");
  on_each_runtime([](Lane& lane) {
    noria_tcp* tcp = nullptr;
    noria_tcp_connect_options options{};
    options.size = sizeof options;
    options.timeout_ns = 30 * kSecond;
    cr_assert_eq(connect(lane, "198.51.100.1:80", &tcp, &options), -ENETUNREACH);
    cr_assert_eq(connect(lane, "192.0.2.1:80", &tcp, &options), -EHOSTUNREACH);
    cr_assert_eq(connect(lane, "127.0.0.1:80", &tcp, &options), -ECONNREFUSED);
    uint64_t begin = 0, end = 0;
    options.timeout_ns = kSecond / 20;
    assert_ok(noria_now(lane.rt, &begin), "now");
    cr_assert_eq(connect(lane, "10.9.9.2:80", &tcp, &options), -ETIMEDOUT);
    assert_ok(noria_now(lane.rt, &end), "now");
    cr_assert_geq(end - begin, options.timeout_ns);
    cr_assert_lt(end - begin, 100 * options.timeout_ns);
    noria_future* future = nullptr;
    assert_ok(noria_tcp_connect(lane.rt, "10.9.9.2:80", nullptr, &future), "connect");
    assert_ok(noria_future_cancel(future), "cancel");
    cr_assert_eq(lane.await(future), -ECANCELED);
    assert_ok(noria_tcp_connect(lane.rt, "10.9.9.2:80", &options, &future), "connect");
    assert_ok(noria_future_drop(future), "drop");
    cr_assert_null(tcp);
  });
}

Test(Cases, ResetStorm_a_connect_whose_packets_are_lost_at_first_succeeds, .timeout = 60) {
  if (!own_network()) cr_skip_test("needs a network namespace");
  if (system("nft list ruleset > /dev/null 2>&1") != 0) cr_skip_test("needs nft");
  on_runtime(Lane{"2 workers", 2}, [](Lane& lane) {
    noria_tcp_listener* listener = listen(lane);
    configure(
        "nft add table ip t && nft add chain ip t c '{ type filter hook input priority 0; }' && "
        "nft add rule ip t c tcp flags syn drop");
    noria_future* future = nullptr;
    noria_tcp *tcp = nullptr, *peer = nullptr;
    assert_ok(noria_tcp_connect(lane.rt, address_of(listener).c_str(), nullptr, &future), "connect");
    cr_assert_eq(noria_future_wait(future, kSecond / 10), -ETIMEDOUT, "its packets are dropped");
    configure("nft flush ruleset");
    assert_ok(lane.await(future, &tcp, sizeof tcp), "the kernel tried again");
    peer = accept(lane, listener);
    write_all(lane, tcp, "x");
    cr_assert_eq(read_exactly(lane, peer, 1).size(), 1);
    for (noria_tcp* one : {tcp, peer}) assert_ok(noria_tcp_drop(one), "drop");
    assert_ok(noria_tcp_listener_drop(listener), "drop");
  });
}
