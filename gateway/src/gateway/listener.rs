//! Accepts connections and serves HTTP on them.

use std::{net::IpAddr, pin::pin, sync::Arc, time::Duration};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::sleep,
};
use tokio_io_timeout::TimeoutWriter;

use super::{limits::ConnectionLimits, slots::Slots, stop::Stop};
use crate::handler::{self, GatewayState};

/// Wait after a failed accept. The usual cause is that all file descriptors are in use; it passes when connections end.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(50);

/// The answer to a connection over the limits.
const TOO_MANY_CONNECTIONS: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    Content-Type: application/json\r\n\
    Content-Length: 45\r\n\
    Retry-After: 1\r\n\
    Connection: close\r\n\r\n\
    {\"error\":\"ERR max number of clients reached\"}";

/// Accepts connections until the shutdown signal, then waits for the end of all connections. If the task is aborted, the
/// tasks of all connections are, too.
pub(super) async fn accept(listener: TcpListener, limits: ConnectionLimits, state: Arc<GatewayState>, stop: Stop) {
    let mut stopped = stop.clone();
    let slots = Slots::new(limits.max_connections, limits.max_connections_per_address);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, address)) => match slots.take(address.ip()) {
                    Some(slot) => {
                        let (state, stop) = (Arc::clone(&state), stop.clone());
                        connections.spawn(async move {
                            serve(stream, address.ip(), limits, state, stop).await;
                            drop(slot);
                        });
                    }
                    // Does not wait: a connection over the limits takes no resources.
                    None => drop(stream.try_write(TOO_MANY_CONNECTIONS)),
                },
                Err(_) => sleep(ACCEPT_BACKOFF).await,
            },
            Some(_) = connections.join_next() => {}
            () = stopped.ordered() => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Serves one connection. After the shutdown signal, it completes the request in progress and accepts no other.
async fn serve(stream: TcpStream, client: IpAddr, limits: ConnectionLimits, state: Arc<GatewayState>, mut stop: Stop) {
    // Small responses must not wait for the client's acknowledgement (Nagle's algorithm).
    let _ = stream.set_nodelay(true);
    close_when_unacknowledged(&stream, limits.body_timeout);
    // Hyper has no time limit for a client that does not read.
    let mut stream = TimeoutWriter::new(stream);
    stream.set_timeout(Some(limits.body_timeout));
    let service = service_fn(|request| handler::handle(Arc::clone(&state), client, request));
    let mut http = http1::Builder::new();
    // A small response is one buffer: `send` takes less time than `writev`.
    http.timer(TokioTimer::new()).header_read_timeout(limits.head_timeout).writev(false);
    // An error means that the client disconnected or was too slow, or a fault closed the connection. There is nobody to
    // report it to.
    let mut connection = pin!(http.serve_connection(TokioIo::new(Box::pin(stream)), service));
    tokio::select! {
        _ = connection.as_mut() => return,
        () = stop.ordered() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// Lets the system close the connection when the client acknowledges nothing for `limit`. The heartbeats of a stream
/// fit into the system's buffers, so no write to a client that vanished would fail for minutes.
fn close_when_unacknowledged(stream: &TcpStream, limit: Duration) {
    #[cfg(target_os = "linux")]
    {
        let milliseconds = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX);
        // Without the option, the system's own limit holds.
        let _ = rustix::net::sockopt::set_tcp_user_timeout(stream, milliseconds);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (stream, limit);
}

#[cfg(test)]
mod tests {
    use super::TOO_MANY_CONNECTIONS;

    #[test]
    fn the_answer_has_the_length_that_it_declares() {
        let text = std::str::from_utf8(TOO_MANY_CONNECTIONS).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{}", body.len());
    }
}
