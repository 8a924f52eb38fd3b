//! A row cache under test: a store, and a source of rows at a real HTTP address. Its clock moves only while no request
//! is in flight.

use std::{
    cell::Cell,
    collections::BTreeMap,
    rc::Rc,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use edgefront::{
    App,
    ports::{
        budget::Budget,
        fetch::{Collected, Fetch, FetchError, Request, Response},
        time::{Clock, Timestamp},
    },
    row_cache::{self, CachedRow, RefreshReport, RowSource},
    schema::{ids::RowId, redis::Redis},
};
use futures_util::future::{LocalBoxFuture, join};
use serde_json::{Value, json};
use upstash_rest::{ExchangeTerms, TransportError};

use super::{NativeFetch, Reply, Store, TestClock, TestOrigin, eventually};

/// Largest body of the rows' address, bytes.
const BODY: usize = 8 << 20;

/// A row cache, and the shop's rows.
pub struct Stock {
    pub store: Store,
    pub origin: TestOrigin,
    pub app: App,
    rows: Arc<Mutex<BTreeMap<String, Value>>>,
}

impl Stock {
    /// A shop without rows.
    pub async fn new() -> Self {
        Self::on(Store::new().await, &[])
    }

    /// As [`Stock::new`], on a given store, with more variables. `{origin}` in a value is the address of the origin.
    pub fn on(store: Store, variables: &[(&str, &str)]) -> Self {
        let origin = TestOrigin::start();
        let url = origin.url();
        let variables: Vec<_> =
            variables.iter().map(|(name, value)| (*name, value.replace("{origin}", &url))).collect();
        let rows = [("ROWS_URL", format!("{url}/rows"))];
        let variables: Vec<_> = variables.iter().chain(&rows).map(|(name, value)| (*name, value.as_str())).collect();
        let app = store.app(&variables);
        let app = Rc::into_inner(app).expect("nobody else has it");
        let in_flight = Rc::<Cell<usize>>::default();
        let fetch = Rc::new(CountedFetch { fetch: NativeFetch::new(), in_flight: in_flight.clone() });
        let clock = Rc::new(LeapingClock { clock: store.clock.clone(), in_flight });
        let config = app.config.redis.clone();
        let redis =
            Redis::new(fetch.clone(), Rc::new(TestClock::ticking()), config.credentials, config.timeout, config.keys);
        let stock = Self { store, origin, app: App { redis: redis.into(), fetch, clock, ..app }, rows: Arc::default() };
        stock.works();
        stock
    }

    /// Puts a row into the shop's database, or replaces it.
    pub fn put(&self, id: &str, quantity: u32) {
        let row = json!({"id": id, "name": "Enamel mug", "quantity": quantity});
        self.rows.lock().unwrap().insert(id.to_owned(), row);
    }

    /// As [`Stock::put`], with a description of `bytes`.
    pub fn put_large(&self, id: &str, bytes: usize) {
        let row = json!({"id": id, "description": "x".repeat(bytes)});
        self.rows.lock().unwrap().insert(id.to_owned(), row);
    }

    /// Deletes a row from the shop's database.
    pub fn delete(&self, id: &str) {
        self.rows.lock().unwrap().remove(id);
    }

    /// Lets the address reply with the rows of the query.
    pub fn works(&self) {
        let rows = self.rows.clone();
        self.origin.answer_with(move |asked| {
            let ids = asked.path.strip_prefix("/rows?ids=").expect("the rows' address");
            let rows = rows.lock().unwrap();
            let found: Vec<_> = ids.split(',').filter_map(|id| rows.get(id)).collect();
            Reply::html(json!(found).to_string())
        });
    }

    pub fn now(&self) -> Timestamp {
        self.app.clock.now()
    }

    pub fn source(&self) -> RowSource<'_> {
        self.app.row_source().expect("ROWS_URL is set")
    }

    /// Schedules a row.
    pub async fn schedule(&self, id: &str, every: f64) {
        row_cache::schedule(&self.app.redis, &row(id), every, self.now()).await.unwrap();
    }

    /// Refreshes the rows that are due now.
    pub async fn refresh(&self) -> RefreshReport {
        self.refresh_for(Duration::ZERO).await
    }

    /// As [`Stock::refresh`]. Runs `work` while the query of the source is under way.
    pub async fn refresh_while(&self, work: impl Future<Output = ()>) -> RefreshReport {
        self.origin.hold();
        let meanwhile = async {
            eventually("the source is asked", async || self.origin.count() == 1).await;
            work.await;
            self.origin.release();
        };
        join(self.refresh(), meanwhile).await.0
    }

    /// Refreshes the rows that become due within `time`.
    pub async fn refresh_for(&self, time: Duration) -> RefreshReport {
        let budget = Budget::new(self.app.clock.clone(), time + Duration::from_mins(1), 1_000_000);
        row_cache::refresh_due(&self.app.redis, &self.source(), &budget, self.now() + time).await.unwrap().0
    }

    /// Reads the copy of a row.
    pub async fn read(&self, id: &str) -> Option<CachedRow> {
        row_cache::read(&self.app.redis, Some(&self.source()), &row(id), self.now()).await.unwrap()
    }

    /// The quantity in the copy of a row; null without a copy.
    pub async fn copied(&self, id: &str) -> Value {
        let copy = self.store.raw(&["GET", &format!("inv:{id}")]).await;
        let parsed = |text| serde_json::from_str::<Value>(text).unwrap()["quantity"].take();
        copy.as_str().map_or(Value::Null, parsed)
    }

    /// Seconds until the next refresh of a row; None if it is not scheduled.
    pub async fn due_in(&self, id: &str) -> Option<f64> {
        let score = self.store.raw(&["ZSCORE", "schedule:", id]).await;
        let score: f64 = score.as_str()?.parse().unwrap();
        // The digits below a millisecond identify the lease. Those below a microsecond are rounding errors of the
        // score.
        Some(((score - self.now().as_score()) * 1000.0 + 0.0005).floor() / 1000.0)
    }
}

