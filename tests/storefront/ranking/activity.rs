//! The background writes of an isolate, at a clock that each exchange with Redis moves on.

use std::{cell::RefCell, pin::pin, rc::Rc, time::Duration};

use bytes::Bytes;
use edgefront::{
    App,
    ports::{
        fetch::{Fetch, FetchError, Request, Response},
        time::{Clock, Timestamp},
    },
    ranking::activity::Viewer,
    schema::{ids::UserId, redis::Redis, token::Token},
};
use edgefront_gateway::{
    Fault, FaultScope,
    server::{Server, ServerOptions},
};
use futures_util::future::{LocalBoxFuture, poll_immediate};
use tokio::task::yield_now;
use upstash_rest::{ExchangeTerms, TransportError};

use super::{item, views};
use crate::support::{NativeFetch, Store, TestClock, config};

/// The longest time in which a request starts writes.
const MAX_WRITE_TIME: Duration = Duration::from_secs(17);

/// An exchange with Redis takes `time` of the test's clock.
struct SlowFetch {
    inner: NativeFetch,
    clock: TestClock,
    time: Duration,
    /// The beginnings and ends of the exchanges.
    exchanges: RefCell<Vec<(Timestamp, Timestamp)>>,
}

impl Fetch for SlowFetch {
    fn fetch(&self, request: Request, deadline: Duration) -> LocalBoxFuture<'_, Result<Response, FetchError>> {
        self.inner.fetch(request, deadline)
    }

    fn exchange(
        &self,
        request: http::Request<Bytes>,
        terms: ExchangeTerms,
    ) -> LocalBoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        let began = self.clock.now();
        self.clock.advance(self.time);
        self.exchanges.borrow_mut().push((began, self.clock.now()));
        self.inner.exchange(request, terms)
    }
}

/// An isolate that has recorded `touches` touches. Each of its exchanges with Redis takes `time`.
async fn slow_isolate(store: &Store, time: Duration, touches: usize) -> (Rc<App>, Rc<SlowFetch>) {
    store.load_scripts().await;
    let (inner, clock, exchanges) = (NativeFetch::new(), store.clock.clone(), RefCell::default());
    let fetch = Rc::new(SlowFetch { inner, clock, time, exchanges });
    let redis = config(&store.variables(&[])).redis;
    let redis = Redis::new(fetch.clone(), Rc::new(TestClock::ticking()), redis.credentials, redis.timeout, redis.keys);
    let app = store.app(&[]);
    let app = Rc::new(App { redis: Rc::new(redis), ..Rc::into_inner(app).expect("the only handle") });
    let now = app.clock.now();
    for _ in 0..touches {
        let token = Token::new(now).unwrap();
        app.activity.record_visit(Viewer { token: Some(&token), network: None }, None, now);
    }
    (app, fetch)
}

/// Runs the writes of one request, while other requests try to write, too.
async fn write(app: &Rc<App>) {
    let flush = || app.activity.flush(&app.redis, &app.clock, &app.limits.views, app.clock.now());
    let mut task = pin!(flush().expect("activity is pending, and nobody writes"));
    while poll_immediate(&mut task).await.is_none() {
        assert!(flush().is_none(), "one request at a time writes");
        yield_now().await;
    }
}

#[tokio::test]
async fn one_request_writes_and_leaves_the_rest_in_time() {
    for (millis, touches) in [(450, 10_000), (1_000, 3_000)] {
        let store = Store::new().await;
        let (app, fetch) = slow_isolate(&store, Duration::from_millis(millis), touches).await;
        let began = app.clock.now();
        write(&app).await;
        let duration = app.clock.now().since(began);
        assert!(duration <= MAX_WRITE_TIME + fetch.time, "{duration:?} with exchanges of {millis} ms");
        while !app.activity.is_idle() {
            write(&app).await;
        }
    }
}

#[tokio::test]
async fn a_slow_redis_raises_the_pace_by_one_level_for_each_interval() {
    let store = Store::new().await;
    let (app, fetch) = slow_isolate(&store, Duration::from_secs(1), 3_000).await;
    write(&app).await;
    let exchanges = fetch.exchanges.borrow();
    assert!(exchanges.len() > 4, "{exchanges:?}");
    let mut interval = Duration::from_millis(100);
    for pair in exchanges.windows(2) {
        let [(_, ended), (began, _)] = pair else { panic!("two exchanges") };
        interval *= 2;
        // The jitter is a quarter.
        assert!(began.since(*ended) >= interval * 3 / 4, "{interval:?}: {exchanges:?}");
    }
}

/// The script of the touches is unknown after a restart of the server, and the request with its source is refused. The
/// first request has counted the other view.
#[tokio::test]
async fn a_view_that_was_counted_beside_a_refused_script_counts_once() {
    let server = Server::start(ServerOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    let store = Store::on(&format!("{}/0", server.url())).await;
    let app = store.app(&[]);
    let now = app.clock.now();
    let user = UserId::parse("ada").unwrap();
    let token = crate::support::log_in(&app.redis, None, &user, now, &app.config.session).await.unwrap();
    let record = |token, name| app.activity.record_visit(Viewer { token, network: None }, Some(&item(name)), now);
    record(Some(&token), "cup");
    record(None, "mug");

    store.gateway.set_fault_for(Fault::quota(), FaultScope::Every(2));
    write(&app).await;
    assert_eq!((views(&store, "mug").await, views(&store, "cup").await), (Some(1.0), None));

    store.gateway.set_fault(None);
    write(&app).await;
    assert_eq!((views(&store, "mug").await, views(&store, "cup").await), (Some(1.0), Some(1.0)));
}
