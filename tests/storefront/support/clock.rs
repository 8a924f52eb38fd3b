//! A clock that a test moves. It never goes back.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use edgefront::ports::time::{Clock, Timestamp};
use futures_util::future::LocalBoxFuture;

/// Clones show the same time.
#[derive(Clone)]
pub struct TestClock {
    /// The start time; None for a ticking clock.
    stands: Option<Timestamp>,
    /// The milliseconds by which the test or a sleep has moved the clock.
    moved: Arc<AtomicU64>,
}

impl TestClock {
    /// Starts at the real time and stands still. A sleep does not wait: it moves the clock to the end of the sleep.
    pub fn standing() -> Self {
        Self { stands: Some(real_time()), moved: Arc::default() }
    }

    /// Shows the real time plus the moves of the test. A sleep takes real time.
    pub fn ticking() -> Self {
        Self { stands: None, moved: Arc::default() }
    }

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
            // Other tasks, whose sleeps may be shorter, run first.
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
