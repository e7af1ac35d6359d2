//! Jobs that do nothing on the blocking pool: `micro/blocking.c`.

use tokio::runtime::Runtime;
use tokio::task::spawn_blocking;

use crate::tasks::rounds;
use crate::{cpu_ns, now_ns, since, Outcome, Run};

/// The root gives `ops` jobs to the pool, then awaits them in order.
pub fn blocking(rt: &Runtime, run: Run) -> Outcome {
    let root = rt.spawn(async move {
        let times = (now_ns(), cpu_ns());
        let jobs: Vec<_> = (0..run.ops).map(|_| spawn_blocking(|| 1u64)).collect();
        let mut sum = 0;
        for job in jobs {
            sum += job.await.unwrap();
        }
        assert_eq!(sum, run.ops);
        since(times)
    });
    rt.block_on(root).unwrap()
}

/// `batch` tasks, each of which awaits a job before it gives the next.
pub fn blocking_seq(rt: &Runtime, run: Run) -> Outcome {
    let all = Run { batch: run.ops, ..run }; // one round of all operations
    let jobs = run.ops / run.batch;
    rounds(rt, all, run.batch, move |passes, gate| {
        for _ in 0..passes {
            tokio::spawn(async move {
                let mut sum = 0;
                while sum < jobs {
                    sum += spawn_blocking(|| 1u64).await.unwrap();
                }
                gate.pass();
            });
        }
    })
}
