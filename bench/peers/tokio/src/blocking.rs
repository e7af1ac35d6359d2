//! `micro/blocking.c`: the root gives `ops` jobs that do nothing to the pool, then awaits them in order.

use tokio::runtime::Runtime;
use tokio::task::spawn_blocking;

use crate::{cpu_ns, now_ns, since, Outcome, Run};

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
