// tree.hpp: what fork_join_fib and uneven_tree have to come to, and the shape of that tree: as micro/tree.c.
#pragma once

#include <cstdint>
#include <vector>

#include "common/bench.h"

namespace peer {

struct Fib {
  std::uint64_t value;
  std::uint64_t forks;
};

/// fib(n), and how many of its calls fork.
inline Fib fib_expected(std::uint64_t n) {
  Fib one{0, 0}, two{1, 0};  // of i and i + 1
  for (std::uint64_t i = 0; i < n; i++) {
    const Fib next{one.value + two.value, one.forks + two.forks + 1};
    one = two;
    two = next;
  }
  return one;
}

enum : std::uint64_t { kNodeHashes = 32, kChildren = 8, kParentsOf10000 = 1244 };

inline std::uint64_t root_id(std::uint64_t seed, std::uint64_t i) { return bench_mix((seed << 32) + i); }

inline std::uint64_t children_of(std::uint64_t hash) {
  return hash % 10000 < kParentsOf10000 ? std::uint64_t{kChildren} : 0;
}

/// How many nodes the tree has, by a walk with a stack.
inline std::uint64_t tree_nodes(std::uint64_t roots, std::uint64_t seed) {
  std::uint64_t nodes = 0;
  std::vector<std::uint64_t> stack;
  for (std::uint64_t i = 0; i < roots; i++) {
    stack.push_back(root_id(seed, i));
    while (!stack.empty()) {
      const std::uint64_t hash = bench_work(stack.back(), kNodeHashes);
      stack.pop_back();
      nodes++;
      for (std::uint64_t child = 0; child < children_of(hash); child++) stack.push_back(hash + child);
    }
  }
  return nodes;
}

}  // namespace peer
