// A7: whose memory an operation uses, and for how long. Poll forms borrow it during the call only; future forms take a buffer, which
// they give back or release. Memory that may not be touched any more is made inaccessible, so that whoever does, fails.
#include <sys/mman.h>

#include <cerrno>

#include "support/tcp.hpp"

using namespace noria::test;

namespace {

constexpr size_t kPage = 4096;

// Memory that can be taken away.
class Page {
 public:
  Page() : at_(::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    cr_assert_neq(at_, MAP_FAILED);
  }
  ~Page() { ::munmap(at_, kPage); }
  Page(const Page&) = delete;
  template <typename T>
  T* room(size_t offset = 0) {
    return reinterpret_cast<T*>(static_cast<char*>(at_) + offset);
  }
  void take_away() { cr_assert_eq(::mprotect(at_, kPage, PROT_NONE), 0); }

 private:
  void* const at_;
};

std::atomic<long> g_asked{0};
void* count_alloc(std::size_t size, std::size_t align, void*) {
  ++g_asked;
  align = align < 16 ? 16 : align;
  return std::aligned_alloc(align, (size + align - 1) / align * align);
}
const noria_allocator kCounting = {sizeof(noria_allocator), 0, count_alloc,
                                   [](void* block, std::size_t, std::size_t, void*) { std::free(block); }, nullptr};

// Answers PENDING in memory that is then gone, and READY, once `complete` has been called, in other memory.
template <typename Poll, typename Complete>
void polls_in_two_pages(Lane& lane, const char* name, Poll&& poll, Complete&& complete) {
  Page first, second;
  ForeignWaker waker;
  int32_t status = poll(waker.cx(), first);
  NORIA_CHECK(status == NORIA_PENDING, "%s: %s", name, noria_error_name(status));
  first.take_away();
  complete();
  status = lane.run([&](const noria_cx* cx) { return poll(cx, second); });
  NORIA_CHECK(status == NORIA_READY, "%s: %s", name, noria_error_name(status));
}

void never_read(noria_tcp* tcp, const noria_cx* cx) {  // until its sleep is real: a fresh stream is worth a try
  char byte;
  size_t count = 0;
  while (noria_tcp_poll_read(tcp, cx, &byte, 1, &count) == NORIA_READY) NORIA_CHECK(false, "nothing was sent");
}

}  // namespace

Test(Borrow, A7_reads_borrow_during_the_call_only) {
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    ForeignWaker waker;
    never_read(link.b, waker.cx());
    auto send = [&] { write_all(lane, link.a, "text"); };
    polls_in_two_pages(
        lane, "poll_peek",
        [&](const noria_cx* cx, Page& page) {
          return noria_tcp_poll_peek(link.b, cx, page.room<char>(), 4, page.room<size_t>(64));
        },
        send);
    cr_assert(read_exactly(lane, link.b, 4) == "text");
    never_read(link.b, waker.cx());
    polls_in_two_pages(
        lane, "poll_read",
        [&](const noria_cx* cx, Page& page) {
          int32_t status = noria_tcp_poll_read(link.b, cx, page.room<char>(), 4, page.room<size_t>(64));
          if (status == NORIA_READY)
            NORIA_CHECK(std::memcmp(page.room<char>(), "text", 4) == 0 && *page.room<size_t>(64) == 4, "poll_read");
          return status;
        },
        send);
    never_read(link.b, waker.cx());
    polls_in_two_pages(
        lane, "poll_readv",
        [&](const noria_cx* cx, Page& page) {
          auto* pieces = page.room<noria_iovec>(128);
          pieces[0] = {page.room<char>(), 2};
          pieces[1] = {page.room<char>(32), 2};
          int32_t status = noria_tcp_poll_readv(link.b, cx, pieces, 2, page.room<size_t>(64));
          if (status == NORIA_READY)
            NORIA_CHECK(std::memcmp(page.room<char>(32), "xt", 2) == 0 && *page.room<size_t>(64) == 4, "poll_readv");
          return status;
        },
        send);
  });
}

