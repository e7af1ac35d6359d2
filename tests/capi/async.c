/* async.c: noria/async.h (A14): awaits that are pending, entered again, or ready at once; loops, branches, children. Compiled as C99, C17, C++11 and C++20 with warnings as errors; each of them runs.
 * (Plain main: it has to be a C99 program.) */
#include <noria/async.h>
#include <noria/noria.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      failures++;                                                     \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                 \
  } while (0)

/* ---- A context that is no runtime's: its waker counts ---- */

static int wakes;
static void count_clone(const noria_waker* waker, noria_waker* out) { *out = *waker; }
static void count_wake(noria_waker* waker) {
  (void)waker;
  wakes++;
}
static void count_wake_by_ref(const noria_waker* waker) {
  (void)waker;
  wakes++;
}
static void count_drop(noria_waker* waker) { (void)waker; }
static const noria_waker_vtable count_vtable = {count_clone, count_wake, count_wake_by_ref, count_drop};
static const noria_waker count_waker = {&count_vtable, NULL, NULL};
static const noria_cx count_cx = {&count_waker, {0, 0, 0}};

/* A poll form that answers from a list, and counts how often it was asked. */
typedef struct Script {
  const int32_t* answers;
  int asked;
} Script;

static int32_t script_poll(Script* script) { return script->answers[script->asked++]; }

/* ---- Await ---- */

typedef struct Two {
  noria_frame frame;
  Script first, second;
  int32_t first_status, second_status;
  int between;
} Two;

static int32_t two_poll(Two* t, const noria_cx* cx) {
  NORIA_BEGIN(&t->frame, cx);
  NORIA_AWAIT(&t->frame, script_poll(&t->first));
  t->first_status = t->frame.status;
  t->between++;
  NORIA_AWAIT(&t->frame, script_poll(&t->second));
  t->second_status = t->frame.status;
  NORIA_END(&t->frame);
}

static void Await_pending_resumesWhereItStopped(void) {
  static const int32_t first[] = {NORIA_PENDING, NORIA_PENDING, NORIA_READY};
  static const int32_t second[] = {NORIA_PENDING, -5};
  Two t;
  memset(&t, 0, sizeof t);
  t.first.answers = first;
  t.second.answers = second;
  t.first_status = t.second_status = 99;
  CHECK(two_poll(&t, &count_cx) == NORIA_PENDING);
  CHECK(t.frame.point > 0 && t.frame.cx == &count_cx);
  CHECK(two_poll(&t, &count_cx) == NORIA_PENDING && t.between == 0);
  CHECK(two_poll(&t, &count_cx) == NORIA_PENDING);
  CHECK(t.between == 1 && t.first_status == NORIA_READY && t.first.asked == 3);
  CHECK(two_poll(&t, &count_cx) == NORIA_READY);
  CHECK(t.between == 1 && t.second_status == -5 && t.second.asked == 2);
  CHECK(t.frame.point == -1);
  CHECK(two_poll(&t, &count_cx) == NORIA_READY && t.first.asked == 3); /* the end stays the end */
}

static void Await_readyAtOnce_doesNotLeave(void) {
  static const int32_t ready[] = {NORIA_READY};
  Two t;
  memset(&t, 0, sizeof t);
  t.first.answers = t.second.answers = ready;
  CHECK(two_poll(&t, &count_cx) == NORIA_READY && t.first.asked == 1 && t.second.asked == 1);
}

static void Frame_notZeroed_isToldByError(void) {
  Two t;
  memset(&t, 0x5a, sizeof t);
  CHECK(two_poll(&t, &count_cx) == -NORIA_EBADSTATE);
}

static void Frame_reset_beginsAnew(void) {
  static const int32_t ready[] = {NORIA_READY, NORIA_READY};
  Two t;
  memset(&t, 0, sizeof t);
  t.first.answers = t.second.answers = ready;
  CHECK(two_poll(&t, &count_cx) == NORIA_READY);
  noria_frame_reset(&t.frame);
  CHECK(two_poll(&t, &count_cx) == NORIA_READY && t.first.asked == 2 && t.between == 2);
}

