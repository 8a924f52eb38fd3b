//! Time that a test moves. It never goes back.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use edgefront::ports::time::{Clock, Timestamp};
use futures_util::future::LocalBoxFuture;

/// A clock in the hand of the test; clones show the same time.
#[derive(Clone)]
pub struct TestClock {
    /// The time of a clock that does not tick.
    stands: Option<Timestamp>,
    /// Milliseconds by which the clock was moved.
    moved: Arc<AtomicU64>,
}

impl TestClock {
    /// Starts at the real time and stands still until moved. A sleep does not wait: it moves the clock to its end.
    pub fn standing() -> Self {
        Self { stands: Some(real_time()), moved: Arc::default() }
    }

    /// Shows the real time, or what the test moved it to, and really sleeps.
    pub fn ticking() -> Self {
        Self { stands: None, moved: Arc::default() }
    }

    /// Moves the clock on.
    pub fn advance(&self, duration: Duration) {
        self.moved.fetch_add(millis(duration), Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        let moved = Duration::from_millis(self.moved.load(Ordering::SeqCst));
        self.stands.unwrap_or_else(real_time) + moved
    }

    fn sleep(&self, duration: Duration) -> LocalBoxFuture<'static, ()> {
        if self.stands.is_none() {
            return Box::pin(tokio::time::sleep(duration));
        }
        let moved = self.moved.clone();
        let end = moved.load(Ordering::SeqCst) + millis(duration);
        Box::pin(async move {
            // Others, who may sleep less or not at all, come first.
            tokio::task::yield_now().await;
            moved.fetch_max(end, Ordering::SeqCst);
        })
    }
}

fn real_time() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).expect("the system's clock is after 1970");
    Timestamp::from_millis(millis(since_epoch))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).expect("fewer than 500 million years")
}
