//! A Rust future as a task, in the task's own room; its output is taken through the handle, its panic stays inside.
use crate::check;
use crate::sys::*;
use crate::wakers::borrowed;
use std::ffi::c_void;
use std::future::Future;
use std::mem::{size_of, MaybeUninit};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::ptr::null_mut;
use std::task::{Context, Poll};

enum State<F: Future> {
    Running(F),
    Done(F::Output),
    Taken,
}
struct TaskOf<F>(F);
impl<F: Future> TaskOf<F> {
    const VTABLE: TaskVtable = TaskVtable {
        size: size_of::<TaskVtable>() as u32,
        flags: 0,
        poll: Self::poll,
        drop: Self::drop,
        take: Self::take,
        name: c"rust".as_ptr(),
    };
    unsafe extern "C" fn poll(state: *mut c_void, cx: *const Cx) -> i32 {
        let state = &mut *(state as *mut State<F>);
        let waker = borrowed((*cx).waker);
        let State::Running(future) = state else { unreachable!() };
        match catch_unwind(AssertUnwindSafe(|| Pin::new_unchecked(future).poll(&mut Context::from_waker(&waker)))) {
            Ok(Poll::Pending) => PENDING,
            Ok(Poll::Ready(output)) => {
                *state = State::Done(output);
                READY
            }
            Err(_) => -ETHROWN,
        }
    }
    unsafe extern "C" fn drop(state: *mut c_void) {
        (state as *mut State<F>).drop_in_place()
    }
    unsafe extern "C" fn take(state: *mut c_void, out: *mut c_void) {
        if let State::Done(output) = std::mem::replace(&mut *(state as *mut State<F>), State::Taken) {
            (out as *mut F::Output).write(output)
        }
    }
}
pub struct Task<T> {
    handle: Handle,
    output: std::marker::PhantomData<T>,
}
pub fn spawn<F: Future + Send>(rt: Handle, future: F) -> Task<F::Output> {
    let (mut room, mut handle) = (null_mut(), null_mut());
    unsafe {
        check(noria_task_new(
            rt,
            const { &TaskOf::<F>::VTABLE },
            size_of::<State<F>>(),
            align_of::<State<F>>(),
            &mut room,
            &mut handle,
        ));
        (room as *mut State<F>).write(State::Running(future));
        check(noria_task_start(handle));
    }
    Task { handle, output: std::marker::PhantomData }
}
impl<T> Task<T> {
    pub fn join(self) -> Result<T, JoinResult> {
        let (mut join, mut result, mut output) = (null_mut(), JoinResult::default(), MaybeUninit::<T>::uninit());
        unsafe {
            check(noria_task_join(self.handle, &mut join));
            check(noria_future_wait(join, u64::MAX));
            check(noria_future_result(join, &mut result as *mut _ as *mut c_void, size_of::<JoinResult>()));
            noria_future_drop(join);
            let taken = noria_task_take(self.handle, output.as_mut_ptr() as *mut c_void);
            if taken == READY {
                Ok(output.assume_init())
            } else {
                Err(result)
            }
        }
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        unsafe {
            noria_task_detach(self.handle);
        }
    }
}
