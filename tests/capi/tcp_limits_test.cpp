// Sources and streams when memory ends, after fork, and what their poll forms cost.
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "support/tcp.hpp"

using namespace noria::test;

namespace {

std::atomic<bool> g_refuses{false};
std::atomic<uint64_t> g_blocks{0};

void use_own_memory() {
  noria_allocator own{};
  own.size = sizeof own;
  own.alloc = [](size_t size, size_t align, void*) -> void* {
    if (g_refuses.load()) return nullptr;
    g_blocks.fetch_add(1);
    return aligned_alloc(align, (size + align - 1) / align * align);
  };
  own.free = [](void* block, size_t, size_t, void*) { free(block); };
  assert_ok(noria_set_allocator(&own), "set_allocator");
}

}  // namespace

Test(TcpLimits, P10_without_memory_calls_are_refused_and_nothing_leaks) {
  use_own_memory();
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    noria_buf* buf = buffer(lane, "text");
    std::vector<noria_source*> sources;
    std::vector<noria_future*> futures;
    std::vector<int> events;
    for (int i = 0; i < 2000; ++i) events.push_back(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    sources.reserve(events.size());
    futures.reserve(20000);
    int32_t status = NORIA_OK;
    for (size_t i = 0; i < events.size() && status == NORIA_OK; ++i) {
      noria_source* source = nullptr;
      status = noria_source_new(lane.rt, events[i], &source);
      if (status == NORIA_OK) sources.push_back(source);
      g_refuses.store(true);  // the first of them is made
    }
    cr_assert_eq(status, -ENOMEM);
    noria_tcp* tcp = nullptr;
    noria_tcp_listener* listener = nullptr;
    cr_assert_eq(noria_tcp_listener_from_fd(lane.rt, events.back(), &listener), -ENOTSOCK);
    cr_assert_eq(noria_tcp_from_fd(lane.rt, events.back(), &tcp), -ENOTSOCK);
    for (int what = 0; what < 5; ++what) {
      status = NORIA_OK;
      for (int i = 0; i < 4000 && status == NORIA_OK; ++i) {
        noria_future* future = nullptr;
        switch (what) {
          case 0:
            status = noria_source_ready(sources[0], NORIA_PRIORITY, &future);
            break;
          case 1:
            status = noria_tcp_connect(lane.rt, "127.0.0.1:1", nullptr, &future);
            break;
          case 2:
            status = noria_tcp_listen(lane.rt, "127.0.0.1:0", nullptr, &future);
            break;
          case 3:
            assert_ok(noria_buf_retain(buf), "retain");
            status = noria_tcp_read(link.a, buf, &future);
            if (status != NORIA_OK) assert_ok(noria_buf_release(buf), "it stayed ours");
            break;
          case 4:
            status = noria_copy(link.b, link.b, nullptr, &future);
            break;
        }
        if (status == NORIA_OK) futures.push_back(future);
      }
      cr_assert_eq(status, -ENOMEM, "%d: %s", what, noria_error_name(status));
    }
    for (noria_future* future : futures) assert_ok(noria_future_drop(future), "drop");
    for (noria_source* source : sources) assert_ok(noria_source_drop(source), "drop");
    g_refuses.store(false);
    assert_ok(noria_buf_release(buf), "release");
    for (int fd : events) close(fd);
  });
}

