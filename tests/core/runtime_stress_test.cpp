// Threads that spawn, wake, abort, join, take, detach and drop at random, on strands too, beside a runtime that ends at any time.
// A plain program, for every sanitizer. The seed is printed, NORIA_SEED repeats it; NORIA_LONG=1 runs a hundred times as long.
#include <random>
#include <vector>

#include "support/runtime_fixture.hpp"

using namespace noria::test;

namespace {

using Random = std::minstd_rand;

struct Totals {
  std::atomic<long> spawned{0};
  std::atomic<long> dropped{0};
  std::atomic<long> polls{0};
};

// What every task carries: counted when it goes, and checked for overlap.
struct Body {
  explicit Body(Totals* of, unsigned seed) : totals(of), random(seed) { ++totals->spawned; }
  Body(Body&& from) noexcept
      : totals(std::exchange(from.totals, nullptr)), random(from.random), waker(std::move(from.waker)) {}
  ~Body() {
    if (totals != nullptr) ++totals->dropped;
  }

  Totals* totals;
  Random random;
  std::unique_ptr<KeptWaker> waker;
  std::atomic<bool> inside{false};
  int polls = 0;

  int32_t operator()(const noria_cx* cx) {
    NORIA_CHECK(!inside.exchange(true), "P2: two polls of a task at once");
    ++totals->polls;
    int32_t answer = step(cx);
    inside = false;
    return answer;
  }

