/* consumer.c: a program outside the tree. C99 and C++ at once: it is built as both. */
#include <noria.h>
#include <stdio.h>
#include <string.h>

typedef struct counter {
  int polls;
  int drops;
} counter;

static int32_t counter_poll(void* state, const noria_cx* cx) {
  counter* c = (counter*)state;
  if (++c->polls < 3) return noria_yield(cx);
  return NORIA_READY;
}

static void counter_drop(void* state) { ((counter*)state)->drops++; }

static int check(const char* what, int32_t status) {
  if (status != NORIA_OK) printf("%s: %s\n", what, noria_error_name(status));
  return status != NORIA_OK;
}

int main(void) {
  noria_task_vtable vtable;
  noria_counts counts;
  counter c = {0, 0};
  noria_runtime* rt = NULL;
  noria_task* task = NULL;
  noria_future* join = NULL;
  int faults = 0;

  memset(&vtable, 0, sizeof vtable);
  vtable.size = sizeof vtable;
  vtable.poll = counter_poll;
  vtable.drop = counter_drop;
  vtable.name = "counter";
  if (noria_version() != NORIA_VERSION) {
    printf("header %d, library %d\n", NORIA_VERSION, (int)noria_version());
    return 1;
  }
  faults += check("runtime_new", noria_runtime_new(NULL, &rt));
  faults += check("spawn", noria_spawn(rt, &vtable, &c, &task));
  faults += check("join", noria_task_join(task, &join));
  faults += check("wait", noria_future_wait(join, NORIA_FOREVER));
  faults += check("drop", noria_future_drop(join));
  faults += check("detach", noria_task_detach(task));
  faults += check("free", noria_runtime_free(rt));
  if (c.polls != 3 || c.drops != 1) {
    printf("%d polls, %d drops\n", c.polls, c.drops);
    faults++;
  }
  memset(&counts, 0, sizeof counts);
  counts.size = sizeof counts;
  faults += check("live_counts", noria_live_counts(&counts));
  if (counts.tasks != 0 || counts.futures != 0 || counts.allocations != 0 || counts.descriptors != 0) {
    printf("left alive: %d tasks, %d futures, %d allocations, %d descriptors\n", (int)counts.tasks, (int)counts.futures,
           (int)counts.allocations, (int)counts.descriptors);
    faults++;
  }
  return faults != 0;
}
