//! The part of noria.h that the program needs.
use std::ffi::{c_char, c_void};

#[repr(C)]
pub struct WakerVtable {
    pub clone: unsafe extern "C" fn(*const NoriaWaker, *mut NoriaWaker),
    pub wake: unsafe extern "C" fn(*mut NoriaWaker),
    pub wake_by_ref: unsafe extern "C" fn(*const NoriaWaker),
    pub drop: unsafe extern "C" fn(*mut NoriaWaker),
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct NoriaWaker {
    pub vtable: *const WakerVtable,
    pub data: *const (),
    pub extra: *const (),
}
#[repr(C)]
pub struct Cx {
    pub waker: *const NoriaWaker,
    pub reserved: [u64; 3],
}
#[repr(C)]
pub struct TaskVtable {
    pub size: u32,
    pub flags: u32,
    pub poll: unsafe extern "C" fn(*mut c_void, *const Cx) -> i32,
    pub drop: unsafe extern "C" fn(*mut c_void),
    pub take: unsafe extern "C" fn(*mut c_void, *mut c_void),
    pub name: *const c_char,
}
#[repr(C)]
#[derive(Default)]
pub struct JoinResult {
    pub kind: u32,
    pub error: i32,
}
#[repr(C)]
#[derive(Default)]
pub struct Counts {
    pub size: u32,
    pub reserved: u32,
    pub of: [i64; 8],
}
pub type Handle = *mut c_void;
pub const READY: i32 = 0;
pub const PENDING: i32 = 1;
pub const ETHROWN: i32 = 4106;

#[link(name = "noria")]
extern "C" {
    pub fn noria_runtime_new(options: *const c_void, out: *mut Handle) -> i32;
    pub fn noria_runtime_free(rt: Handle) -> i32;
    pub fn noria_task_new(
        rt: Handle,
        vtable: *const TaskVtable,
        size: usize,
        align: usize,
        state: *mut *mut c_void,
        task: *mut Handle,
    ) -> i32;
    pub fn noria_task_start(task: Handle) -> i32;
    pub fn noria_task_join(task: Handle, out: *mut Handle) -> i32;
    pub fn noria_task_take(task: Handle, out: *mut c_void) -> i32;
    pub fn noria_task_detach(task: Handle) -> i32;
    pub fn noria_sleep(rt: Handle, ns: u64, out: *mut Handle) -> i32;
    pub fn noria_future_poll(future: Handle, cx: *const Cx) -> i32;
    pub fn noria_future_wait(future: Handle, timeout_ns: u64) -> i32;
    pub fn noria_future_result(future: Handle, out: *mut c_void, size: usize) -> i32;
    pub fn noria_future_drop(future: Handle) -> i32;
    pub fn noria_waker_clone(waker: *const NoriaWaker, out: *mut NoriaWaker) -> i32;
    pub fn noria_waker_drop(waker: *mut NoriaWaker) -> i32;
    pub fn noria_live_counts(out: *mut Counts) -> i32;
}
