//! The budget of one cron run: time and outgoing requests. The platform kills an invocation that exceeds its limits. A
//! job that asks the budget stops between two steps and leaves the rest to the next minute.
//!
//! [`Budget::fetch`] and [`Budget::database`] count every request that goes out, including retries and scripts that are
//! sent in full. With an empty budget they refuse to send.

use std::{cell::Cell, rc::Rc, time::Duration};

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use serde_json::Value;
use upstash_rest::{ExchangeTerms, TransportError};

use crate::ports::{
    database::{Database, DatabaseError, Row, Statement},
    fetch::{Fetch, FetchError, Request, Response},
    time::{Clock, Timestamp},
};

/// Requests that no job plans with: a step of the other job (a lease, a query, a commit, or two batches of sessions),
/// both reports, and a retry.
const RESERVE: u64 = 6;
/// D1 queries per invocation on the Paid plan; on the Free plan [`Budget::spare`] is smaller.
const MAX_QUERIES: u64 = 1_000;

/// The remaining time and requests of a run. Concurrent jobs share the requests; each may have its own deadline.
pub struct Budget {
    clock: Rc<dyn Clock>,
    deadline: Timestamp,
    allowance: Rc<Allowance>,
}

/// The requests that may still be sent.
struct Allowance {
    requests: Cell<u64>,
    /// Requests to the database among them.
    queries: Cell<u64>,
}

impl Budget {
    /// A budget of `time` from now and `requests`.
    #[must_use]
    pub fn new(clock: Rc<dyn Clock>, time: Duration, requests: u64) -> Self {
        let deadline = clock.now() + time;
        let allowance = Allowance { requests: Cell::new(requests), queries: Cell::new(MAX_QUERIES) };
        Self { clock, deadline, allowance: Rc::new(allowance) }
    }

    /// The same requests with a deadline of `time` from now.
    #[must_use]
    pub fn within(&self, time: Duration) -> Self {
        Self { clock: self.clock.clone(), deadline: self.clock.now() + time, allowance: self.allowance.clone() }
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

    /// Returns whether the deadline has passed.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.now() >= self.deadline
    }

    /// Requests that the next step may use; 0 after the deadline.
    #[must_use]
    pub fn spare(&self) -> u64 {
        if self.is_over() { 0 } else { self.allowance.requests.get().saturating_sub(RESERVE) }
    }

    /// Database queries that the next step may use.
    #[must_use]
    pub fn spare_queries(&self) -> u64 {
        self.spare().min(self.allowance.queries.get())
    }

    /// The pause between two steps that spreads `steps` over the remaining time.
    #[must_use]
    pub fn pace(&self, steps: u64) -> Duration {
        self.deadline.since(self.now()) / u32::try_from(steps).unwrap_or(u32::MAX).max(1)
    }

    /// `fetch` within the budget.
    #[must_use]
    pub fn fetch(&self, fetch: Rc<dyn Fetch>) -> Rc<dyn Fetch> {
        Rc::new(Metered { inner: fetch, allowance: self.allowance.clone() })
    }

    /// `database` within the budget.
    #[must_use]
    pub fn database(&self, database: Rc<dyn Database>) -> Rc<dyn Database> {
        Rc::new(Metered { inner: database, allowance: self.allowance.clone() })
    }
}

impl Allowance {
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

/// Takes from the allowance before it sends.
struct Metered<T: ?Sized> {
    inner: Rc<T>,
    allowance: Rc<Allowance>,
}

impl Fetch for Metered<dyn Fetch> {
    fn fetch(&self, request: Request, deadline: Duration) -> LocalBoxFuture<'_, Result<Response, FetchError>> {
        Box::pin(async move {
            self.allowance.take_request()?;
            self.inner.fetch(request, deadline).await
        })
    }

    fn exchange(
        &self,
        request: http::Request<Bytes>,
        terms: ExchangeTerms,
    ) -> LocalBoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        Box::pin(async move {
            self.allowance.take_request()?;
            self.inner.exchange(request, terms).await
        })
    }
}

impl Database for Metered<dyn Database> {
    fn query<'a>(&'a self, sql: &'a str, params: &'a [Value]) -> LocalBoxFuture<'a, Result<Vec<Row>, DatabaseError>> {
        Box::pin(async move {
            self.allowance.take_query()?;
            self.inner.query(sql, params).await
        })
    }

    fn transaction<'a>(
        &'a self,
        statements: &'a [Statement<'a>],
    ) -> LocalBoxFuture<'a, Result<Vec<Vec<Row>>, DatabaseError>> {
        Box::pin(async move {
            self.allowance.take_query()?;
            self.inner.transaction(statements).await
        })
    }
}
