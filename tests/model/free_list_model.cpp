// The slab's remote free list and the end of a slab without owner, in every interleaving that relacy
// reaches. Built twice: as it is, and with NORIA_PLANT_FREE_LIST, where the bug must be found.
#include "base/free_list.hpp"

#include <cstdio>

namespace {

struct Node {
  rl::var<Node*> next;
  rl::var<int> content;
};

constexpr int kNodes = 3;
constexpr int kFreers = 2;

// The owner has handed out all nodes. Two threads free one each; the owner frees one itself, takes in
// what has come back, and leaves, at any time.
struct FreeListModel : rl::test_suite<FreeListModel, kFreers + 1> {
  noria::FreeList<Node> list;
  Node nodes[kNodes];
  rl::var<int> ends;
  rl::var<int> owner_gone;

  void before() {
    for (Node& node : nodes) {
      VAR(node.next) = nullptr;
      VAR(node.content) = 0;
    }
    VAR(ends) = 0;
    VAR(owner_gone) = 0;
  }

  // What ends the slab must see everything: every node's content, and the owner's last write.
  void end() {
    for (Node& node : nodes) RL_ASSERT(VAR(node.content) >= 1);
    RL_ASSERT(VAR(owner_gone) == 1);
    VAR(ends) = VAR(ends) + 1;
  }

  void give_back(Node& node) {
    VAR(node.content) = VAR(node.content) + 1;
    if (list.push(&node)) return;
    if (list.leave()) end();
  }

  int drain(Node* taken) {
    int count = 0;
    for (; taken != nullptr; taken = VAR(taken->next)) {
      VAR(taken->content) = VAR(taken->content) + 10;
      ++count;
    }
    return count;
  }

  void own() {
    int out = kNodes;
    VAR(nodes[2].content) = 1;
    --out;  // a local free touches no shared word
    if (list.maybe_filled()) out -= drain(list.take());
    VAR(owner_gone) = 1;
    out -= drain(list.close());
    if (list.settle(out)) end();
  }

  void thread(unsigned index) {
    if (index == kFreers) return own();
    give_back(nodes[index]);
  }

  void after() { RL_ASSERT(VAR(ends) == 1); }
};

}  // namespace

int main() {
  rl::test_params params;
#ifdef NORIA_PLANT_FREE_LIST
  params.search_type = rl::sched_random;
  params.iteration_count = 100000;
  rl::simulate<FreeListModel>(params);
  // A node is lost between the two halves of close(), so that nobody ends the slab.
  bool found = params.test_result == rl::test_result_user_assert_failed;
  std::printf("the planted bug was %sfound\n", found ? "" : "not ");
  return found ? 0 : 1;
#else
  params.search_type = rl::sched_full;
  return rl::simulate<FreeListModel>(params) ? 0 : 1;
#endif
}
