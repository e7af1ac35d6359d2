//! A server ends at SIGTERM, which is blocked in every thread and waited for by one.

fn sigterm() -> libc::sigset_t {
    let mut signals: libc::sigset_t = unsafe { std::mem::zeroed() };
    unsafe {
        libc::sigemptyset(&mut signals);
        libc::sigaddset(&mut signals, libc::SIGTERM);
    }
    signals
}

/// Before there are other threads.
pub fn block_sigterm() {
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &sigterm(), std::ptr::null_mut()) };
}

pub fn wait_sigterm() {
    let mut signal = 0;
    unsafe { libc::sigwait(&sigterm(), &mut signal) };
}
