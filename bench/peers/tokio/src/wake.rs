//! How long it takes from a wake by a foreign thread to the poll of the task: `micro/wake.c`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio::task::yield_now;

use crate::{argument, burn_ns, cpu_ns, now_ns, percentile_us, thread_cpu_ns, Outcome, Run};

const BURN_NS: u64 = 10_000;

#[derive(Default)]
struct Sleeper {
    notify: Notify,
    sent_ns: AtomicU64,
    seen: AtomicU64,
}

/// Wakes a sleeper `ops` times, each time after a pause and when it has seen the one before; what each took.
fn wakes(rt: &Runtime, ops: u64) -> Vec<u64> {
    let sleeper: &'static Sleeper = Box::leak(Box::default());
    let done = rt.spawn(async move {
        let mut latency = Vec::with_capacity(ops as usize);
        for i in 0..ops {
            sleeper.notify.notified().await;
            latency.push(now_ns() - sleeper.sent_ns.load(Ordering::Relaxed));
            sleeper.seen.store(i + 1, Ordering::Release);
        }
        latency
    });
    let interval = Duration::from_micros(argument("--interval-us", 300));
    for i in 0..ops {
        thread::sleep(interval);
        while sleeper.seen.load(Ordering::Acquire) != i {
            thread::sleep(interval);
        }
        sleeper.sent_ns.store(now_ns(), Ordering::Relaxed);
        sleeper.notify.notify_one();
    }
    let latency = rt.block_on(done).unwrap();
    assert_eq!(latency.len() as u64, ops);
    latency
}

pub fn wake_latency(rt: &Runtime, run: Run) -> Outcome {
    let stop: &'static AtomicBool = Box::leak(Box::default());
    let burners: Vec<_> = (0..argument("--load", 0))
        .map(|_| {
            rt.spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    burn_ns(BURN_NS);
                    yield_now().await;
                }
            })
        })
        .collect();
    let mut latency = wakes(rt, run.ops);
    stop.store(true, Ordering::SeqCst);
    burners.into_iter().for_each(|burner| rt.block_on(burner).unwrap());
    let figures = [("p50_us", 0.5), ("p99_us", 0.99), ("p999_us", 0.999)];
    let figures = figures.map(|(name, share)| (name, percentile_us(&mut latency, share))).to_vec();
    Outcome { figures, ..Outcome::default() }
}

pub fn light_load(rt: &Runtime, run: Run) -> Outcome {
    let begin = (now_ns(), thread_cpu_ns(), cpu_ns());
    wakes(rt, run.ops);
    let all = cpu_ns() - begin.2;
    let own = thread_cpu_ns() - begin.1;
    let wall = now_ns() - begin.0;
    let percent = 100.0 * (all - own) as f64 / wall as f64;
    Outcome { figures: vec![("cpu_percent", percent)], ..Outcome::default() }
}
