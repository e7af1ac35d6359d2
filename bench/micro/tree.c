/* tree.c: workloads whose tasks make tasks: fork and join, a skewed tree, one producer for all. */
#include "micro/micro.h"

/* fork_join_fib: a call of n >= 2 forks the call of n - 1 as a task, makes that of n - 2 in place, and joins. In a poll
 * function the calls in place are a loop: a task of n forks those of n - 1, n - 3, ..., then joins them, the last first. */

typedef struct fork {
  noria_task* task;
  uint64_t value;
} fork_slot;

typedef struct fib {
  noria_runtime* rt;
  uint64_t* out;
  uint64_t sum;
  uint32_t n;
  uint32_t pending; /* forks that are not joined */
  fork_slot forks[];
} fib;

static int32_t fib_poll(void* state, const noria_cx* cx);
static const noria_task_vtable fib_task = {sizeof fib_task, 0, fib_poll, NULL, NULL, "fib"};

static noria_task* fib_fork(noria_runtime* rt, uint32_t n, uint64_t* out) {
  void* state;
  noria_task* task;
  size_t size = sizeof(fib) + n / 2 * sizeof(fork_slot);
  BENCH_CHECK(noria_task_new(rt, &fib_task, size, _Alignof(fib), &state, &task) == NORIA_OK);
  *(fib*)state = (fib){.rt = rt, .out = out, .n = n};
  BENCH_CHECK(noria_task_start(task) == NORIA_OK);
  return task;
}

static int32_t fib_poll(void* state, const noria_cx* cx) {
  fib* f = state;
  for (; f->n >= 2; f->n -= 2) {
    fork_slot* slot = &f->forks[f->pending++];
    slot->task = fib_fork(f->rt, f->n - 1, &slot->value);
  }
  while (f->pending > 0) {
    fork_slot* slot = &f->forks[f->pending - 1];
    noria_join_result result;
    int32_t ready = noria_task_poll_join(slot->task, cx, &result);
    if (ready != NORIA_READY) return ready;
    BENCH_CHECK(result.kind == NORIA_JOIN_DONE);
    noria_task_detach(slot->task);
    f->sum += slot->value;
    f->pending--;
  }
  *f->out = f->sum + f->n; /* what is left of n is the innermost call: 0 or 1 */
  return NORIA_READY;
}

typedef struct fib_root {
  bench_run* run;
  noria_task* task;
  uint64_t value;
  uint32_t n;
} fib_root;

static int32_t fib_root_poll(void* state, const noria_cx* cx) {
  fib_root* root = state;
  noria_join_result result;
  if (root->task == NULL) {
    bench_begin(root->run);
    root->task = fib_fork(root->run->rt, root->n, &root->value);
  }
  int32_t ready = noria_task_poll_join(root->task, cx, &result);
  if (ready != NORIA_READY) return ready;
  bench_end(root->run);
  BENCH_CHECK(result.kind == NORIA_JOIN_DONE);
  noria_task_detach(root->task);
  return NORIA_READY;
}

/* fib(n), and how many calls of it fork. */
static void fib_expected(uint32_t n, uint64_t* value, uint64_t* forks) {
  uint64_t values[2] = {0, 1}, counts[2] = {0, 0};
  for (uint32_t i = 2; i <= n; i++) {
    values[i % 2] = values[0] + values[1];
    counts[i % 2] = counts[0] + counts[1] + 1;
  }
  *value = values[n % 2];
  *forks = counts[n % 2];
}

static void fib_run(bench_run* run, uint32_t n) {
  static const noria_task_vtable task = {sizeof task, 0, fib_root_poll, NULL, NULL, "fib root"};
  fib_root root = {.run = run, .n = n};
  uint64_t expected;
  fib_expected(n, &expected, &run->ops);
  run_root(run->rt, &task, &root);
  BENCH_CHECK(root.value == expected);
}

void fork_join_fib(bench_run* run) {
  uint32_t n = (uint32_t)bench_option(run, "--n", 32);
  BENCH_CHECK(n >= 6);
  fib_run(run, n - 4); /* a warm-up */
  fib_run(run, n);
}