pub fn row(id: &str) -> RowId {
    RowId::parse(id).unwrap()
}

/// A standing clock. A sleep ends at once, but not while a request is in flight: otherwise a sleep would let the
/// deadline of the request pass.
struct LeapingClock {
    clock: TestClock,
    in_flight: Rc<Cell<usize>>,
}

impl Clock for LeapingClock {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn sleep(&self, duration: Duration) -> LocalBoxFuture<'static, ()> {
        let (leap, in_flight) = (self.clock.sleep(duration), self.in_flight.clone());
        Box::pin(async move {
            tokio::task::yield_now().await;
            while in_flight.get() > 0 {
                tokio::task::yield_now().await;
            }
            leap.await;
        })
    }
}

/// Counts the requests in flight. A request ends when its whole response has arrived.
struct CountedFetch {
    fetch: NativeFetch,
    in_flight: Rc<Cell<usize>>,
}

impl Fetch for CountedFetch {
    fn fetch(&self, request: Request, deadline: Duration) -> LocalBoxFuture<'_, Result<Response, FetchError>> {
        self.in_flight.update(|count| count + 1);
        Box::pin(async move {
            let response = async { whole(self.fetch.fetch(request, deadline).await?).await }.await;
            self.in_flight.update(|count| count - 1);
            response
        })
    }

    fn exchange(
        &self,
        request: http::Request<Bytes>,
        terms: ExchangeTerms,
    ) -> LocalBoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        self.in_flight.update(|count| count + 1);
        Box::pin(async move {
            let response = self.fetch.exchange(request, terms).await;
            self.in_flight.update(|count| count - 1);
            response
        })
    }
}

async fn whole(response: Response) -> Result<Response, FetchError> {
    let (head, body) = response.into_parts();
    let body = match body.collect(BODY).await {
        Ok(Collected::Whole(bytes)) => bytes.into(),
        Ok(Collected::TooLarge(body) | Collected::Slow(body)) => body,
        Err(_) => return Err(FetchError::Unreachable),
    };
    Ok(Response::from_parts(head, body))
}