/* ---- Try, return, loops, branches, children ---- */

typedef struct Sum {
  noria_frame frame;
  Script script;
  Two child;
  int i, sum, after;
  int branch;
} Sum;

static int32_t sum_poll(Sum* s, const noria_cx* cx) {
  NORIA_BEGIN(&s->frame, cx);
  for (s->i = 0; s->i < 3; s->i++) {
    NORIA_TRY(&s->frame, script_poll(&s->script));
    if (s->branch == 1)
      NORIA_AWAIT(&s->frame, two_poll(&s->child, cx));
    else if (s->branch == 2)
      NORIA_RETURN(&s->frame, -7);
    else
      NORIA_YIELD(&s->frame);
    s->sum += s->i;
  }
  s->after = 1;
  NORIA_END(&s->frame);
}

static void Try_error_endsTheFunctionWithIt(void) {
  static const int32_t answers[] = {NORIA_READY, NORIA_PENDING, -5};
  Sum s;
  memset(&s, 0, sizeof s);
  s.script.answers = answers;
  wakes = 0;
  CHECK(sum_poll(&s, &count_cx) == NORIA_PENDING && wakes == 1); /* the yield of the first round */
  CHECK(sum_poll(&s, &count_cx) == NORIA_PENDING && wakes == 1); /* the script, which woke nobody */
  CHECK(sum_poll(&s, &count_cx) == -5);
  CHECK(s.sum == 0 && s.i == 1 && s.after == 0 && s.frame.point == -1);
  CHECK(sum_poll(&s, &count_cx) == -5 && s.script.asked == 3);
}

static void Return_status_isKept(void) {
  static const int32_t answers[] = {NORIA_READY};
  Sum s;
  memset(&s, 0, sizeof s);
  s.script.answers = answers;
  s.branch = 2;
  CHECK(sum_poll(&s, &count_cx) == -7 && sum_poll(&s, &count_cx) == -7 && s.script.asked == 1);
}

static void Yield_inALoop_wakesOnceARound(void) {
  static const int32_t answers[] = {NORIA_READY, NORIA_READY, NORIA_READY};
  Sum s;
  memset(&s, 0, sizeof s);
  s.script.answers = answers;
  wakes = 0;
  for (int round = 1; round <= 3; round++) {
    CHECK(sum_poll(&s, &count_cx) == NORIA_PENDING && wakes == round);
  }
  CHECK(sum_poll(&s, &count_cx) == NORIA_READY && s.sum == 3 && s.after == 1 && wakes == 3);
}

static void Child_pending_suspendsTheParent(void) {
  static const int32_t answers[] = {NORIA_READY, NORIA_READY, NORIA_READY};
  static const int32_t first[] = {NORIA_PENDING, NORIA_READY};
  static const int32_t second[] = {NORIA_PENDING, NORIA_READY};
  Sum s;
  memset(&s, 0, sizeof s);
  s.script.answers = answers;
  s.branch = 1;
  s.child.first.answers = first;
  s.child.second.answers = second;
  CHECK(sum_poll(&s, &count_cx) == NORIA_PENDING && s.script.asked == 1);
  CHECK(sum_poll(&s, &count_cx) == NORIA_PENDING && s.script.asked == 1 && s.child.between == 1);
  CHECK(sum_poll(&s, &count_cx) == NORIA_READY && s.sum == 3 && s.child.between == 1);
}

/* ---- Futures, in a runtime ---- */

typedef struct Job {
  noria_frame frame;
  noria_runtime* rt;
  noria_future* op;
  noria_oneshot_sender* sender;
  noria_oneshot_receiver* receiver;
  void* value;
  int32_t refused;
  int dropped;
  int32_t point_at_drop;
  int had_op_at_drop;
} Job;

