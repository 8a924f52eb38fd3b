//! Accepts connections and serves HTTP on them.

use std::{sync::Arc, time::Duration};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::sleep,
};
use tokio_io_timeout::TimeoutWriter;

use super::{
    limits::ConnectionLimits,
    slots::{Slot, Slots},
};
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

/// Accepts connections until the task is aborted. That aborts the tasks of all connections too.
pub(super) async fn accept(listener: TcpListener, limits: ConnectionLimits, state: Arc<GatewayState>) {
    let slots = Slots::new(limits);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, address)) => match slots.take(address.ip()) {
                    Some(slot) => {
                        connections.spawn(serve(stream, limits, Arc::clone(&state), slot));
                    }
                    // Does not wait: a connection over the limits takes no resources.
                    None => drop(stream.try_write(TOO_MANY_CONNECTIONS)),
                },
                Err(_) => sleep(ACCEPT_BACKOFF).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Serves one connection. `_slot` is its place.
async fn serve(stream: TcpStream, limits: ConnectionLimits, state: Arc<GatewayState>, _slot: Slot) {
    // Small responses must not wait for the client's acknowledgement (Nagle's algorithm).
    let _ = stream.set_nodelay(true);
    // Hyper has no time limit for a client that does not read.
    let mut stream = TimeoutWriter::new(stream);
    stream.set_timeout(Some(limits.body_timeout));
    let service = service_fn(|request| handler::handle(Arc::clone(&state), request));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head_timeout);
    // An error means that the client disconnected or was too slow, or a fault closed the connection. There is nobody to
    // report it to.
    let _ = http.serve_connection(TokioIo::new(Box::pin(stream)), service).await;
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
