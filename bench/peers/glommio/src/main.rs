//! noria-bench-glommio echo [--workers N] [--buffer B]
//!
//! The echo server of `bench/net` on glommio: an executor (its own io_uring) and a listener (SO_REUSEPORT) a worker, a task
//! a connection.

use std::sync::atomic::{AtomicU64, Ordering};

use futures_lite::{AsyncReadExt, AsyncWriteExt};
use glommio::net::{TcpListener, TcpStream};
use glommio::{LocalExecutorBuilder, Placement};

static BYTES: AtomicU64 = AtomicU64::new(0);
static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

fn argument(name: &str, fallback: u64) -> u64 {
    let mut words = std::env::args().skip_while(|word| word != name).skip(1);
    words.next().map_or(fallback, |word| word.parse().expect("a number"))
}

/// CPU time of this process, all threads, user and kernel.
fn cpu_ns() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

fn raise_files() {
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
    }
}

async fn echo(mut stream: TcpStream, buffer_bytes: usize) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; buffer_bytes];
    let mut bytes = 0;
    loop {
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            break;
        }
        stream.write_all(&buffer[..count]).await?;
        bytes += count as u64;
    }
    BYTES.fetch_add(bytes, Ordering::Relaxed);
    Ok(())
}

/// One worker: tells its port and serves for ever.
async fn work(port: u16, buffer_bytes: usize, told: std::sync::mpsc::Sender<u16>) {
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("a port");
    told.send(listener.local_addr().unwrap().port()).unwrap();
    loop {
        let stream = listener.accept().await.expect("a connection");
        CONNECTIONS.fetch_add(1, Ordering::Relaxed);
        glommio::spawn_local(echo(stream, buffer_bytes)).detach();
    }
}

fn main() {
    let workers = argument("--workers", 1);
    let buffer_bytes = argument("--buffer", 32 * 1024) as usize;
    raise_files();
    let mut signals: libc::sigset_t = unsafe { std::mem::zeroed() };
    unsafe {
        libc::sigemptyset(&mut signals);
        libc::sigaddset(&mut signals, libc::SIGTERM);
        libc::pthread_sigmask(libc::SIG_BLOCK, &signals, std::ptr::null_mut());
    }
    let mut port = 0;
    for _ in 0..workers {
        let (tell, told) = std::sync::mpsc::channel();
        LocalExecutorBuilder::new(Placement::Unbound)
            .ring_depth(4096)
            .spawn(move || work(port, buffer_bytes, tell))
            .expect("io_uring");
        port = told.recv().expect("a worker");
    }
    println!("port {port}");
    let mut signal = 0;
    unsafe { libc::sigwait(&signals, &mut signal) };
    print!("{{\"workload\": \"echo\", \"contender\": \"glommio\", \"workers\": {workers}");
    print!(", \"connections\": {}", CONNECTIONS.load(Ordering::Relaxed));
    print!(", \"bytes\": {}", BYTES.load(Ordering::Relaxed));
    println!(", \"cpu_ns\": {}}}", cpu_ns());
    std::process::exit(0);
}