/* uneven_tree: each node hashes, and has eight children or none, as the hash says. */

enum { kNodeHashes = 32, kChildren = 8, kParentsOf10000 = 1244 };

typedef struct node {
  noria_runtime* rt;
  gate* gate;
  uint64_t id;
} node;

static uint64_t root_id(uint64_t seed, uint64_t i) { return bench_mix((seed << 32) + i); }

static uint64_t children_of(uint64_t hash) { return hash % 10000 < kParentsOf10000 ? kChildren : 0; }

static int32_t node_poll(void* state, const noria_cx* cx);
static const noria_task_vtable node_task = {sizeof node_task, 0, node_poll, NULL, NULL, "node"};

static int32_t node_poll(void* state, const noria_cx* cx) {
  (void)cx;
  node* n = state;
  uint64_t hash = bench_work(n->id, kNodeHashes), count = children_of(hash);
  for (uint64_t i = 0; i < count; i++) {
    node child = {.rt = n->rt, .gate = n->gate, .id = hash + i};
    spawn_with(n->rt, &node_task, &child, sizeof child);
  }
  gate_pass(n->gate);
  return NORIA_READY;
}

static void tree_begin(rounds* r, const noria_cx* cx) {
  (void)cx;
  const uint64_t* roots_and_seed = r->data;
  for (uint64_t i = 0; i < roots_and_seed[0]; i++) {
    node child = {.rt = r->run->rt, .gate = &r->gate, .id = root_id(roots_and_seed[1], i)};
    spawn_with(child.rt, &node_task, &child, sizeof child);
  }
}

/* How many nodes there are, by a walk with a stack. */
static uint64_t tree_nodes(uint64_t roots, uint64_t seed) {
  uint64_t nodes = 0, room = 4096, depth = 0;
  uint64_t* stack = malloc(room * sizeof *stack);
  for (uint64_t i = 0; i < roots; i++) {
    stack[depth++] = root_id(seed, i);
    while (depth > 0) {
      uint64_t hash = bench_work(stack[--depth], kNodeHashes), count = children_of(hash);
      nodes++;
      if (depth + count > room) stack = realloc(stack, (room *= 2) * sizeof *stack);
      BENCH_CHECK(stack != NULL);
      for (uint64_t child = 0; child < count; child++) stack[depth++] = hash + child;
    }
  }
  free(stack);
  return nodes;
}

static void tree_run(bench_run* run, uint64_t roots, uint64_t seed) {
  uint64_t roots_and_seed[2] = {roots, seed};
  run->ops = run->batch = tree_nodes(roots, seed);
  rounds_run(run, run->ops, tree_begin, roots_and_seed);
}

void uneven_tree(bench_run* run) {
  uint64_t roots = bench_option(run, "--roots", 4000), seed = bench_option(run, "--seed", 1);
  tree_run(run, roots / 10, seed); /* a warm-up */
  tree_run(run, roots, seed);
}

/* unbalanced_producer: the root spawns tasks that hash; the others are to take theirs. */

typedef struct product {
  gate* gate;
  uint64_t id;
  uint64_t hashes;
} product;

static int32_t product_poll(void* state, const noria_cx* cx) {
  (void)cx;
  product* p = state;
  BENCH_CHECK(bench_work(p->id, p->hashes) != 0); /* keeps the work from being left out */
  gate_pass(p->gate);
  return NORIA_READY;
}

static void produce_begin(rounds* r, const noria_cx* cx) {
  static const noria_task_vtable task = {sizeof task, 0, product_poll, NULL, NULL, "product"};
  (void)cx;
  uint64_t hashes = bench_option(r->run, "--work", 400);
  for (uint64_t i = 0; i < r->passes; i++) {
    product p = {.gate = &r->gate, .id = i, .hashes = hashes};
    spawn_with(r->run->rt, &task, &p, sizeof p);
  }
}

void unbalanced_producer(bench_run* run) { rounds_run(run, run->batch, produce_begin, NULL); }
