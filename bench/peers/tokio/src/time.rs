//! Workloads of the timer wheel: `micro/time.c`.

use std::future::{poll_fn, Future};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::task::yield_now;
use tokio::time::{sleep, sleep_until, Instant, Sleep};

use crate::gate::Gate;
use crate::{cpu_ns, now_ns, since, Outcome, Run};

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Makes a batch of sleeps and polls each once (which is when Tokio arms it), then drops them all.
/// They lie in one vector that never moves: no allocation a sleep.
pub fn timer_churn(rt: &Runtime, run: Run) -> Outcome {
    let root = rt.spawn(async move {
        let times = (now_ns(), cpu_ns());
        let mut state = 88172645463325252;
        let mut sleeps: Vec<Sleep> = Vec::with_capacity(run.batch as usize);
        let mut done = 0;
        while done < run.ops {
            poll_fn(|cx| {
                for _ in 0..run.batch {
                    let milliseconds = 1000 + random(&mut state) % 599_000;
                    sleeps.push(sleep(Duration::from_millis(milliseconds)));
                    let last = sleeps.last_mut().unwrap();
                    // The vector has room for all and is only ever cleared: nothing pinned moves.
                    let pinned = unsafe { Pin::new_unchecked(last) };
                    assert!(pinned.poll(cx).is_pending());
                }
                Poll::Ready(())
            })
            .await;
            sleeps.clear();
            done += run.batch;
            yield_now().await;
        }
        since(times)
    });
    rt.block_on(root).unwrap()
}

const FIRE_LEAD: Duration = Duration::from_millis(500);
const FIRE_STEP_NS: u64 = 10_000;
const FIRE_STRIDE: u64 = 7919;

/// One task a timer; deadlines 10 us apart in a second that begins half a second after the start,
/// armed in shuffled order. CPU is taken over that second.
pub fn timer_fire(rt: &Runtime, run: Run) -> Outcome {
    assert!(run.ops % FIRE_STRIDE != 0);
    let lateness: &'static [AtomicU64] =
        Box::leak((0..run.ops).map(|_| AtomicU64::new(0)).collect::<Vec<_>>().into_boxed_slice());
    let origin = Instant::now();
    let root = rt.spawn(async move {
        let gate = Gate::leak();
        gate.shut(run.ops).await;
        for i in 0..run.ops {
            tokio::spawn(async move {
                let index = i * FIRE_STRIDE % run.ops;
                let deadline = origin + FIRE_LEAD + Duration::from_nanos(index * FIRE_STEP_NS);
                sleep_until(deadline).await;
                let late = Instant::now().checked_duration_since(deadline).expect("not early");
                lateness[index as usize].store(late.as_nanos() as u64, Ordering::Relaxed);
                gate.pass();
            });
        }
        gate.opened().await;
    });
    thread::sleep((origin + FIRE_LEAD).duration_since(Instant::now()));
    let cpu = cpu_ns();
    rt.block_on(root).unwrap();
    let cpu_ns = cpu_ns() - cpu;
    let mut sorted: Vec<u64> = lateness.iter().map(|l| l.load(Ordering::Relaxed)).collect();
    sorted.sort_unstable();
    let figures = [sorted[sorted.len() / 2], sorted[sorted.len() * 99 / 100], sorted[sorted.len() - 1]];
    Outcome { wall_ns: 0, cpu_ns, lateness_ns: Some(figures) }
}
