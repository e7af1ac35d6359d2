//! Noria carries Rust futures: built in place in the task's own room, woken through Noria's wakers and Rust's, neither of
//! which allocates to be cloned; outputs are taken through the task's handle, and a panic stays inside its task.
mod sys;
mod task;
mod wakers;

use futures_util::stream::{FuturesUnordered, StreamExt};
use std::alloc::{GlobalAlloc, Layout, System};
use std::future::{poll_fn, Future};
use std::mem::size_of;
use std::pin::Pin;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use sys::*;
use task::spawn;
use wakers::foreign;

fn check(status: i32) {
    assert_eq!(status, READY)
}
fn counts() -> [i64; 8] {
    let mut counts = Counts { size: size_of::<Counts>() as u32, ..Default::default() };
    check(unsafe { noria_live_counts(&mut counts) });
    counts.of
}

// ---- Every allocation of this program is counted ----

struct Counting;
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
#[global_allocator]
static GLOBAL: Counting = Counting;
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        System.alloc(layout)
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        System.dealloc(block, layout)
    }
}

// ---- A Noria future in Rust ----

struct Sleep(Handle);
unsafe impl Send for Sleep {}
impl Future for Sleep {
    type Output = i32;
    fn poll(self: Pin<&mut Self>, context: &mut Context) -> Poll<i32> {
        let waker = foreign(context.waker());
        let cx = Cx { waker: &waker, reserved: [0; 3] };
        match unsafe { noria_future_poll(self.0, &cx) } {
            PENDING => Poll::Pending,
            _ => Poll::Ready(unsafe { noria_future_result(self.0, null_mut(), 0) }),
        }
    }
}
impl Drop for Sleep {
    fn drop(&mut self) {
        unsafe {
            noria_future_drop(self.0);
        }
    }
}
#[derive(Clone, Copy)]
struct Runtime(Handle);
unsafe impl Send for Runtime {}
fn sleep(rt: Runtime, ns: u64) -> Sleep {
    let mut out = null_mut();
    check(unsafe { noria_sleep(rt.0, ns, &mut out) });
    Sleep(out)
}

async fn sum_as_they_end(rt: Runtime) -> String {
    let mut set: FuturesUnordered<_> = (0..100u64)
        .map(|i| async move {
            sleep(rt, (i * 37 % 100) * 100_000).await;
            i
        })
        .collect();
    let (mut sum, mut ended) = (0, 0);
    while let Some(i) = set.next().await {
        sum += i;
        ended += 1;
    }
    format!("{ended} ended, {sum}")
}

/// How many allocations 1,000 clones of the task's waker and of the same waker as a foreign one take.
async fn clone_wakers() -> u64 {
    poll_fn(|context| {
        let (before, own) = (ALLOCATIONS.load(Relaxed), counts()[6]);
        let waker = foreign(context.waker());
        for _ in 0..1000 {
            drop(context.waker().clone());
            let mut clone = waker;
            unsafe {
                check(noria_waker_clone(&waker, &mut clone));
                check(noria_waker_drop(&mut clone));
            }
        }
        Poll::Ready(ALLOCATIONS.load(Relaxed) - before + counts()[6].abs_diff(own))
    })
    .await
}

fn main() {
    let mut rt = null_mut();
    check(unsafe { noria_runtime_new(null(), &mut rt) });
    assert_eq!(spawn(rt, sum_as_they_end(Runtime(rt))).join().ok().unwrap(), "100 ended, 4950");
    assert_eq!(spawn(rt, clone_wakers()).join().ok().unwrap(), 0);

    std::panic::set_hook(Box::new(|_| {}));
    let handle = Runtime(rt);
    let failed = spawn(rt, async move {
        sleep(handle, 1000).await;
        if true {
            panic!("stays inside")
        }
    })
    .join()
    .err()
    .unwrap();
    assert_eq!((failed.kind, failed.error), (1, -ETHROWN));
    drop(spawn(rt, async { vec![1, 2, 3] })); // nobody takes the output: it goes with the task
    assert_eq!(spawn(rt, sum_as_they_end(Runtime(rt))).join().ok().unwrap(), "100 ended, 4950");
    check(unsafe { noria_runtime_free(rt) });
    println!("rust: passed");
}
