//! `net/noria_echo.c`: a task a connection, each with a buffer of --buffer bytes (32 KiB): read, write all, again.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::signal::{block_sigterm, wait_sigterm};
use crate::{argument, cpu_ns};

static BYTES: AtomicU64 = AtomicU64::new(0);
static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

async fn echo(mut stream: TcpStream, buffer_bytes: usize) -> io::Result<()> {
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

/// As many descriptors as the system lets this process have.
pub fn raise_files() {
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
    }
}

/// Serves until SIGTERM, which is blocked in every thread and waited for by this one.
pub fn serve(workers: usize) {
    let buffer_bytes = argument("--buffer", 32 * 1024) as usize;
    raise_files();
    block_sigterm();
    let rt = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()
        .expect("a runtime");
    rt.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        println!("port {}", listener.local_addr().unwrap().port());
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                CONNECTIONS.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(echo(stream, buffer_bytes));
            }
        });
    });
    wait_sigterm();
    print!("{{\"workload\": \"echo\", \"contender\": \"tokio\", \"workers\": {workers}");
    print!(", \"connections\": {}", CONNECTIONS.load(Ordering::Relaxed));
    print!(", \"bytes\": {}", BYTES.load(Ordering::Relaxed));
    println!(", \"cpu_ns\": {}}}", cpu_ns());
    std::process::exit(0);
}