Test(Borrow, A7_writes_borrow_during_the_call_only) {
  on_each_runtime([](Lane& lane) {
    for (bool pieces : {false, true}) {
      ForeignWaker full;
      Link link(lane);
      size_t sent = 0;
      auto write = [&](const noria_cx* cx, Page& page) {
        std::memset(page.room<char>(), 'x', 1000);
        auto* piece = page.room<noria_iovec>(1024);
        *piece = {page.room<char>(), 1000};
        auto* count = page.room<size_t>(2048);
        int32_t status = pieces ? noria_tcp_poll_writev(link.a, cx, piece, 1, count)
                                : noria_tcp_poll_write(link.a, cx, page.room<char>(), 1000, count);
        if (status == NORIA_READY) sent += *count;
        return status;
      };
      Page filling;
      while (write(full.cx(), filling) == NORIA_READY) {
      }
      size_t read = 0;
      polls_in_two_pages(lane, pieces ? "poll_writev" : "poll_write", write, [&] {
        read = sent;
        std::string text = read_exactly(lane, link.b, read);
        cr_assert(text.size() == read && text.find_first_not_of('x') == std::string::npos);
      });
      cr_assert(read_exactly(lane, link.b, sent - read) == std::string(sent - read, 'x'));
    }
  });
}

Test(Borrow, A7_poll_forms_with_a_result_borrow_its_place_during_the_call_only) {
  on_each_runtime([](Lane& lane) {
    noria_oneshot_sender* tx = nullptr;
    noria_oneshot_receiver* rx = nullptr;
    int value = 0;
    NORIA_OK_CALL(noria_oneshot_new(lane.rt, nullptr, &tx, &rx));
    polls_in_two_pages(
        lane, "oneshot_poll_receive",
        [&](const noria_cx* cx, Page& page) {
          int32_t status = noria_oneshot_poll_receive(rx, cx, page.room<void*>());
          if (status == NORIA_READY) NORIA_CHECK(*page.room<void*>() == &value, "oneshot_poll_receive");
          return status;
        },
        [&] { NORIA_OK_CALL(noria_oneshot_send(tx, &value)); });
    NORIA_OK_CALL(noria_oneshot_receiver_drop(rx));

    noria_tcp_listener* listener = listen(lane);
    noria_tcp *client = nullptr, *accepted = nullptr;
    polls_in_two_pages(
        lane, "tcp_poll_accept",
        [&](const noria_cx* cx, Page& page) {
          int32_t status = noria_tcp_poll_accept(listener, cx, page.room<noria_tcp*>());
          if (status == NORIA_READY) accepted = *page.room<noria_tcp*>();
          return status;
        },
        [&] { assert_ok(connect(lane, address_of(listener).c_str(), &client), "connect"); });
    for (noria_tcp* tcp : {client, accepted}) NORIA_OK_CALL(noria_tcp_drop(tcp));
    NORIA_OK_CALL(noria_tcp_listener_drop(listener));

    KeptWaker kept;
    std::atomic<bool> polled{false}, done{false};
    noria_task* task = spawn(lane.rt, [&](const noria_cx* cx) -> int32_t {
      if (done) return -EIO;
      kept.keep(cx);
      polled = true;
      return NORIA_PENDING;
    });
    lane.until([&] { return polled.load(); }, "the first poll");
    lane.inside([] {});
    polls_in_two_pages(
        lane, "task_poll_join",
        [&](const noria_cx* cx, Page& page) {
          int32_t status = noria_task_poll_join(task, cx, page.room<noria_join_result>());
          if (status == NORIA_READY) NORIA_CHECK(page.room<noria_join_result>()->error == -EIO, "task_poll_join");
          return status;
        },
        [&] {
          done = true;
          kept.wake();
        });
    NORIA_OK_CALL(noria_task_detach(task));
  });
}

