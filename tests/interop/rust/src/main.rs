//! Noria carries Rust futures: built in place in the task's own room, woken through Noria's wakers and Rust's, neither of
//! which allocates to be cloned; outputs are taken through the task's handle, and a panic stays inside its task.
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::{c_char, c_void};
use std::future::{poll_fn, Future};
use std::mem::{align_of, size_of, ManuallyDrop, MaybeUninit};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
// ---- What the program needs of noria.h; fields in the header's order ----
type Handle = usize; // a pointer; so it may be sent to the threads that poll
type Call<T> = unsafe extern "C" fn(*mut T);
#[repr(C)] // clone, wake (consumes), wake_by_ref, drop
struct WakerVtable(WakerClone, Call<NoriaWaker>, Call<NoriaWaker>, Call<NoriaWaker>);
type WakerClone = unsafe extern "C" fn(*mut NoriaWaker, *mut NoriaWaker);
#[repr(C)] // vtable, data, extra
#[derive(Clone, Copy)]
struct NoriaWaker(*const WakerVtable, *const (), *const ());
#[repr(C)] // waker, reserved
struct Cx(*const NoriaWaker, [u64; 3]);
#[repr(C)] // size, flags, poll, drop, take, name
struct TaskVtable(u32, u32, PollFn, Call<c_void>, unsafe extern "C" fn(Handle, Handle), *const c_char);
type PollFn = unsafe extern "C" fn(Handle, *const Cx) -> i32;
const READY: i32 = 0;
const PENDING: i32 = 1;
const ETHROWN: i32 = 4106;
#[link(name = "noria")]
extern "C" {
    fn noria_runtime_new(options: Handle, out: &mut Handle) -> i32;
    fn noria_runtime_free(rt: Handle) -> i32;
    fn noria_task_new(rt: Handle, v: &TaskVtable, size: usize, align: usize, room: &mut Handle, t: &mut Handle) -> i32;
    fn noria_task_start(task: Handle) -> i32;
    fn noria_task_join(task: Handle, out: &mut Handle) -> i32;
    fn noria_task_take(task: Handle, out: Handle) -> i32;
    fn noria_task_detach(task: Handle) -> i32;
    fn noria_sleep(rt: Handle, ns: u64, out: &mut Handle) -> i32;
    fn noria_future_poll(future: Handle, cx: &Cx) -> i32;
    fn noria_future_wait(future: Handle, timeout_ns: u64) -> i32;
    fn noria_future_result(future: Handle, out: Handle, size: usize) -> i32;
    fn noria_future_drop(future: Handle) -> i32;
    fn noria_waker_clone(waker: &NoriaWaker, out: &mut NoriaWaker) -> i32;
    fn noria_waker_drop(waker: &mut NoriaWaker) -> i32;
    fn noria_live_counts(out: &mut [u64; 9]) -> i32; // in the first: the size in bytes, and a reserved half
}
// ---- Rust's wakers in Noria: two words in three ----
static FOREIGN: WakerVtable = WakerVtable(foreign_clone, foreign_wake, foreign_wake_by_ref, foreign_drop);
fn foreign(waker: &Waker) -> NoriaWaker {
    NoriaWaker(&FOREIGN, waker.data(), waker.vtable() as *const RawWakerVTable as *const ())
}
unsafe fn rust_waker(w: *mut NoriaWaker) -> ManuallyDrop<Waker> {
    ManuallyDrop::new(Waker::from_raw(RawWaker::new((*w).1, &*((*w).2 as *const RawWakerVTable))))
}
unsafe extern "C" fn foreign_clone(w: *mut NoriaWaker, out: *mut NoriaWaker) {
    *out = foreign(&ManuallyDrop::new((*rust_waker(w)).clone()))
}
unsafe extern "C" fn foreign_wake(w: *mut NoriaWaker) {
    ManuallyDrop::into_inner(rust_waker(w)).wake()
}
unsafe extern "C" fn foreign_wake_by_ref(w: *mut NoriaWaker) {
    rust_waker(w).wake_by_ref()
}
unsafe extern "C" fn foreign_drop(w: *mut NoriaWaker) {
    drop(ManuallyDrop::into_inner(rust_waker(w)))
}
// ---- The engine's wakers in Rust: they have one vtable and no third word, so that one word is enough ----
static ENGINE: AtomicPtr<WakerVtable> = AtomicPtr::new(null_mut());
static NATIVE: RawWakerVTable = RawWakerVTable::new(
    |data| unsafe {
        let mut out = engine(null());
        ((*out.0).0)(&mut engine(data), &mut out);
        assert!(out.1 == data && out.2.is_null());
        RawWaker::new(data, &NATIVE)
    },
    |data| unsafe { ((*engine(data).0).1)(&mut engine(data)) },
    |data| unsafe { ((*engine(data).0).2)(&mut engine(data)) },
    |data| unsafe { ((*engine(data).0).3)(&mut engine(data)) },
);
fn engine(data: *const ()) -> NoriaWaker {
    NoriaWaker(ENGINE.load(Relaxed), data, null())
}
// ---- A Rust future as a task, in the task's own room ----
struct State<F: Future>(F, Option<F::Output>);
impl<F: Future> State<F> {
    const VTABLE: TaskVtable =
        TaskVtable(size_of::<TaskVtable>() as u32, 0, Self::poll, Self::drop, Self::take, c"rust".as_ptr());
    unsafe extern "C" fn poll(state: Handle, cx: *const Cx) -> i32 {
        let State(future, output) = &mut *(state as *mut Self);
        ENGINE.store((*(*cx).0).0 as *mut _, Relaxed);
        let waker = ManuallyDrop::new(Waker::from_raw(RawWaker::new((*(*cx).0).1, &NATIVE)));
        match catch_unwind(AssertUnwindSafe(|| Pin::new_unchecked(future).poll(&mut Context::from_waker(&waker)))) {
            Ok(Poll::Pending) => return PENDING,
            Ok(Poll::Ready(value)) => *output = Some(value),
            Err(_) => return -ETHROWN,
        }
        READY
    }
    unsafe extern "C" fn drop(state: *mut c_void) {
        (state as *mut Self).drop_in_place()
    }
    unsafe extern "C" fn take(state: Handle, out: Handle) {
        (out as *mut F::Output).write((*(state as *mut Self)).1.take().unwrap())
    }
}
/// A handle and what gives it back.
struct Owned(Handle, unsafe extern "C" fn(Handle) -> i32);
impl Drop for Owned {
    fn drop(&mut self) {
        assert_eq!(unsafe { (self.1)(self.0) }, READY);
    }
}
struct Task<T>(Owned, std::marker::PhantomData<T>);
fn spawn<F: Future + Send>(rt: Handle, future: F) -> Task<F::Output> {
    let (mut room, mut task, (size, align)) = (0, 0, (size_of::<State<F>>(), align_of::<State<F>>()));
    unsafe {
        assert_eq!(noria_task_new(rt, const { &State::<F>::VTABLE }, size, align, &mut room, &mut task), READY);
        (room as *mut State<F>).write(State(future, None));
        assert_eq!(noria_task_start(task), READY);
    }
    Task(Owned(task, noria_task_detach), std::marker::PhantomData)
}
/// The output, or kind and error of the join.
fn join<T>(task: Task<T>) -> Result<T, [i32; 2]> {
    let (mut join, mut result, mut output) = (0, [0; 2], MaybeUninit::<T>::uninit());
    unsafe {
        assert_eq!(noria_task_join(task.0 .0, &mut join), READY);
        assert_eq!(noria_future_wait(join, u64::MAX), READY);
        assert_eq!(noria_future_result(join, result.as_mut_ptr() as Handle, 8), READY);
        noria_future_drop(join);
        match noria_task_take(task.0 .0, output.as_mut_ptr() as Handle) {
            READY => Ok(output.assume_init()),
            _ => Err(result),
        }
    }
}
// ---- A Noria future in Rust ----
fn sleep(rt: Handle, ns: u64) -> impl Future<Output = i32> {
    let mut out = 0;
    assert_eq!(unsafe { noria_sleep(rt, ns, &mut out) }, READY);
    let own = Owned(out, noria_future_drop);
    poll_fn(move |context| {
        let own = &own; // as a whole, which may be sent
        match unsafe { noria_future_poll(own.0, &Cx(&foreign(context.waker()), [0; 3])) } {
            PENDING => Poll::Pending,
            _ => Poll::Ready(unsafe { noria_future_result(own.0, 0, 0) }),
        }
    })
}
// ---- The program; every allocation of it is counted ----
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
fn allocations() -> u64 {
    let mut counts = [72, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(unsafe { noria_live_counts(&mut counts) }, READY);
    ALLOCATIONS.load(Relaxed) + counts[7]
}
async fn sum_as_they_end(rt: Handle) -> String {
    let after = |i| async move { (sleep(rt, (i * 37 % 100) * 100_000).await, i).1 };
    let set: FuturesUnordered<_> = (0..100u64).map(after).collect();
    let (ended, sum) = set.fold((0, 0), |(ended, sum), i| async move { (ended + 1, sum + i) }).await;
    format!("{ended} ended, {sum}")
}
fn main() {
    let mut rt = 0;
    assert_eq!(unsafe { noria_runtime_new(0, &mut rt) }, READY);
    assert_eq!(join(spawn(rt, sum_as_they_end(rt))), Ok("100 ended, 4950".into()));
    // The task's waker, and the same as a foreign one: no clone of either allocates.
    let cloning = poll_fn(|context| {
        let (waker, mut kept) = (foreign(context.waker()), Vec::with_capacity(1000));
        let before = allocations();
        for _ in 0..1000 {
            let mut clone = waker;
            assert_eq!(unsafe { noria_waker_clone(&waker, &mut clone) }, READY);
            kept.push((context.waker().clone(), clone));
        }
        let taken = allocations().abs_diff(before);
        kept.iter_mut().for_each(|(_, clone)| assert_eq!(unsafe { noria_waker_drop(clone) }, READY));
        Poll::Ready(taken)
    });
    assert!(join(spawn(rt, cloning)).unwrap() < 1000); // other threads take a few meanwhile
    std::panic::set_hook(Box::new(|_| {}));
    let failing = async move { assert_eq!(sleep(rt, 1000).await, PENDING, "stays inside") };
    assert_eq!(join(spawn(rt, failing)), Err([1, -ETHROWN]));
    drop(spawn(rt, async { vec![1, 2, 3] })); // nobody takes the output: it goes with the task
    assert_eq!(join(spawn(rt, sum_as_they_end(rt))), Ok("100 ended, 4950".into()));
    assert_eq!(unsafe { noria_runtime_free(rt) }, READY);
}
