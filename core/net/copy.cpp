#include "net/copy.hpp"

#include <cerrno>
#include <utility>

#include "base/clock.hpp"
#include "net/way.hpp"
#include "task/context.hpp"
#include "task/task.hpp"
#include "timer/timer.hpp"

namespace noria::net {

namespace {

constexpr int kRounds = 16;  // steps a way in one poll: a megabyte both ways, a few hundred microseconds

// The future of a copy, and the state of the task that does it. The task holds the operation's reference, an armed timer
// one more.
struct CopyOp : task::Future {
  struct Idle : timer::Timer {
    explicit Idle(CopyOp* of) : Timer(&kTimerOps), op(of) {}
    CopyOp* const op;
  };
  static constexpr std::uint32_t kHeld = 1;   // cancelled: the streams' gates are held until the end
  static constexpr std::uint32_t kEnded = 2;  // nothing moves any more
  static const task::FutureOps kOps;
  static const timer::TimerOps kTimerOps;
  static const noria_task_vtable kTask;

  CopyOp(runtime::Core* owner, Stream* a_stream, Stream* b_stream, std::uint64_t idle, bool both)
      : Future(&kOps, owner), a(a_stream), b(b_stream), idle_ns(idle), both_ways(both), idle_timer(this) {
    for (Stream* stream : {a, b}) {
      stream->ref();
      stream->copy_begins();
    }
  }

  Stream* const a;
  Stream* const b;
  const std::uint64_t idle_ns;  // 0: never
  const bool both_ways;
  Way ways[2];
  int way_count = 0;           // immutable once started
  std::uint64_t moved_ns = 0;  // when a byte last moved; the task's
  std::uint64_t seen_moved = 0;
  bool timer_armed = false;  // the task's
  Idle idle_timer;
  Atomic<bool> idle_told{false};  // the timer was released and may be armed again
  Atomic<bool> cancelled{false};
  Atomic<std::uint32_t> hold{0};        // kHeld, kEnded
  Atomic<task::Task*> handle{nullptr};  // of the task

  std::uint64_t moved() const { return ways[0].moved() + ways[1].moved(); }
  bool over() const { return ways[0].over() && (way_count == 1 || ways[1].over()); }
  std::int32_t poll(const noria_cx* cx);
  std::int32_t move(const noria_cx* cx);
  std::int32_t check_idle();
  void end(std::int32_t status);
  void hold_streams();
  void leave_streams();
  void let_go();

  static CopyOp* of(task::Future* future) { return static_cast<CopyOp*>(future); }

