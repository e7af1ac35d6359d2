//! Workloads whose tasks make tasks: `micro/tree.c`.

use std::hint::black_box;

use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::gate::Gate;
use crate::tasks::rounds;
use crate::{argument, cpu_ns, now_ns, since, Outcome, Run};

/// The finaliser of splitmix64: `bench_mix` of `bench.h`.
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

fn work(x: u64, hashes: u64) -> u64 {
    (0..hashes).fold(x, |x, _| mix(x))
}

/// A call with n >= 2 forks that of n - 1 as a task, makes that of n - 2 in place (which is the loop), and joins.
fn fork(mut n: u64) -> JoinHandle<u64> {
    tokio::spawn(async move {
        let mut forks = Vec::with_capacity(n as usize / 2);
        while n >= 2 {
            forks.push(fork(n - 1));
            n -= 2;
        }
        let mut sum = n;
        while let Some(last) = forks.pop() {
            sum += last.await.unwrap();
        }
        sum
    })
}

/// fib(n), and how many calls of it fork.
fn expected(n: u64) -> (u64, u64) {
    let ((value, forks), _) = (0..n).fold(((0, 0), (1, 0)), |(a, b): ((u64, u64), (u64, u64)), _| (b, (a.0 + b.0, a.1 + b.1 + 1)));
    (value, forks)
}

fn fib_run(rt: &Runtime, n: u64) -> Outcome {
    let root = rt.spawn(async move {
        let times = (now_ns(), cpu_ns());
        let value = fork(n).await.unwrap();
        (value, since(times))
    });
    let (value, outcome) = rt.block_on(root).unwrap();
    assert_eq!(value, expected(n).0);
    Outcome { ops: Some(expected(n).1), ..outcome }
}

pub fn fork_join_fib(rt: &Runtime, _run: Run) -> Outcome {
    let n = argument("--n", 32);
    fib_run(rt, n - 4); // a warm-up
    fib_run(rt, n)
}

const NODE_HASHES: u64 = 32;
const CHILDREN: u64 = 8;
const PARENTS_OF_10000: u64 = 1244;

fn root_id(seed: u64, i: u64) -> u64 {
    mix((seed << 32).wrapping_add(i))
}

fn children_of(hash: u64) -> u64 {
    if hash % 10000 < PARENTS_OF_10000 {
        CHILDREN
    } else {
        0
    }
}

fn spawn_node(id: u64, gate: &'static Gate) {
    tokio::spawn(async move {
        let hash = work(id, NODE_HASHES);
        for i in 0..children_of(hash) {
            spawn_node(hash.wrapping_add(i), gate);
        }
        gate.pass();
    });
}

/// How many nodes there are, by a walk with a stack.
fn tree_nodes(roots: u64, seed: u64) -> u64 {
    let mut nodes = 0;
    let mut stack: Vec<u64> = (0..roots).map(|i| root_id(seed, i)).collect();
    while let Some(id) = stack.pop() {
        let hash = work(id, NODE_HASHES);
        nodes += 1;
        stack.extend((0..children_of(hash)).map(|i| hash.wrapping_add(i)));
    }
    nodes
}

fn tree_run(rt: &Runtime, run: Run, roots: u64, seed: u64) -> Outcome {
    let nodes = tree_nodes(roots, seed);
    let all = Run { ops: nodes, batch: nodes, ..run };
    let outcome = rounds(rt, all, nodes, move |_, gate| (0..roots).for_each(|i| spawn_node(root_id(seed, i), gate)));
    Outcome { ops: Some(nodes), ..outcome }
}

pub fn uneven_tree(rt: &Runtime, run: Run) -> Outcome {
    let (roots, seed) = (argument("--roots", 4000), argument("--seed", 1));
    tree_run(rt, run, roots / 10, seed); // a warm-up
    tree_run(rt, run, roots, seed)
}

pub fn unbalanced_producer(rt: &Runtime, run: Run) -> Outcome {
    let hashes = argument("--work", 400);
    rounds(rt, run, run.batch, move |passes, gate| {
        for id in 0..passes {
            tokio::spawn(async move {
                black_box(work(id, hashes));
                gate.pass();
            });
        }
    })
}
