//! A counter that wakes one task when it reaches zero: `gate` of `micro.h`.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;
use std::task::{Poll, Waker};

#[derive(Default)]
pub struct Gate {
    remaining: AtomicU64,
    waker: Mutex<Option<Waker>>,
}

impl Gate {
    /// Tasks refer to it as static, so that no reference is counted in what is measured.
    pub fn leak() -> &'static Gate {
        Box::leak(Box::default())
    }

    /// Shuts the gate for `count` passes; this task is woken by the last of them.
    pub async fn shut(&self, count: u64) {
        poll_fn(|cx| {
            *self.waker.lock().unwrap() = Some(cx.waker().clone());
            Poll::Ready(())
        })
        .await;
        self.remaining.store(count, Ordering::Relaxed);
    }

    pub async fn opened(&self) {
        poll_fn(|_| match self.remaining.load(Ordering::Acquire) {
            0 => Poll::Ready(()),
            _ => Poll::Pending,
        })
        .await;
    }

    #[inline]
    pub fn pass(&self) {
        if self.remaining.fetch_sub(1, Ordering::AcqRel) == 1 {
            let waker = self.waker.lock().unwrap().take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}
