//! A TCP proxy: a task a connection, `copy_bidirectional` with buffers of 32 KiB.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::{TcpListener, TcpStream};

use crate::echo::raise_files;
use crate::signal::{block_sigterm, wait_sigterm};

const BUFFER_BYTES: usize = 32 * 1024;

static BYTES: AtomicU64 = AtomicU64::new(0);
static OPEN: AtomicU64 = AtomicU64::new(0);

async fn pass_on(mut client: TcpStream, upstream: &str) -> std::io::Result<()> {
    let mut server = TcpStream::connect(upstream).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (up, down) =
        copy_bidirectional_with_sizes(&mut client, &mut server, BUFFER_BYTES, BUFFER_BYTES).await?;
    BYTES.fetch_add(up + down, Ordering::Relaxed);
    Ok(())
}

/// Serves until SIGTERM.
pub fn serve(workers: usize, upstream: &'static str) {
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
                let (client, _) = listener.accept().await.expect("a connection");
                OPEN.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(async move {
                    if let Err(error) = pass_on(client, upstream).await {
                        eprintln!("a connection failed: {error}");
                    }
                    OPEN.fetch_sub(1, Ordering::Release);
                });
            }
        });
    });
    wait_sigterm();
    // A client sees its end before the task has counted it.
    for _ in 0..1000 {
        if OPEN.load(Ordering::Acquire) == 0 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    println!("{{\"bytes\": {}}}", BYTES.load(Ordering::Relaxed));
    std::process::exit(0);
}
