//! Workloads of the scheduler: `micro/tasks.c`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Thread};

use tokio::runtime::{Handle, Runtime};
use tokio::sync::oneshot;
use tokio::task::yield_now;

use crate::gate::Gate;
use crate::{argument, cpu_ns, now_ns, since, Outcome, Run};

/// A root task on a worker that calls `begin` in rounds, and waits at the gate after each.
pub fn rounds(
    rt: &Runtime,
    run: Run,
    passes: u64,
    begin: impl Fn(u64, &'static Gate) + Send + 'static,
) -> Outcome {
    let root = rt.spawn(async move {
        let gate = Gate::leak();
        let times = (now_ns(), cpu_ns());
        let mut done = 0;
        while done < run.ops {
            done += run.batch;
            gate.shut(passes).await;
            begin(passes, gate);
            gate.opened().await;
        }
        since(times)
    });
    rt.block_on(root).unwrap()
}

/// Batches of tasks that do nothing but pass the gate.
pub fn spawn_many(rt: &Runtime, run: Run) -> Outcome {
    rounds(rt, run, run.batch, |passes, gate| {
        for _ in 0..passes {
            tokio::spawn(async move { gate.pass() });
        }
    })
}

struct RemoteGate {
    remaining: AtomicU64,
    thread: Thread,
}

/// One thread's part of each batch, until all are done.
fn spawn_part(handle: &Handle, run: Run, part: u64) {
    let gate: &'static RemoteGate =
        Box::leak(Box::new(RemoteGate { remaining: AtomicU64::new(0), thread: thread::current() }));
    let mut done = 0;
    while done < run.ops {
        gate.remaining.store(part, Ordering::Relaxed);
        for _ in 0..part {
            handle.spawn(async move {
                if gate.remaining.fetch_sub(1, Ordering::AcqRel) == 1 {
                    gate.thread.unpark();
                }
            });
        }
        while gate.remaining.load(Ordering::Acquire) > 0 {
            thread::park();
        }
        done += run.batch;
    }
}

/// The same from threads that are no workers; the last task of a thread's part unparks it.
pub fn spawn_remote(rt: &Runtime, run: Run) -> Outcome {
    let spawners = argument("--spawners", 1);
    let part = run.batch / spawners;
    assert_eq!(part * spawners, run.batch);
    let times = (now_ns(), cpu_ns());
    thread::scope(|scope| {
        for _ in 1..spawners {
            scope.spawn(|| spawn_part(rt.handle(), run, part));
        }
        spawn_part(rt.handle(), run, part);
    });
    since(times)
}

/// 1,000 tasks that yield until all of them together have yielded `batch` times.
pub fn yield_many(rt: &Runtime, run: Run) -> Outcome {
    rounds(rt, run, 1000, move |passes, gate| {
        let yields = run.batch / passes;
        for _ in 0..passes {
            tokio::spawn(async move {
                for _ in 0..yields {
                    yield_now().await;
                }
                gate.pass();
            });
        }
    })
}

/// Each pair: the first task makes two oneshots, spawns the second, sends on one and waits for the
/// answer on the other.
pub fn ping_pong(rt: &Runtime, run: Run) -> Outcome {
    rounds(rt, run, run.batch, |passes, gate| {
        for _ in 0..passes {
            tokio::spawn(async move {
                let (send_ping, ping) = oneshot::channel();
                let (send_answer, answer) = oneshot::channel();
                tokio::spawn(async move {
                    ping.await.unwrap();
                    send_answer.send(()).unwrap();
                });
                send_ping.send(()).unwrap();
                answer.await.unwrap();
                gate.pass();
            });
        }
    })
}

fn chain(left: u64, gate: &'static Gate) {
    tokio::spawn(async move {
        if left == 1 {
            gate.pass();
        } else {
            chain(left - 1, gate);
        }
    });
}

/// Each task spawns the next one and ends; the last passes the gate.
pub fn chained_spawn(rt: &Runtime, run: Run) -> Outcome {
    rounds(rt, run, 1, move |_, gate| chain(run.batch, gate))
}
