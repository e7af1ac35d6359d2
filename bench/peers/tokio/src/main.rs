//! noria-bench-tokio WORKLOAD [--workers N] [--ops N] [--batch N] [--warmup N] [...]
//! noria-bench-tokio (echo [--buffer B] | service) [--workers N]
//! noria-bench-tokio proxy --upstream HOST:PORT [--workers N]
//!
//! The workloads of `bench/micro` and the servers of `bench/net` and `bench/service` on Tokio: the same rounds, the same
//! gate, the same JSON line. Tasks that need state carry it inside their future, as Noria's do in theirs.

mod blocking;
mod echo;
mod gate;
mod memory;
mod proxy;
mod service;
mod signal;
mod tasks;
mod time;
mod tree;
mod wake;

use tokio::runtime::Runtime;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// One run of a workload, as `bench_run` of `micro.h`.
#[derive(Clone, Copy)]
pub struct Run {
    pub workers: u64,
    pub ops: u64,
    pub batch: u64,
}

/// What a run gives: figures of its own, or times of which the main program makes figures an operation.
#[derive(Default)]
pub struct Outcome {
    pub wall_ns: u64,
    pub cpu_ns: u64,
    /// Where the workload itself knows how many there were.
    pub ops: Option<u64>,
    pub figures: Vec<(&'static str, f64)>,
}

pub fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(clock, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

pub fn now_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// CPU time of this process, all threads, user and kernel.
pub fn cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

pub fn thread_cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Keeps the CPU busy until so much time has passed.
pub fn burn_ns(duration_ns: u64) {
    let end = now_ns() + duration_ns;
    while now_ns() < end {}
}

/// Wall and CPU time since `begin` (of `now_ns` and `cpu_ns`).
pub fn since(begin: (u64, u64)) -> Outcome {
    Outcome { wall_ns: now_ns() - begin.0, cpu_ns: cpu_ns() - begin.1, ..Outcome::default() }
}

/// Sorts `values` and gives the one that `share` of them lie below, in us.
pub fn percentile_us(values: &mut [u64], share: f64) -> f64 {
    values.sort_unstable();
    let index = (values.len() as f64 * share) as usize;
    values[index.min(values.len() - 1)] as f64 / 1e3
}

pub fn word_behind(name: &str) -> Option<String> {
    std::env::args().skip_while(|word| word != name).nth(1)
}

pub fn argument(name: &str, fallback: u64) -> u64 {
    word_behind(name).map_or(fallback, |word| word.parse().expect("a number"))
}

pub fn runtime(workers: u64) -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers as usize)
        .enable_all()
        .build()
        .expect("a runtime")
}

type Workload = (&'static str, u64, u64, fn(&Runtime, Run) -> Outcome);

const WORKLOADS: &[Workload] = &[
    ("spawn_many", 1_000_000, 10_000, tasks::spawn_many),
    ("spawn_remote", 1_000_000, 10_000, tasks::spawn_remote),
    ("yield_many", 1_000_000, 1_000_000, tasks::yield_many),
    ("ping_pong", 200_000, 1_000, tasks::ping_pong),
    ("chained_spawn", 1_000_000, 1_000_000, tasks::chained_spawn),
    ("unbalanced_producer", 100_000, 10_000, tree::unbalanced_producer),
    ("fork_join_fib", 1, 1, tree::fork_join_fib),
    ("uneven_tree", 1, 1, tree::uneven_tree),
    ("wake_latency", 1_000, 1_000, wake::wake_latency),
    ("light_load", 1_000, 1_000, wake::light_load),
    ("timer_churn", 1_000_000, 10_000, time::timer_churn),
    ("timer_reset", 1_000_000, 10_000, time::timer_reset),
    ("timer_fire", 100_000, 100_000, time::timer_fire),
    ("blocking", 200_000, 200_000, blocking::blocking),
    ("blocking_seq", 10_000, 1, blocking::blocking_seq),
    ("idle_task_bytes", 100_000, 1_000, memory::idle_task_bytes),
    ("timer_bytes", 100_000, 1_000, memory::timer_bytes),
    ("startup", 100, 1, memory::startup),
];

/// These have no operations to warm up with, or must not.
const COLD: &[&str] = &["fork_join_fib", "uneven_tree", "idle_task_bytes", "timer_bytes", "startup"];

fn main() {
    let name = std::env::args().nth(1).unwrap_or_default();
    let workers = argument("--workers", 1);
    match name.as_str() {
        "echo" => return echo::serve(workers as usize),
        "proxy" => return proxy::serve(workers as usize, word_behind("--upstream").expect("--upstream").leak()),
        "service" => return service::serve(workers),
        _ => (),
    }
    let Some(&(name, ops, batch, workload)) = WORKLOADS.iter().find(|w| w.0 == name) else {
        eprintln!("usage: noria-bench-tokio WORKLOAD [--workers N] [--ops N] [--batch N] [--warmup N]");
        std::process::exit(2);
    };
    let rt = runtime(workers);
    let ops = argument("--ops", ops);
    let batch = argument("--batch", batch).min(ops);
    let warmup = if COLD.contains(&name) { 0 } else { argument("--warmup", ops / 10) };
    if warmup > 0 {
        workload(&rt, Run { workers, ops: warmup, batch: batch.min(warmup) });
    }
    let outcome = workload(&rt, Run { workers, ops, batch });
    report(name, Run { workers, ops: outcome.ops.unwrap_or(ops), batch }, &outcome);
}

fn report(name: &str, run: Run, outcome: &Outcome) {
    print!("{{\"workload\": \"{name}\", \"contender\": \"tokio\", \"workers\": {}", run.workers);
    print!(", \"ops\": {}, \"batch\": {}", run.ops, run.batch);
    for (name, value) in &outcome.figures {
        print!(", \"{name}\": {value:.3}");
    }
    for (name, time_ns) in [("ns_per_op", outcome.wall_ns), ("cpu_ns_per_op", outcome.cpu_ns)] {
        if time_ns > 0 {
            print!(", \"{name}\": {:.3}", time_ns as f64 / run.ops as f64);
        }
    }
    println!("}}");
}
