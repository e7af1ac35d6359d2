//! Wakers across the border. Neither way allocates: Rust's two words travel in Noria's three, and the engine's have one
//! vtable and no third word, so that one word is enough for Rust.
use crate::sys::*;
use std::mem::ManuallyDrop;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use std::task::{RawWaker, RawWakerVTable, Waker};

// ---- Rust's wakers in Noria: two words in three ----

static FOREIGN: WakerVtable =
    WakerVtable { clone: foreign_clone, wake: foreign_wake, wake_by_ref: foreign_wake_by_ref, drop: foreign_drop };
unsafe fn rust_waker(w: *const NoriaWaker) -> ManuallyDrop<Waker> {
    ManuallyDrop::new(Waker::from_raw(RawWaker::new((*w).data, &*((*w).extra as *const RawWakerVTable))))
}
pub fn foreign(waker: &Waker) -> NoriaWaker {
    NoriaWaker { vtable: &FOREIGN, data: waker.data(), extra: waker.vtable() as *const RawWakerVTable as *const () }
}
unsafe extern "C" fn foreign_clone(w: *const NoriaWaker, out: *mut NoriaWaker) {
    *out = foreign(&ManuallyDrop::new((*rust_waker(w)).clone()))
}
unsafe extern "C" fn foreign_wake(w: *mut NoriaWaker) {
    ManuallyDrop::into_inner(rust_waker(w)).wake()
}
unsafe extern "C" fn foreign_wake_by_ref(w: *const NoriaWaker) {
    rust_waker(w).wake_by_ref()
}
unsafe extern "C" fn foreign_drop(w: *mut NoriaWaker) {
    drop(ManuallyDrop::into_inner(rust_waker(w)))
}

// ---- The engine's wakers in Rust: they have one vtable and no third word, so that one word is enough ----

static ENGINE: AtomicPtr<WakerVtable> = AtomicPtr::new(null_mut());
static NATIVE: RawWakerVTable = RawWakerVTable::new(native_clone, native_wake, native_wake_by_ref, native_drop);
fn engine(data: *const ()) -> NoriaWaker {
    NoriaWaker { vtable: ENGINE.load(Relaxed), data, extra: null() }
}
unsafe fn native_clone(data: *const ()) -> RawWaker {
    let mut out = engine(null());
    ((*engine(data).vtable).clone)(&engine(data), &mut out);
    assert!(out.data == data && out.extra.is_null());
    RawWaker::new(out.data, &NATIVE)
}
unsafe fn native_wake(data: *const ()) {
    ((*engine(data).vtable).wake)(&mut engine(data))
}
unsafe fn native_wake_by_ref(data: *const ()) {
    ((*engine(data).vtable).wake_by_ref)(&engine(data))
}
unsafe fn native_drop(data: *const ()) {
    ((*engine(data).vtable).drop)(&mut engine(data))
}

/// The waker of a poll, for its duration.
pub unsafe fn borrowed(waker: *const NoriaWaker) -> ManuallyDrop<Waker> {
    assert!((*waker).extra.is_null());
    ENGINE.store((*waker).vtable as *mut _, Relaxed);
    ManuallyDrop::new(Waker::from_raw(RawWaker::new((*waker).data, &NATIVE)))
}
