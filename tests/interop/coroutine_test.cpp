// Noria carries C++20 coroutines: the coroutine's frame is made in the task's own room, so that a task is one
// allocation; a frame is destroyed, with its locals, when the task is aborted or its runtime ends.
#include <noria/noria.h>

#include <coroutine>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#define CHECK(condition) \
  ((condition) ? (void)0 : (std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition), std::exit(1)))

namespace {

thread_local noria_task* made;  // by operator new, for get_return_object

struct Promise;
using Frame = std::coroutine_handle<Promise>;

// A coroutine that is a task: `Task f(noria_runtime*, ...)`.
class Task {
 public:
  using promise_type = Promise;
  explicit Task(noria_task* handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  ~Task() {
    if (handle_ != nullptr) noria_task_detach(handle_);
  }
  noria_task* get() const { return handle_; }

  noria_join_result join() const {
    noria_future* future = nullptr;
    noria_join_result result{};
    CHECK(noria_task_join(handle_, &future) == NORIA_OK);
    CHECK(noria_future_wait(future, NORIA_FOREVER) == NORIA_OK);
    CHECK(noria_future_result(future, &result, sizeof result) == NORIA_OK);
    noria_future_drop(future);
    return result;
  }

 private:
  noria_task* handle_;
};

struct Promise {
  std::int32_t error = NORIA_OK;
  noria_future* awaited = nullptr;  // what the next poll looks at before it resumes

  // The frame's memory is the room of a task. The parameters are the coroutine's own.
  static void* operator new(std::size_t size, noria_runtime* rt, ...) {
    void* room = nullptr;
    CHECK(noria_task_new(rt, &vtable, size, __STDCPP_DEFAULT_NEW_ALIGNMENT__, &room, &made) == NORIA_OK);
    return room;
  }
  static void operator delete(void*) {}  // the task's memory goes with the task

  Task get_return_object() { return Task(made); }
  // Starts the task once the frame is suspended: another worker may resume it before this returns.
  struct Start {
    bool await_ready() noexcept { return false; }
    void await_suspend(Frame) noexcept { CHECK(noria_task_start(std::exchange(made, nullptr)) == NORIA_OK); }
    void await_resume() noexcept {}
  };
  Start initial_suspend() noexcept { return {}; }
  std::suspend_always final_suspend() noexcept { return {}; }
  void return_void() {}
  void unhandled_exception() { error = -NORIA_ETHROWN; }

  static std::int32_t poll(void* room, const noria_cx* cx) {
    Frame frame = Frame::from_address(room);
    for (;;) {
      if (noria_future* future = frame.promise().awaited; future != nullptr) {
        const std::int32_t status = noria_future_poll(future, cx);
        if (status != NORIA_READY) return status;
        frame.promise().awaited = nullptr;
      }
      frame.resume();
      if (frame.done()) return frame.promise().error;
    }
  }
  static void drop(void* room) { Frame::from_address(room).destroy(); }
  static constexpr noria_task_vtable vtable{sizeof(noria_task_vtable), 0, poll, drop, nullptr, "coroutine"};
};

// `co_await Future<T>(f)`: the future's result; owns the future, so that a dropped frame drops it.
template <class T>
class Future {
 public:
  explicit Future(noria_future* future) : future_(future) {}
  Future(const Future&) = delete;
  Future& operator=(const Future&) = delete;
  ~Future() { noria_future_drop(future_); }
  bool await_ready() { return false; }
  void await_suspend(Frame frame) { frame.promise().awaited = future_; }
  std::pair<std::int32_t, T> await_resume() {
    T value{};
    const std::int32_t status = noria_future_result(future_, &value, sizeof value);
    return {status, value};
  }

 private:
  noria_future* future_;
};

struct Nothing {};
template <>
std::pair<std::int32_t, Nothing> Future<Nothing>::await_resume() {
  return {noria_future_result(future_, nullptr, 0), Nothing{}};
}

noria_future* sleep(noria_runtime* rt, std::uint64_t ns) {
  noria_future* future = nullptr;
  CHECK(noria_sleep(rt, ns, &future) == NORIA_OK);
  return future;
}

noria_future* job(noria_runtime* rt, std::int32_t (*run)(void*), void* arg) {
  noria_future* future = nullptr;
  CHECK(noria_spawn_blocking(rt, run, nullptr, arg, &future) == NORIA_OK);
  return future;
}

struct Counter {  // a local of a frame
  explicit Counter(int* alive) : alive_(alive) { ++*alive_; }
  ~Counter() { --*alive_; }
  int* alive_;
};

Task add(noria_runtime* rt, int* alive, int* sum) {
  Counter counter(alive);
  for (int i = 1; i <= 10; ++i) {
    CHECK((co_await Future<Nothing>(sleep(rt, 100'000))).first == NORIA_OK);
    auto [status, value] = co_await Future<std::int32_t>(job(
        rt, [](void* arg) { return *static_cast<int*>(arg); }, &i));
    CHECK(status == NORIA_OK);
    *sum += value;
  }
}

Task wait_for_ever(noria_runtime* rt, int* alive, noria_semaphore* begun) {
  Counter outer(alive);
  {
    Counter inner(alive);
    noria_semaphore_release(begun, 1);
    co_await Future<Nothing>(sleep(rt, NORIA_FOREVER));
  }
}

Task fail(noria_runtime* rt, int* alive) {
  Counter counter(alive);
  co_await Future<Nothing>(sleep(rt, 1000));
  throw std::runtime_error("stays inside the task");
}

void acquire(noria_semaphore* semaphore) {
  noria_future* future = nullptr;
  CHECK(noria_semaphore_acquire(semaphore, 1, &future) == NORIA_OK);
  CHECK(noria_future_wait(future, NORIA_FOREVER) == NORIA_OK);
  noria_future_drop(future);
}

void run(noria_runtime* rt) {
  int alive = 0, alive_at_end = 0, sum = 0;
  noria_semaphore* begun = nullptr;
  CHECK(noria_semaphore_new(rt, 0, &begun) == NORIA_OK);

  CHECK(add(rt, &alive, &sum).join().kind == NORIA_JOIN_DONE);
  CHECK(sum == 55 && alive == 0);
  noria_join_result failed = fail(rt, &alive).join();
  CHECK(failed.kind == NORIA_JOIN_FAILED && failed.error == -NORIA_ETHROWN && alive == 0);
  {
    Task task = wait_for_ever(rt, &alive, begun);
    acquire(begun);
    CHECK(noria_task_abort(task.get()) == NORIA_OK);
    CHECK(task.join().kind == NORIA_JOIN_ABORTED && alive == 0);
  }
  {
    Task task = wait_for_ever(rt, &alive_at_end, begun);
    acquire(begun);
    CHECK(noria_runtime_shutdown(rt, 10'000'000'000, nullptr) == NORIA_OK);
    CHECK(alive_at_end == 0);
  }
  noria_semaphore_drop(begun);
}

}  // namespace

int main() {
  noria_runtime* rt = nullptr;
  CHECK(noria_runtime_new(nullptr, &rt) == NORIA_OK);
  run(rt);
  CHECK(noria_runtime_release(rt) == NORIA_OK);
  noria_counts counts{};
  counts.size = sizeof counts;
  CHECK(noria_live_counts(&counts) == NORIA_OK);
  CHECK(counts.tasks == 0 && counts.futures == 0 && counts.wakers == 0 && counts.allocations == 0);
  std::puts("coroutine: passed");
}