static int32_t job_poll(void* state, const noria_cx* cx) {
  Job* j = (Job*)state;
  NORIA_BEGIN(&j->frame, cx);
  NORIA_TRY_CALL(&j->frame, j->op, noria_sleep(j->rt, 1000000, &j->op), NULL, 0);
  CHECK(j->op == NULL);
  NORIA_AWAIT_CALL(&j->frame, j->op, noria_interval_tick(NULL, &j->op), NULL, 0); /* fails when it is called */
  j->refused = j->frame.status;
  NORIA_TRY(&j->frame, noria_oneshot_new(j->rt, NULL, &j->sender, &j->receiver));
  NORIA_TRY(&j->frame, noria_oneshot_send(j->sender, &failures));
  NORIA_TRY(&j->frame, noria_oneshot_receive(j->receiver, &j->op));
  NORIA_AWAIT_FUTURE(&j->frame, j->op, &j->value, sizeof j->value);
  CHECK(j->frame.status == NORIA_OK && j->op == NULL && j->value == &failures);
  NORIA_TRY_CALL(&j->frame, j->op, noria_sleep(j->rt, NORIA_FOREVER, &j->op), NULL, 0);
  NORIA_END(&j->frame);
}

static void job_drop(void* state) {
  Job* j = (Job*)state;
  j->dropped++;
  j->point_at_drop = j->frame.point;
  j->had_op_at_drop = j->op != NULL;
  if (j->op != NULL) noria_future_drop(j->op);
  if (j->receiver != NULL) noria_oneshot_receiver_drop(j->receiver);
}

static const noria_task_vtable job_vtable = {sizeof(noria_task_vtable), 0, job_poll, job_drop, NULL, "job"};

static void Future_awaited_passesItsResultAndIsDropped(void) {
  noria_runtime_options options;
  noria_runtime* rt = NULL;
  noria_task* task = NULL;
  noria_counts counts;
  Job j;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.kind = NORIA_RUNTIME_CURRENT_THREAD;
  memset(&j, 0, sizeof j);
  CHECK(noria_runtime_new(&options, &rt) == NORIA_OK);
  j.rt = rt;
  CHECK(noria_spawn(rt, &job_vtable, &j, &task) == NORIA_OK);
  for (int turn = 0; turn < 1000 && j.value == NULL; turn++) CHECK(noria_runtime_turn(rt, 1000000000, NULL) >= 0);
  CHECK(j.value == &failures && j.refused == -22);
  CHECK(noria_task_is_complete(task) == 0 && j.dropped == 0);

  /* Aborted in the middle: drop sees the frame at the last await, with its future. */
  CHECK(noria_task_abort(task) == NORIA_OK);
  for (int turn = 0; turn < 1000 && j.dropped == 0; turn++) CHECK(noria_runtime_turn(rt, 1000000000, NULL) >= 0);
  CHECK(j.dropped == 1 && j.point_at_drop > 0 && j.had_op_at_drop == 1);
  CHECK(noria_task_detach(task) == NORIA_OK);
  CHECK(noria_runtime_free(rt) == NORIA_OK);
  memset(&counts, 0, sizeof counts);
  counts.size = sizeof counts;
  CHECK(noria_live_counts(&counts) == NORIA_OK);
  CHECK(counts.tasks == 0 && counts.futures == 0 && counts.timers == 0 && counts.wakers == 0);
  CHECK(counts.allocations == 0 && counts.descriptors == 0);
}

int main(void) {
  Await_pending_resumesWhereItStopped();
  Await_readyAtOnce_doesNotLeave();
  Frame_notZeroed_isToldByError();
  Frame_reset_beginsAnew();
  Try_error_endsTheFunctionWithIt();
  Return_status_isKept();
  Yield_inALoop_wakesOnceARound();
  Child_pending_suspendsTheParent();
  Future_awaited_passesItsResultAndIsDropped();
  if (failures == 0) printf("9 tests passed\n");
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
