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
use crate::{cpu_ns, now_ns, percentile_us, since, Outcome, Run};

pub fn random(state: &mut u64) -> u64 {
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

fn later(now: Instant, state: &mut u64) -> Instant {
    now + Duration::from_millis(1000 + random(state) % 599_000)
}

/// Sleeps that are armed and have a waker left in them are reset, one after the other, to other deadlines.
pub fn timer_reset(rt: &Runtime, run: Run) -> Outcome {
    let root = rt.spawn(async move {
        let mut state = 88172645463325252;
        let now = Instant::now();
        let mut sleeps: Vec<Pin<Box<Sleep>>> =
            (0..run.batch).map(|_| Box::pin(sleep_until(later(now, &mut state)))).collect();
        poll_fn(|cx| {
            sleeps.iter_mut().for_each(|sleep| assert!(sleep.as_mut().poll(cx).is_pending()));
            Poll::Ready(())
        })
        .await;
        let times = (now_ns(), cpu_ns());
        let mut done = 0;
        while done < run.ops {
            let now = Instant::now();
            sleeps.iter_mut().for_each(|sleep| sleep.as_mut().reset(later(now, &mut state)));
            done += run.batch;
            yield_now().await;
        }
        let outcome = since(times);
        assert!(sleeps.iter().all(|sleep| !sleep.is_elapsed()));
        outcome
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
    let figures = [("lateness_p50_us", 0.5), ("lateness_p99_us", 0.99), ("lateness_max_us", 1.0)];
    let figures = figures.map(|(name, share)| (name, percentile_us(&mut sorted, share))).to_vec();
    Outcome { cpu_ns, figures, ..Outcome::default() }
}
