//! noria-bench-tokio WORKLOAD [--workers N] [--ops N] [--batch N] [--warmup N]
//! noria-bench-tokio echo [--workers N]
//!
//! The workloads of `bench/micro` and the echo server of `bench/net` on Tokio: the same rounds, the same
//! gate, the same JSON line. Tasks that need state carry it inside their future, as Noria's do in theirs.

mod blocking;
mod echo;
mod gate;
mod tasks;
mod time;

use tokio::runtime::Runtime;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// One run of a workload, as `bench_run` of `micro.h`.
#[derive(Clone, Copy)]
pub struct Run {
    pub ops: u64,
    pub batch: u64,
}

#[derive(Default)]
pub struct Outcome {
    pub wall_ns: u64,
    pub cpu_ns: u64,
    /// timer_fire: p50, p99, max
    pub lateness_ns: Option<[u64; 3]>,
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

/// Wall and CPU time since `begin` (of `now_ns` and `cpu_ns`).
pub fn since(begin: (u64, u64)) -> Outcome {
    Outcome { wall_ns: now_ns() - begin.0, cpu_ns: cpu_ns() - begin.1, lateness_ns: None }
}

pub fn argument(name: &str, fallback: u64) -> u64 {
    let mut words = std::env::args().skip_while(|word| word != name).skip(1);
    words.next().map_or(fallback, |word| word.parse().expect("a number"))
}

type Workload = (&'static str, u64, u64, fn(&Runtime, Run) -> Outcome);

const WORKLOADS: &[Workload] = &[
    ("spawn_many", 1_000_000, 10_000, tasks::spawn_many),
    ("spawn_remote", 1_000_000, 10_000, tasks::spawn_remote),
    ("yield_many", 1_000_000, 1_000_000, tasks::yield_many),
    ("ping_pong", 200_000, 1_000, tasks::ping_pong),
    ("chained_spawn", 1_000_000, 1_000_000, tasks::chained_spawn),
    ("timer_churn", 1_000_000, 10_000, time::timer_churn),
    ("timer_fire", 100_000, 100_000, time::timer_fire),
    ("blocking", 200_000, 200_000, blocking::blocking),
];

fn main() {
    let name = std::env::args().nth(1).unwrap_or_default();
    let workers = argument("--workers", 1);
    if name == "echo" {
        return echo::serve(workers as usize);
    }
    let Some(&(name, ops, batch, workload)) = WORKLOADS.iter().find(|w| w.0 == name) else {
        eprintln!("usage: noria-bench-tokio WORKLOAD [--workers N] [--ops N] [--batch N] [--warmup N]");
        std::process::exit(2);
    };
    let rt = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers as usize)
        .enable_all()
        .build()
        .expect("a runtime");
    let ops = argument("--ops", ops);
    let batch = argument("--batch", batch);
    let warmup = argument("--warmup", ops / 10);
    if warmup > 0 {
        workload(&rt, Run { ops: warmup, batch: batch.min(warmup) });
    }
    let outcome = workload(&rt, Run { ops, batch: batch.min(ops) });

    print!("{{\"workload\": \"{name}\", \"contender\": \"tokio\", \"workers\": {workers}");
    print!(", \"ops\": {ops}, \"batch\": {}", batch.min(ops));
    if let Some([p50, p99, max]) = outcome.lateness_ns {
        print!(", \"lateness_p50_us\": {:.3}", p50 as f64 / 1e3);
        print!(", \"lateness_p99_us\": {:.3}", p99 as f64 / 1e3);
        print!(", \"lateness_max_us\": {:.3}", max as f64 / 1e3);
    } else {
        print!(", \"ns_per_op\": {:.3}", outcome.wall_ns as f64 / ops as f64);
    }
    println!(", \"cpu_ns_per_op\": {:.3}}}", outcome.cpu_ns as f64 / ops as f64);
}
