//! A service that burns CPU when a message asks for it, and probes its own timers and tasks: `service/noria_service.c`.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tokio::time::{sleep_until, Instant};

use crate::signal::{block_sigterm, wait_sigterm};
use crate::{burn_ns, now_ns, runtime};

const MESSAGE_BYTES: usize = 64;
const BURN_INLINE: u8 = 1;
const BURN_ON_POOL: u8 = 2;
const SPAWNED: usize = 8;

static MESSAGES: AtomicU64 = AtomicU64::new(0);
static STOP: AtomicBool = AtomicBool::new(false);
static TIMER_MAX_NS: AtomicU64 = AtomicU64::new(0);
static TASK_MAX_NS: AtomicU64 = AtomicU64::new(0);
static SPAWNED_MAX_NS: AtomicU64 = AtomicU64::new(0);

/// Delays count from the first message on.
fn note(longest: &AtomicU64, delay_ns: u64) {
    if MESSAGES.load(Ordering::Relaxed) > 0 {
        longest.fetch_max(delay_ns, Ordering::Relaxed);
    }
}

fn spawn_probe(handle: &Handle, longest: &'static AtomicU64) {
    let spawned_ns = now_ns();
    handle.spawn(async move { note(longest, now_ns() - spawned_ns) });
}

async fn serve_connection(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut message = [0; MESSAGE_BYTES];
    while stream.read_exact(&mut message).await.is_ok() {
        let duration_ns = u32::from_le_bytes(message[4..8].try_into().unwrap()) as u64 * 1000;
        MESSAGES.fetch_add(1, Ordering::Relaxed);
        match message[0] {
            BURN_INLINE => {
                (0..SPAWNED).for_each(|_| spawn_probe(&Handle::current(), &SPAWNED_MAX_NS));
                burn_ns(duration_ns);
            }
            BURN_ON_POOL => spawn_blocking(move || burn_ns(duration_ns)).await.unwrap(),
            _ => (),
        }
        stream.write_all(&message).await?;
    }
    Ok(())
}

async fn probe_timers() {
    loop {
        let deadline = Instant::now() + Duration::from_millis(1);
        sleep_until(deadline).await;
        note(&TIMER_MAX_NS, Instant::now().duration_since(deadline).as_nanos() as u64);
    }
}

fn probe_tasks(handle: Handle) {
    while !STOP.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(1));
        spawn_probe(&handle, &TASK_MAX_NS);
    }
}

pub fn serve(workers: u64) {
    block_sigterm();
    let rt = runtime(workers);
    rt.spawn(probe_timers());
    let handle = rt.handle().clone();
    let prober = thread::spawn(move || probe_tasks(handle));
    let listener = rt.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
    println!("port {}", listener.local_addr().unwrap().port());
    rt.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            tokio::spawn(serve_connection(stream));
        }
    });
    wait_sigterm();
    STOP.store(true, Ordering::Relaxed);
    prober.join().unwrap();
    print!("{{\"workload\": \"service\", \"contender\": \"tokio\", \"workers\": {workers}");
    print!(", \"messages\": {}", MESSAGES.load(Ordering::Relaxed));
    for (name, longest) in [("timer", &TIMER_MAX_NS), ("task", &TASK_MAX_NS), ("spawned", &SPAWNED_MAX_NS)] {
        print!(", \"{name}_max_us\": {:.3}", longest.load(Ordering::Relaxed) as f64 / 1e3);
    }
    println!("}}");
    std::process::exit(0);
}