  int32_t step(const noria_cx* cx) {
    if (++polls > 20) return NORIA_READY;
    switch (random() % 8) {
      case 0:
        return NORIA_READY;
      case 1:
        return -EIO;
      case 2:
        if (waker == nullptr) waker = std::make_unique<KeptWaker>();
        waker->keep(cx);
        waker->wake_by_ref();
        return NORIA_PENDING;
      case 3: {
        NORIA_OK_CALL(noria_cx_wake(cx));
        return NORIA_PENDING;
      }
      case 4:
        if (random() % 4 == 0) throw 1;
        return noria_yield(cx);
      case 5: {
        noria_task* child = nullptr;
        void* room = nullptr;
        int32_t status = noria_task_new(nullptr, &kCallable<Body>, sizeof(Body), alignof(Body), &room, &child);
        if (status == NORIA_OK) {
          new (room) Body(totals, static_cast<unsigned>(random()));
          if (noria_task_start(child) == NORIA_OK) {
            NORIA_OK_CALL(noria_task_detach(child));
          } else {
            static_cast<Body*>(room)->~Body();
            NORIA_OK_CALL(noria_task_discard(child));
          }
        }
        return noria_yield(cx);
      }
      default:
        return noria_yield(cx);
    }
  }
};

// A waker that another thread holds; who registers and who wakes are serialised by the lock, as A8 asks.
struct Mailbox {
  std::mutex lock;
  KeptWaker kept;  // guarded by lock
  void put(const noria_cx* cx) {
    std::lock_guard guard(lock);
    kept.keep(cx);
  }
  void wake(bool consume) {
    std::lock_guard guard(lock);
    if (!kept.kept()) return;
    consume ? kept.wake() : kept.wake_by_ref();
  }
};

struct Waiting : Body {
  Waiting(Totals* of, unsigned seed, Mailbox* box) : Body(of, seed), mailbox(box) {}
  Mailbox* mailbox;
  int32_t operator()(const noria_cx* cx) {
    NORIA_CHECK(!inside.exchange(true), "P2: two polls of a task at once");
    ++totals->polls;
    mailbox->put(cx);
    bool done = ++polls > 5;
    inside = false;
    return done ? NORIA_READY : NORIA_PENDING;
  }
};

template <typename T, typename... Arguments>
noria_task* try_spawn(noria_runtime* rt, noria_strand* strand, Arguments... arguments) {
  void* room = nullptr;
  noria_task* task = nullptr;
  int32_t status = strand != nullptr ? noria_strand_task_new(strand, &kCallable<T>, sizeof(T), alignof(T), &room, &task)
                                     : noria_task_new(rt, &kCallable<T>, sizeof(T), alignof(T), &room, &task);
  if (status == -NORIA_ESHUTDOWN) return nullptr;
  NORIA_OK_CALL(status);
  auto* state = new (room) T(arguments...);
  status = noria_task_start(task);
  if (status == NORIA_OK) return task;
  NORIA_STATUS(status, -NORIA_ESHUTDOWN);
  state->~T();
  NORIA_OK_CALL(noria_task_discard(task));
  return nullptr;
}

void meddle(noria_runtime* rt, noria_strand* strand, std::vector<Mailbox>& boxes, Totals& totals, unsigned seed,
            int actions) {
  Random random(seed);
  std::vector<noria_task*> tasks;
  std::vector<noria_future*> joins;
  ForeignWaker foreign;
  auto any = [&](auto& from) { return random() % from.size(); };
  for (int i = 0; i < actions; ++i) {
    noria_task* task = nullptr;
    switch (random() % 10) {
      case 0:
      case 1:
        task = try_spawn<Body>(rt, nullptr, &totals, static_cast<unsigned>(random()));
        break;
      case 2:
        task = try_spawn<Body>(rt, strand, &totals, static_cast<unsigned>(random()));
        break;
      case 3:
        task = try_spawn<Waiting>(rt, random() % 2 == 0 ? strand : nullptr, &totals, static_cast<unsigned>(random()),
                                  &boxes[any(boxes)]);
        break;
      case 4:
      case 5:
        boxes[any(boxes)].wake(random() % 2 == 0);
        break;
      case 6:
        if (!tasks.empty()) NORIA_OK_CALL(noria_task_abort(tasks[any(tasks)]));
        break;
      case 7:
        if (!tasks.empty()) {
          noria_future* join = nullptr;
          NORIA_OK_CALL(noria_task_join(tasks[any(tasks)], &join));
          NORIA_CHECK(noria_future_poll(join, foreign.cx()) >= 0, "poll of a join");
          joins.push_back(join);
        }
        break;
      case 8:
        if (!joins.empty()) {
          std::size_t at = any(joins);
          NORIA_OK_CALL(noria_future_drop(joins[at]));
          joins[at] = joins.back();
          joins.pop_back();
        }
        break;
      default:
        if (!tasks.empty()) {
          std::size_t at = any(tasks);
          NORIA_OK_CALL(noria_task_detach(tasks[at]));
          tasks[at] = tasks.back();
          tasks.pop_back();
        }
        break;
    }
    if (task != nullptr) tasks.push_back(task);
  }
  for (noria_future* join : joins) NORIA_OK_CALL(noria_future_drop(join));
  for (noria_task* task : tasks) NORIA_OK_CALL(noria_task_detach(task));
}

// One runtime, several threads that meddle; it ends while they do, or after.
void round_of(std::uint32_t workers, unsigned seed) {
  Watchdog watchdog("a round of stress");
  Random random(seed);
  noria_runtime_options options = lane_options(Lane{"", workers});
  noria_runtime* rt = nullptr;
  NORIA_OK_CALL(noria_runtime_new(&options, &rt));
  noria_strand* strand = nullptr;
  NORIA_OK_CALL(noria_strand_new(rt, &strand));
  Totals totals;
  std::vector<Mailbox> boxes(8);
  std::vector<std::thread> threads;
  int actions = 200 + static_cast<int>(random() % 800);
  for (int t = 0; t < 3; ++t)
    threads.emplace_back(
        [&, own = static_cast<unsigned>(random())] { meddle(rt, strand, boxes, totals, own, actions); });
  if (workers == 0) {
    for (int i = static_cast<int>(random() % 200); i > 0; --i) NORIA_OK_CALL(noria_runtime_turn(rt, 10'000, nullptr));
  } else {
    long polls = static_cast<long>(random() % 2000);
    for (int i = 0; i < 10000 && totals.polls < polls; ++i) std::this_thread::yield();
  }
  bool late = random() % 2 == 0;
  if (late && workers == 0) NORIA_OK_CALL(noria_runtime_shutdown(rt, 8 * kSecond, nullptr));
  if (late)
    for (std::thread& thread : threads) thread.join();
  NORIA_OK_CALL(noria_runtime_shutdown(rt, 8 * kSecond, nullptr));
  if (!late)
    for (std::thread& thread : threads) thread.join();
  for (Mailbox& box : boxes) box.kept.drop();
  NORIA_OK_CALL(noria_strand_drop(strand));
  NORIA_OK_CALL(noria_runtime_release(rt));
  assert_nothing_alive("a round of stress");
  NORIA_CHECK(totals.spawned == totals.dropped, "P7: %ld spawned, %ld dropped", totals.spawned.load(),
              totals.dropped.load());
}

// Made and freed with work in flight, from outside and from inside.
void in_flight(std::uint32_t workers, unsigned seed) {
  Watchdog watchdog("runtimes with work in flight");
  Random random(seed);
  noria_runtime_options options = lane_options(Lane{"", workers});
  noria_runtime* rt = nullptr;
  NORIA_OK_CALL(noria_runtime_new(&options, &rt));
  Totals totals;
  for (unsigned i = random() % 200; i > 0; --i) {
    noria_task* task = try_spawn<Body>(rt, nullptr, &totals, static_cast<unsigned>(random()));
    NORIA_OK_CALL(noria_task_detach(task));
  }
  noria_future* sleep = nullptr;
  NORIA_OK_CALL(noria_sleep(rt, random() % 3 * kMilli, &sleep));
  for (unsigned i = random() % 4; i > 0; --i)
    NORIA_OK_CALL(noria_spawn_blocking(
        rt, [](void*) { return 0; }, nullptr, nullptr, nullptr));
  if (workers != 0 && random() % 2 == 0) {
    spawn_detached(rt, [rt](const noria_cx*) -> int32_t { return noria_runtime_free(rt) < 0 ? -EIO : NORIA_READY; });
  } else {
    NORIA_OK_CALL(noria_runtime_free(rt));
  }
  NORIA_OK_CALL(noria_future_drop(sleep));
  await_nothing_alive("a runtime with work in flight");
  NORIA_CHECK(totals.spawned == totals.dropped, "P7: %ld spawned, %ld dropped", totals.spawned.load(),
              totals.dropped.load());
}

}  // namespace

int main() {
  Random random(static_cast<unsigned>(test_seed()));
  const std::uint32_t kinds[] = {0, 1, 2, 4};
  int count = rounds(40, 4000);
  for (int i = 0; i < count; ++i) {
    for (std::uint32_t workers : kinds) {
      if (!wanted(Lane{"", workers})) continue;
      round_of(workers, static_cast<unsigned>(random()));
      in_flight(workers, static_cast<unsigned>(random()));
    }
  }
  std::printf("%d rounds\n", count);
  return 0;
}
