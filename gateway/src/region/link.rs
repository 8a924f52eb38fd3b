//! A link that delays the replication stream: a TCP proxy between a replica and its primary.

use std::{io, net::Ipv4Addr, time::Duration};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{mpsc, watch},
    task::{JoinHandle, JoinSet},
    time::{Instant, sleep_until},
};

/// The address of every link.
pub(super) const HOST: &str = "127.0.0.1";
/// Parts of the stream that may be under way. A faster primary waits.
const MAX_PARTS: usize = 4_096;
const READ_SIZE: usize = 64 << 10;

/// A link to a primary, on a free port of 127.0.0.1. It closes when dropped.
pub(super) struct Link {
    port: u16,
    lag: watch::Sender<Duration>,
    accept_task: JoinHandle<()>,
}

impl Link {
    /// Opens a link without delay to the primary at `address`.
    pub(super) async fn open(address: String) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let (lag, current) = watch::channel(Duration::ZERO);
        let accept_task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((replica, _)) = listener.accept().await {
                connections.spawn(serve(replica, address.clone(), current.clone()));
            }
        });
        Ok(Self { port, lag, accept_task })
    }

    /// The port for the replica, on [`HOST`].
    pub(super) const fn port(&self) -> u16 {
        self.port
    }

    /// Sets the delay, also of the bytes that are under way.
    pub(super) fn set_lag(&self, lag: Duration) {
        self.lag.send_replace(lag);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.accept_task.abort();
    }
}

/// Serves one connection of the replica. An error ends it: the replica connects again.
async fn serve(replica: TcpStream, primary: String, lag: watch::Receiver<Duration>) {
    let Ok(primary) = TcpStream::connect(primary).await else { return };
    let _ = (replica.set_nodelay(true), primary.set_nodelay(true));
    let (from_replica, to_replica) = replica.into_split();
    let (from_primary, to_primary) = primary.into_split();
    let (parts, queue) = mpsc::channel(MAX_PARTS);
    tokio::select! {
        _ = forward(from_replica, to_primary) => {}
        _ = collect(from_primary, parts) => {}
        _ = deliver(queue, to_replica, lag) => {}
    }
}

/// The replica's acknowledgements are not delayed.
async fn forward(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) -> io::Result<u64> {
    copy(&mut from, &mut to).await
}

async fn collect(mut primary: OwnedReadHalf, parts: mpsc::Sender<(Instant, Bytes)>) -> io::Result<()> {
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(READ_SIZE);
        let count = primary.read_buf(&mut buffer).await?;
        if count == 0 || parts.send((Instant::now(), buffer.split().freeze())).await.is_err() {
            return Ok(());
        }
    }
}

async fn deliver(
    mut queue: mpsc::Receiver<(Instant, Bytes)>,
    mut replica: OwnedWriteHalf,
    mut lag: watch::Receiver<Duration>,
) -> io::Result<()> {
    while let Some((sent, bytes)) = queue.recv().await {
        loop {
            let due = sent + *lag.borrow_and_update();
            tokio::select! {
                () = sleep_until(due) => break,
                Ok(()) = lag.changed() => {}
            }
        }
        replica.write_all(&bytes).await?;
    }
    Ok(())
}
