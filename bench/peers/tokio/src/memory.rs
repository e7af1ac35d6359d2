//! What a sleeping task and a timer take, and what it takes to start a runtime: `micro/memory.c`.

use std::future::{poll_fn, Future};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::time::{sleep, Sleep};

use crate::gate::Gate;
use crate::time::random;
use crate::{now_ns, percentile_us, runtime, Outcome, Run};

const HOUR: Duration = Duration::from_secs(3600);
const SLEEPERS_AT_ONCE: u64 = 1000;

fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("a file");
    let pages: u64 = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64
}

fn malloc_bytes() -> u64 {
    let info = unsafe { libc::mallinfo2() };
    (info.uordblks + info.hblkhd) as u64
}

fn grown(before: (u64, u64), ops: u64) -> Outcome {
    let grown = |now: u64, before: u64| (now as f64 - before as f64) / ops as f64;
    let (resident, allocated) = (grown(resident_bytes(), before.0), grown(malloc_bytes(), before.1));
    Outcome { figures: vec![("bytes_per_op", resident), ("malloc_bytes_per_op", allocated)], ..Outcome::default() }
}

fn spawn_idle(gate: &'static Gate) {
    tokio::spawn(async move {
        let mut sleep = std::pin::pin!(sleep(HOUR));
        let mut passed = false;
        poll_fn(|cx| {
            let ready = sleep.as_mut().poll(cx);
            assert!(ready.is_pending());
            if !std::mem::replace(&mut passed, true) {
                gate.pass();
            }
            ready
        })
        .await
    });
}

/// A thousand are spawned at a time, so that queues stay short.
pub fn idle_task_bytes(rt: &Runtime, run: Run) -> Outcome {
    let root = rt.spawn(async move {
        let gate = Gate::leak();
        let before = (resident_bytes(), malloc_bytes());
        let mut made = 0;
        while made < run.ops {
            let count = SLEEPERS_AT_ONCE.min(run.ops - made);
            gate.shut(count).await;
            (0..count).for_each(|_| spawn_idle(gate));
            gate.opened().await;
            made += count;
        }
        grown(before, run.ops)
    });
    rt.block_on(root).unwrap()
}

/// One task holds all of them, in one vector that never moves.
pub fn timer_bytes(rt: &Runtime, run: Run) -> Outcome {
    let root = rt.spawn(async move {
        let mut state = 88172645463325252;
        let before = (resident_bytes(), malloc_bytes());
        let mut sleeps: Vec<Sleep> = Vec::with_capacity(run.ops as usize);
        poll_fn(|cx| {
            for _ in 0..run.ops {
                sleeps.push(sleep(Duration::from_millis(3_600_000 + random(&mut state) % 3_600_000)));
                // The vector has room for all and is only dropped: nothing pinned moves.
                let pinned = unsafe { Pin::new_unchecked(sleeps.last_mut().unwrap()) };
                assert!(pinned.poll(cx).is_pending());
            }
            Poll::Ready(())
        })
        .await;
        grown(before, run.ops)
    });
    rt.block_on(root).unwrap()
}

/// A runtime is made, a task of it runs, it is dropped; beside the one of this program.
pub fn startup(_rt: &Runtime, run: Run) -> Outcome {
    let (mut starts, mut ends) = (Vec::new(), Vec::new());
    for _ in 0..run.ops {
        let begin = now_ns();
        let rt = runtime(run.workers);
        rt.block_on(rt.spawn(async {})).unwrap();
        starts.push(now_ns() - begin);
        let begin = now_ns();
        drop(rt);
        ends.push(now_ns() - begin);
    }
    let figures = vec![("startup_us", percentile_us(&mut starts, 0.5)), ("shutdown_us", percentile_us(&mut ends, 0.5))];
    Outcome { figures, ..Outcome::default() }
}
