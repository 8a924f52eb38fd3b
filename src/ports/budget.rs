//! What one run of the crons may spend: time, and requests to elsewhere. The platform ends an invocation that goes beyond, in
//! the middle of whatever it does; a job that asks first stops between two steps and leaves the rest to the next minute.
//!
//! Requests are counted where they go out, by [`Budget::fetch`] and [`Budget::database`], so nothing can be forgotten: retries, and
//! scripts that had to be sent in full, count too. What is used up there refuses to send.

use std::{cell::Cell, rc::Rc, time::Duration};

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use serde_json::Value;

use crate::ports::{
    database::{Database, DatabaseError, Row, Statement},
    fetch::{Fetch, FetchError, Request, Response},
    time::{Clock, Timestamp},
};

/// Requests that no job plans with: a step of the other job that is under way (a lease, a query, a commit, or two batches of sessions), the
/// reports of both, and a retry.
const RESERVE: u64 = 6;
/// What D1 answers to one invocation, on the Paid plan; on the Free plan [`Budget::spare`] is less.
const QUERIES: u64 = 1_000;

/// What is left of a run. Jobs that run side by side share the requests; each may have an end of its own.
pub struct Budget {
    clock: Rc<dyn Clock>,
    until: Timestamp,
    purse: Rc<Purse>,
}

/// What may still be sent.
struct Purse {
    requests: Cell<u64>,
    /// Of them, to the database.
    queries: Cell<u64>,
}

impl Budget {
    /// So much `time` from now, and so many `requests`.
    #[must_use]
    pub fn new(clock: Rc<dyn Clock>, time: Duration, requests: u64) -> Self {
        let until = clock.now() + time;
        let purse = Purse { requests: Cell::new(requests), queries: Cell::new(QUERIES) };
        Self { clock, until, purse: Rc::new(purse) }
    }

    /// The same requests, and so much time from now.
    #[must_use]
    pub fn within(&self, time: Duration) -> Self {
        Self { clock: self.clock.clone(), until: self.clock.now() + time, purse: self.purse.clone() }
    }

    /// The current moment.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Resolves after `duration`.
    pub async fn sleep(&self, duration: Duration) {
        self.clock.sleep(duration).await;
    }

    /// Whether the time is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.now() >= self.until
    }

    /// How many requests a step that begins now may need; 0 when the time is over.
    #[must_use]
    pub fn spare(&self) -> u64 {
        if self.is_over() { 0 } else { self.purse.requests.get().saturating_sub(RESERVE) }
    }

    /// How many of them may go to the database.
    #[must_use]
    pub fn spare_queries(&self) -> u64 {
        self.spare().min(self.purse.queries.get())
    }

    /// How long to wait from one step to the next, so that `steps` of them last until the end.
    #[must_use]
    pub fn pace(&self, steps: u64) -> Duration {
        self.until.since(self.now()) / u32::try_from(steps).unwrap_or(u32::MAX).max(1)
    }

    /// `fetch`, as long as there are requests left.
    #[must_use]
    pub fn fetch(&self, fetch: Rc<dyn Fetch>) -> Rc<dyn Fetch> {
        Rc::new(Counted { inner: fetch, purse: self.purse.clone() })
    }

    /// `database`, as long as there are queries left.
    #[must_use]
    pub fn database(&self, database: Rc<dyn Database>) -> Rc<dyn Database> {
        Rc::new(Counted { inner: database, purse: self.purse.clone() })
    }
}

impl Purse {
    fn take_request(&self) -> Result<(), FetchError> {
        let left = self.requests.get().checked_sub(1).ok_or(FetchError::Spent)?;
        self.requests.set(left);
        Ok(())
    }

    fn take_query(&self) -> Result<(), DatabaseError> {
        let spent = || DatabaseError::Failed(FetchError::Spent.to_string());
        let left = self.queries.get().checked_sub(1).ok_or_else(spent)?;
        self.take_request().map_err(|_| spent())?;
        self.queries.set(left);
        Ok(())
    }
}

/// A way out that takes from the purse first.
struct Counted<T: ?Sized> {
    inner: Rc<T>,
    purse: Rc<Purse>,
}

impl Fetch for Counted<dyn Fetch> {
    fn fetch(&self, request: Request, deadline: Duration) -> LocalBoxFuture<'_, Result<Response, FetchError>> {
        Box::pin(async move {
            self.purse.take_request()?;
            self.inner.fetch(request, deadline).await
        })
    }

    fn exchange(
        &self,
        request: http::Request<Bytes>,
        deadline: Duration,
        limit: usize,
    ) -> LocalBoxFuture<'_, Result<http::Response<Bytes>, FetchError>> {
        Box::pin(async move {
            self.purse.take_request()?;
            self.inner.exchange(request, deadline, limit).await
        })
    }
}

impl Database for Counted<dyn Database> {
    fn query<'a>(&'a self, sql: &'a str, params: &'a [Value]) -> LocalBoxFuture<'a, Result<Vec<Row>, DatabaseError>> {
        Box::pin(async move {
            self.purse.take_query()?;
            self.inner.query(sql, params).await
        })
    }

    fn transaction<'a>(
        &'a self,
        statements: &'a [Statement<'a>],
    ) -> LocalBoxFuture<'a, Result<Vec<Vec<Row>>, DatabaseError>> {
        Box::pin(async move {
            self.purse.take_query()?;
            self.inner.transaction(statements).await
        })
    }
}