Test(TcpLimits, P10_connection_accepted_without_memory_is_not_lost) {
  use_own_memory();
  on_each_runtime([](Lane& lane) {
    noria_tcp_listener* listener = listen(lane);
    noria_tcp *client = nullptr, *served = nullptr;
    noria_future* accepting = nullptr;
    std::vector<noria_source*> sources;
    std::vector<int> events;
    for (int i = 0; i < 2000; ++i) events.push_back(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    sources.reserve(events.size());
    assert_ok(connect(lane, address_of(listener).c_str(), &client), "connect");
    write_all(lane, client, "x");
    g_refuses.store(true);
    for (int fd : events) {
      noria_source* source = nullptr;
      if (noria_source_new(lane.rt, fd, &source) != NORIA_OK) break;
      sources.push_back(source);
    }
    cr_assert_lt(sources.size(), events.size());
    int32_t asked = noria_tcp_accept(listener, &accepting);
    g_refuses.store(false);
    for (noria_source* source : sources) assert_ok(noria_source_drop(source), "drop");
    if (asked != NORIA_OK) assert_ok(noria_tcp_accept(listener, &accepting), "accept");
    assert_ok(lane.await(accepting, &served, sizeof served), "after a rest");
    cr_assert_eq(read_exactly(lane, served, 1).size(), 1);
    for (noria_tcp* tcp : {client, served}) assert_ok(noria_tcp_drop(tcp), "drop");
    assert_ok(noria_tcp_listener_drop(listener), "drop");
    for (int fd : events) close(fd);
  });
}

Test(TcpLimits, P3_poll_forms_allocate_nothing) {
  use_own_memory();
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    auto rounds = [&](int count) {
      noria_task* echo = spawn(lane.rt, [&, left = count, kept = size_t{0}](const noria_cx* cx) mutable -> int32_t {
        char room[64];
        size_t moved = 0;
        while (left > 0) {
          int32_t status = kept == 0 ? noria_tcp_poll_read(link.b, cx, room, sizeof room, &moved)
                                     : noria_tcp_poll_write(link.b, cx, room, kept, &moved);
          if (status != NORIA_READY) return status;
          left -= kept != 0;
          kept = kept == 0 ? moved : 0;
        }
        return NORIA_READY;
      });
      noria_task* client = spawn(lane.rt, [&, left = count, wrote = false](const noria_cx* cx) mutable -> int32_t {
        char room[64] = "ping";
        size_t moved = 0;
        while (left > 0) {
          int32_t status = wrote ? noria_tcp_poll_read(link.a, cx, room, sizeof room, &moved)
                                 : noria_tcp_poll_write(link.a, cx, room, 4, &moved);
          if (status != NORIA_READY) return status;
          left -= wrote;
          wrote = !wrote;
        }
        return NORIA_READY;
      });
      lane.join(echo);
      lane.join(client);
    };
    rounds(100);
    uint64_t before = g_blocks.load();
    rounds(2000);
    cr_assert_leq(g_blocks.load() - before, 4, "chunks for the tasks, at most");
  });
}

Test(TcpLimits, P9_in_a_child_of_fork_every_call_is_refused) {
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    noria_source* source = nullptr;
    noria_tcp_listener* listener = listen(lane);
    assert_ok(noria_source_new(lane.rt, event, &source), "source_new");
    pid_t child = fork();
    if (child == 0) {
      noria_source* other = nullptr;
      noria_tcp* tcp = nullptr;
      noria_future* future = nullptr;
      noria_readiness seen{};
      noria_address address;
      size_t count = 0;
      int32_t fd = 0, value = 0;
      char byte = 0;
      const int32_t results[] = {
          noria_source_new(lane.rt, event, &other),
          noria_source_ready(source, NORIA_READABLE, &future),
          noria_source_clear(source, &seen, 1),
          noria_source_close(source),
          noria_source_drop(source),
          noria_tcp_listen(lane.rt, "127.0.0.1:0", nullptr, &future),
          noria_tcp_connect(lane.rt, "127.0.0.1:1", nullptr, &future),
          noria_tcp_from_fd(lane.rt, event, &tcp),
          noria_tcp_try_read(link.a, &byte, 1, &count),
          noria_tcp_try_write(link.a, &byte, 1, &count),
          noria_tcp_shutdown(link.a, NORIA_SHUTDOWN_WRITE),
          noria_tcp_get_option(link.a, NORIA_TCP_NODELAY, &value),
          noria_tcp_local_address(link.a, &address),
          noria_tcp_into_fd(link.a, &fd),
          noria_tcp_close(link.a),
          noria_tcp_drop(link.a),
          noria_copy(link.a, link.b, nullptr, &future),
          noria_tcp_accept(listener, &future),
          noria_tcp_listener_close(listener),
          noria_tcp_listener_drop(listener),
      };
      int wrong = 0;
      for (int32_t result : results) wrong += result != -NORIA_EFORKED;
      _exit(wrong);
    }
    int how = 0;
    cr_assert_eq(waitpid(child, &how, 0), child);
    cr_assert_eq(how, 0, "%d calls answered otherwise", WEXITSTATUS(how));
    write_all(lane, link.a, "still");
    cr_assert(read_exactly(lane, link.b, 5) == "still", "the parent's registrations are whole");
    assert_ok(noria_tcp_listener_drop(listener), "drop");
    assert_ok(noria_source_drop(source), "drop");
    close(event);
  });
}
