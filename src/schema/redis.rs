//! The Redis database: the client together with the layout of its keys.

use std::{ops::Deref, rc::Rc, time::Duration};

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use upstash_rest::{Alarm, Client, Credentials, ExchangeTerms, Transport, TransportError, Wake};

use super::keys::Keys;
use crate::ports::{fetch::Fetch, time::Clock};

/// A client of the database, with the layout of its keys.
pub struct Redis {
    client: Client,
    clock: Rc<dyn Clock>,
    keys: Keys,
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
        let client = Client::new(Rc::new(PlatformTransport { fetch, clock: clock.clone() }), credentials, deadline);
        Self { client, clock, keys }
    }

    /// The layout of the keys.
    #[must_use]
    pub const fn keys(&self) -> Keys {
        self.keys
    }

    /// A handle for background calls, which end within `deadline`.
    #[must_use]
    pub fn with_deadline(&self, deadline: Duration) -> Self {
        Self { client: self.client.with_deadline(deadline), clock: self.clock.clone(), keys: self.keys }
    }

    /// The same database through another `fetch`, such as one with a budget.
    #[must_use]
    pub fn through(self, fetch: Rc<dyn Fetch>) -> Self {
        let transport = PlatformTransport { fetch, clock: self.clock.clone() };
        Self { client: self.client.through(Rc::new(transport)), ..self }
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
}

impl Transport for PlatformTransport {
    fn exchange(
        &self,
        request: http::Request<Bytes>,
        terms: ExchangeTerms,
    ) -> LocalBoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        self.fetch.exchange(request, terms)
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