  static void cancel(task::Future* future) {
    // ORDER: seq_cst, against the store of the handle in copy(): one of both sees the other.
    of(future)->cancelled.store(true, NORIA_SEQ_CST);
    of(future)->hold_streams();
    // ORDER: seq_cst, as above.
    if (task::Task* task = of(future)->handle.load(NORIA_SEQ_CST); task != nullptr) task::abort(task);
  }
  static void result(task::Future* future, void* out) {
    *static_cast<noria_copy_result*>(out) = {of(future)->ways[0].moved(), of(future)->ways[1].moved()};
  }
  static void destroy(task::Future* future) {
    CopyOp* self = of(future);
    // ORDER: acquire, pairs with the store in copy().
    if (task::Task* task = self->handle.load(NORIA_ACQUIRE); task != nullptr) task::detach(task);
    self->a->unref();
    self->b->unref();
    self->~CopyOp();
  }
};

const task::FutureOps CopyOp::kOps = {cancel, result, destroy, sizeof(noria_copy_result), true, "tcp copy"};

const timer::TimerOps CopyOp::kTimerOps = {
    [](timer::Timer*) noexcept {},
    // Only now may the task arm it again.
    [](timer::Timer* timer) noexcept {
      CopyOp* op = static_cast<Idle*>(timer)->op;
      // ORDER: seq_cst, against the store of the handle in copy(), as in cancel.
      op->idle_told.store(true, NORIA_SEQ_CST);
      // ORDER: seq_cst, as above.
      if (task::Task* task = op->handle.load(NORIA_SEQ_CST); task != nullptr) task::wake_by_ref(task);
      op->release();
    },
};

const noria_task_vtable CopyOp::kTask = {
    sizeof(noria_task_vtable),
    0,
    [](void* state, const noria_cx* cx) { return static_cast<CopyOp*>(state)->poll(cx); },
    [](void* state) {
      static_cast<CopyOp*>(state)->end(-ECANCELED);
      static_cast<CopyOp*>(state)->release();
    },
    nullptr,
    "tcp copy",
};

// A round of each way in turn. READY: all is over.
std::int32_t CopyOp::move(const noria_cx* cx) {
  NoSigpipe signals;
  bool pending[2] = {false, way_count == 1};
  for (int round = 0; round < kRounds; ++round) {
    // ORDER: acquire, pairs with cancel: the streams are no longer ours. The task is aborted, and needs no wake.
    if (cancelled.load(NORIA_ACQUIRE)) return NORIA_PENDING;
    for (int i = 0; i < way_count && i < 2; ++i) {
      if (pending[i]) continue;
      switch (ways[i].step(cx, signals)) {
        case Way::Step::kMoved:
          break;
        case Way::Step::kFailed:
          return ways[i].error();
        case Way::Step::kPending:
        case Way::Step::kOver:
          pending[i] = true;
          break;
      }
    }
    if (over()) return NORIA_READY;
    if (pending[0] && pending[1]) return NORIA_PENDING;
  }
  cx->waker->vtable->wake_by_ref(cx->waker);
  return NORIA_PENDING;
}

// Arms the timer, or says that nothing has moved for too long.
std::int32_t CopyOp::check_idle() {
  std::uint64_t now_ns = core()->now_ns();
  if (moved() != seen_moved) {
    seen_moved = moved();
    moved_ns = now_ns;
  }
  // ORDER: acquire, pairs with the timer's release: it may be armed again.
  if (timer_armed && !idle_told.load(NORIA_ACQUIRE)) return NORIA_OK;
  if (now_ns > moved_ns && now_ns - moved_ns >= idle_ns)
    return -ETIMEDOUT;  // it may be an older reading (C1 of the clock)
  timer_armed = true;
  // ORDER: relaxed, the timer is armed after it.
  idle_told.store(false, NORIA_RELAXED);
  ref();
  if (core()->timer_arm(idle_timer, saturating_add(moved_ns, idle_ns))) return NORIA_OK;
  release();
  return -NORIA_ESHUTDOWN;
}

std::int32_t CopyOp::poll(const noria_cx* cx) {
  std::int32_t status = move(cx);
  if (status == NORIA_PENDING && idle_ns != 0) {
    std::int32_t idle = check_idle();
    if (idle != NORIA_OK) status = idle;
  }
  if (status == NORIA_PENDING) return NORIA_PENDING;
  end(status);
  return NORIA_READY;
}

// From the end of the poll, or from a drop that comes before it. The operation's reference is the task's until the drop.
void CopyOp::end(std::int32_t status) {
  if (!claim()) return;
  ways[0].give_back();
  ways[1].give_back();
  if (timer_armed) (void)core()->timer_cancel(idle_timer);
  leave_streams();
  publish(status);
}

// Who dropped or cancelled the copy may use the streams at once, and a worker may be in the middle of a step: their gates are
// held until end(). Of hold_streams and leave_streams the one that comes second lets go.
void CopyOp::hold_streams() {
  a->reads().hold();
  b->writes().hold();
  if (both_ways) {
    b->reads().hold();
    a->writes().hold();
  }
  // ORDER: acq_rel, one of both sees the other; the end's bytes are back before the gates open.
  if ((hold.fetch_or(kHeld, NORIA_ACQ_REL) & kEnded) != 0) let_go();
}

void CopyOp::leave_streams() {
  a->copy_ends();
  b->copy_ends();
  // ORDER: acq_rel, as in hold_streams.
  if ((hold.fetch_or(kEnded, NORIA_ACQ_REL) & kHeld) != 0) let_go();
}

void CopyOp::let_go() {
  a->reads().unhold();
  b->writes().unhold();
  if (both_ways) {
    b->reads().unhold();
    a->writes().unhold();
  }
}

}  // namespace

std::int32_t copy(Stream* from, Stream* to, std::uint64_t idle_timeout_ns, bool both_ways, noria_future** out) {
  if (from->closed() || to->closed()) return -EBADF;
  runtime::Core* core = from->core();
  if (idle_timeout_ns == NORIA_FOREVER) idle_timeout_ns = 0;
  if (idle_timeout_ns != 0 && !core->time_enabled()) return -NORIA_ENODRIVER;
  auto* op = core->make_future<CopyOp>(from, to, idle_timeout_ns, both_ways);
  if (op == nullptr) return -ENOMEM;
  std::int32_t status = op->ways[0].init(from, to, both_ways, &op->cancelled);
  op->way_count = both_ways ? 2 : 1;
  if (status == 0 && both_ways) status = op->ways[1].init(to, from, true, &op->cancelled);
  op->moved_ns = core->now_ns();
  task::Task* task = nullptr;
  if (status == 0) status = core->spawn(&CopyOp::kTask, op, &task);
  if (status != 0) {
    op->leave_streams();
    op->finish_if_claimed(status);
    op->drop();
    return status;
  }
  // ORDER: seq_cst, see cancel.
  op->handle.store(task, NORIA_SEQ_CST);
  // ORDER: seq_cst, as above. What came before the handle was there is made up for.
  if (op->cancelled.load(NORIA_SEQ_CST)) task::abort(task);
  // ORDER: seq_cst, as above.
  if (op->idle_told.load(NORIA_SEQ_CST)) task::wake_by_ref(task);
  *out = reinterpret_cast<noria_future*>(static_cast<task::Future*>(op));
  return 0;
}

std::int32_t copy_progress(const task::Future* future, noria_copy_result* out) {
  if (future->ops() != &CopyOp::kOps) return -EINVAL;
  const auto* op = static_cast<const CopyOp*>(future);
  *out = {op->ways[0].moved(), op->ways[1].moved()};
  return NORIA_OK;
}

}  // namespace noria::net
