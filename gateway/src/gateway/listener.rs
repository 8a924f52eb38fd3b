//! Accepts connections and serves HTTP on them.

use std::{sync::Arc, time::Duration};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::sleep,
};

use crate::handler::{self, GatewayState};

/// Wait after a failed accept. The usual cause is that all file descriptors are in use; it passes when connections end.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(50);

/// Accepts connections until the task is aborted. That aborts the tasks of all connections too.
pub(super) async fn accept(listener: TcpListener, state: Arc<GatewayState>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve(stream, Arc::clone(&state)));
                }
                Err(_) => sleep(ACCEPT_BACKOFF).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: TcpStream, state: Arc<GatewayState>) {
    // Small responses must not wait for the client's acknowledgement (Nagle's algorithm).
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| handler::handle(Arc::clone(&state), request));
    // An error means that the client disconnected or a fault closed the connection. There is nobody to report it to.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}
