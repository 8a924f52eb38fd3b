//! Shared parts of the benchmarks of whole operations: a gateway in front of a real server, and the system's clock.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::{Duration, SystemTime},
};

use edgefront::ports::time::{Clock, Timestamp};
use edgefront_gateway::{Gateway, Options, server::Server};
use futures_util::future::LocalBoxFuture;
use tokio::runtime::{self, Runtime};

#[path = "../../tests/storefront/support/fetch.rs"]
pub mod fetch;

pub const TOKEN: &str = "token-of-the-bench";

/// A single-threaded runtime.
pub fn runtime() -> Runtime {
    runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Starts a gateway on its own thread. It serves until the process ends.
pub fn serve_gateway(server: &Server) -> Arc<Gateway> {
    let redis = format!("{}/0", server.url());
    let (started, gateway) = mpsc::channel();
    thread::spawn(move || {
        runtime().block_on(async {
            let gateway = Gateway::start(Options::new(redis, TOKEN)).await.unwrap_or_else(|error| panic!("{error}"));
            let gateway = Arc::new(gateway);
            started.send(gateway.clone()).expect("the caller waits");
            std::future::pending::<()>().await;
        });
    });
    gateway.recv().expect("the gateway starts")
}

pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::UNIX_EPOCH.elapsed().expect("after 1970");
        Timestamp::from_millis(u64::try_from(since_epoch.as_millis()).expect("before the year 500 million"))
    }

    fn sleep(&self, duration: Duration) -> LocalBoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}