// The buffer is the future's until its result is taken: whatever the end, lent memory is released once, and used no more.
Test(Borrow, A7_read_futures_hold_a_buffer_and_release_it_whatever_their_end) {
  on_each_runtime([](Lane& lane) {
    enum End { kDropped, kCancelled, kUntaken, kTaken };
    for (End end : {kDropped, kCancelled, kUntaken, kTaken}) {
      Link link(lane);
      struct Lent {
        Page page;
        std::atomic<int> releases{0};
      } lent;
      noria_buf* buf = nullptr;
      noria_future* read = nullptr;
      noria_io_result result{};
      auto release = [](void*, void* arg) {
        auto* self = static_cast<Lent*>(arg);
        ++self->releases;
        self->page.take_away();
      };
      NORIA_OK_CALL(noria_buf_wrap(lane.rt, lent.page.room<char>(), kPage, release, &lent, &buf));
      NORIA_OK_CALL(noria_tcp_read(link.b, buf, &read));
      cr_assert_eq(lent.releases, 0, "it is held");
      if (end == kUntaken || end == kTaken) {
        write_all(lane, link.a, "text");
        assert_ok(lane.run([&](const noria_cx* cx) { return noria_future_poll(read, cx); }), "poll");
        cr_assert_eq(lent.releases, 0, "until it is taken");
      }
      if (end == kCancelled) NORIA_OK_CALL(noria_future_cancel(read));
      if (end == kCancelled) cr_assert_eq(lane.await(read, &result, sizeof result), -ECANCELED);
      if (end == kTaken) assert_ok(lane.await(read, &result, sizeof result), "read");
      if (end == kDropped || end == kUntaken) NORIA_OK_CALL(noria_future_drop(read));
      if (result.buf != nullptr) {
        cr_assert_eq(result.buf, buf, "the very buffer comes back");
        NORIA_OK_CALL(noria_buf_release(result.buf));
      }
      if (end != kUntaken && end != kTaken) write_all(lane, link.a, "text");
      if (end != kTaken) cr_assert(read_exactly(lane, link.b, 4) == "text", "P8: nobody has lost them");
      lane.until([&] { return lent.releases == 1; }, "the release");
    }
  });
}

Test(Borrow, A7_write_that_was_accepted_tells_a_later_error_at_the_next) {
  on_each_runtime([](Lane& lane) {
    Link link(lane);
    write_all(lane, link.a, "accepted");
    cr_assert(read_exactly(lane, link.b, 1) == "a");
    NORIA_OK_CALL(noria_tcp_drop(std::exchange(link.b, nullptr)));  // with bytes unread: a reset
    int32_t status = NORIA_OK;
    lane.until(
        [&] {
          size_t count = 0;
          status = noria_tcp_try_write(link.a, "x", 1, &count);
          return status != NORIA_OK && status != -EAGAIN;
        },
        "the reset");
    cr_assert(status == -ECONNRESET || status == -EPIPE, "%s", noria_error_name(status));
  });
}

Test(Borrow, A7_waiters_are_the_callers_and_poll_forms_that_take_one_allocate_nothing) {
  NORIA_OK_CALL(noria_set_allocator(&kCounting));
  on_each_runtime([](Lane& lane) {
    static_assert(sizeof(noria_waiter) == 8 * sizeof(void*));
    noria_semaphore* semaphore = nullptr;
    noria_notify* notify = nullptr;
    noria_waiter waiters[2] = {};
    ForeignWaker waker;
    NORIA_OK_CALL(noria_semaphore_new(lane.rt, 0, &semaphore));
    NORIA_OK_CALL(noria_notify_new(lane.rt, &notify));
    lane.inside([] {});
    NORIA_OK_CALL(noria_waiter_drop(&waiters[0]));  // zero: nothing happens
    long before = g_asked;
    for (int i = 0; i < 1000; ++i) {
      NORIA_STATUS(noria_semaphore_poll_acquire(semaphore, 1, waker.cx(), &waiters[0]), NORIA_PENDING);
      NORIA_STATUS(noria_notify_poll_wait(notify, waker.cx(), &waiters[1]), NORIA_PENDING);
      if (i % 2 == 0) {
        NORIA_OK_CALL(noria_semaphore_release(semaphore, 1));
        NORIA_OK_CALL(noria_notify_one(notify));
        NORIA_STATUS(noria_semaphore_poll_acquire(semaphore, 1, waker.cx(), &waiters[0]), NORIA_READY);
        NORIA_STATUS(noria_notify_poll_wait(notify, waker.cx(), &waiters[1]), NORIA_READY);
      }
      for (noria_waiter& waiter : waiters) NORIA_OK_CALL(noria_waiter_drop(&waiter));
    }
    cr_assert_eq(g_asked, before);
    NORIA_OK_CALL(noria_notify_drop(notify));
    NORIA_OK_CALL(noria_semaphore_drop(semaphore));
  });
}
