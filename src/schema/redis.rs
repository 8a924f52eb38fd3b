//! The Redis database: the client together with the layout of its keys.

use std::{cell::RefCell, ops::Deref, rc::Rc, time::Duration};

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use upstash_rest::{Alarm, Client, Command, Credentials, ExchangeTerms, Transport, TransportError, Wake};

use super::keys::{JOBS, Keys};
use crate::ports::{fetch::Fetch, histogram::Histogram, random, time::Clock};

/// No read replica is further behind the primary.
pub const MAX_REPLICA_LAG: Duration = Duration::from_mins(10);

/// The deadline of a call that no visitor waits for.
const BACKGROUND_DEADLINE: Duration = Duration::from_secs(10);

/// The shortest pause before a second attempt.
const RETRY_PAUSE: Duration = Duration::from_secs(2);

/// A client of the database, with the layout of its keys.
pub struct Redis {
    client: Client,
    clock: Rc<dyn Clock>,
    keys: Keys,
    /// Durations of the HTTP requests, shared with the handles of [`Redis::with_deadline`].
    latencies: Rc<RefCell<Histogram>>,
}

impl Redis {
    /// A database whose calls end within `deadline`.
    #[must_use]
    pub fn new(
        fetch: Rc<dyn Fetch>,
        clock: Rc<dyn Clock>,
        credentials: Credentials,
        deadline: Duration,
        keys: Keys,
    ) -> Self {
        let latencies = Rc::<RefCell<Histogram>>::default();
        let transport = PlatformTransport { fetch, clock: clock.clone(), latencies: latencies.clone() };
        Self { client: Client::new(Rc::new(transport), credentials, deadline), clock, keys, latencies }
    }

    /// The same database, if it has read replicas: see [`Client::near`].
    #[must_use]
    pub fn with_read_regions(self, has_read_regions: bool) -> Self {
        let client = if has_read_regions { self.client.with_read_regions() } else { self.client };
        Self { client, ..self }
    }

    /// The layout of the keys.
    #[must_use]
    pub const fn keys(&self) -> Keys {
        self.keys
    }

    /// A handle for background calls, which end within `deadline`.
    #[must_use]
    pub fn with_deadline(&self, deadline: Duration) -> Self {
        let (clock, latencies) = (self.clock.clone(), self.latencies.clone());
        Self { client: self.client.with_deadline(deadline), clock, keys: self.keys, latencies }
    }

    /// A handle for background calls that no visitor waits for.
    #[must_use]
    pub fn in_background(&self) -> Self {
        self.with_deadline(BACKGROUND_DEADLINE)
    }

    /// Waits for two to four seconds. Then returns a handle for the second attempt of a change that nobody repeats. By then,
    /// a rate limit per second has room again, or Redis has restarted. The jitter spreads the attempts.
    pub async fn for_retry(&self) -> Self {
        let [jitter] = random::bytes().unwrap_or_default();
        self.clock.sleep(RETRY_PAUSE + RETRY_PAUSE * u32::from(jitter) / 256).await;
        self.in_background()
    }

    /// The same database through another `fetch`, such as one with a budget. Its latencies are its own.
    #[must_use]
    pub fn through(self, fetch: Rc<dyn Fetch>) -> Self {
        let latencies = Rc::<RefCell<Histogram>>::default();
        let transport = PlatformTransport { fetch, clock: self.clock.clone(), latencies: latencies.clone() };
        Self { client: self.client.through(Rc::new(transport)), latencies, ..self }
    }

    /// Lets the later reads of this [scope](Client::in_scope) see every change until now: a write without effect, whose
    /// token is later than theirs. Without a scope, no request.
    ///
    /// # Errors
    /// Any [`Error`](upstash_rest::Error).
    pub async fn catch_up(&self) -> Result<(), upstash_rest::Error> {
        if self.scope().is_none() {
            return Ok(());
        }
        // No job has an empty name.
        self.reply(&Command::write("HDEL").arg(JOBS).arg("").repeatable().synced()).await.map(drop)
    }

    /// Takes the durations of the requests since the last call.
    #[must_use]
    pub fn take_latencies(&self) -> Histogram {
        self.latencies.take()
    }
}

impl Deref for Redis {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

/// edgefront's ports as the client's transport.
struct PlatformTransport {
    fetch: Rc<dyn Fetch>,
    clock: Rc<dyn Clock>,
    latencies: Rc<RefCell<Histogram>>,
}

impl Transport for PlatformTransport {
    fn exchange(
        &self,
        request: http::Request<Bytes>,
        terms: ExchangeTerms,
    ) -> LocalBoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        let began = self.clock.now();
        let exchange = self.fetch.exchange(request, terms);
        Box::pin(async move {
            let response = exchange.await;
            self.latencies.borrow_mut().record(self.clock.now().since(began));
            response
        })
    }

    fn now(&self) -> Duration {
        Duration::from_millis(self.clock.now().as_millis())
    }

    fn sleep(&self, duration: Duration) -> LocalBoxFuture<'static, ()> {
        self.clock.sleep(duration)
    }

    fn turn(&self) -> LocalBoxFuture<'static, ()> {
        self.clock.turn()
    }

    fn alarm(&self, duration: Duration) -> (Alarm, Wake) {
        self.clock.alarm(duration)
    }
}
