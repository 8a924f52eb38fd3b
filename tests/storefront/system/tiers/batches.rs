//! The batches of an isolate of the edge tier, at the test's clock.

use std::{cell::RefCell, rc::Rc, time::Duration};

use edgefront::{
    App,
    ports::{
        fetch::{Body, Collected, FetchError, Request, Response},
        home::Home,
    },
    ranking::activity::Viewer,
    routes,
    schema::token::Token,
};
use futures_util::future::LocalBoxFuture;
use http::StatusCode;
use tokio::task::LocalSet;

use crate::support::{Steps, Store, app, config};

const SECOND: Duration = Duration::from_secs(1);
/// The most batches of one request, and the most touches of a batch.
const MAX_BATCHES: usize = 24;
const BATCH_SIZE: usize = 200;
/// The home tier accepts no longer batch.
const BATCH_LIMIT: usize = 1 << 20;

/// A home tier that counts.
#[derive(Default)]
struct CountingHome {
    failure: RefCell<Option<FetchError>>,
    /// The touches of each batch.
    batches: RefCell<Vec<usize>>,
}

impl Home for CountingHome {
    fn send(&self, request: Request, _: Duration) -> LocalBoxFuture<'_, Result<Response, FetchError>> {
        Box::pin(async {
            if let Some(failure) = &*self.failure.borrow() {
                return Err(failure.clone());
            }
            let Ok(Collected::Whole(body)) = request.into_body().collect(BATCH_LIMIT).await else {
                panic!("a batch within the limit")
            };
            let lines = std::str::from_utf8(&body).unwrap().lines();
            let touches = lines.filter(|line| line.starts_with("touch\t")).count();
            if touches > 0 {
                self.batches.borrow_mut().push(touches);
            }
            let mut response = Response::default();
            *response.status_mut() = StatusCode::NO_CONTENT;
            Ok(response)
        })
    }
}

struct Edge {
    app: Rc<App>,
    home: Rc<CountingHome>,
    steps: Steps,
}

impl Edge {
    async fn start() -> Self {
        let (steps, home, store) = (Steps::default(), Rc::<CountingHome>::default(), Store::book().await);
        let app = app(config(&store.variables(&[])), steps.clone());
        Self { app: Rc::new(App { home: Some(home.clone()), ..app }), home, steps }
    }

    /// Records visits of this number of sessions.
    fn record(&self, visits: usize) {
        let now = self.app.clock.now();
        for _ in 0..visits {
            let token = Token::new(now).unwrap();
            self.app.activity.record_visit(Viewer { token: Some(&token), network: None }, None, now);
        }
    }

    /// Answers a request; its background tasks run in the steps.
    async fn visit(&self, path: &str) {
        let mut request = Request::new(Body::Empty);
        *request.uri_mut() = format!("http://shop.example{path}").parse().unwrap();
        for work in routes::handle(&self.app, request).await.background {
            self.steps.spawn(work);
        }
        self.steps.settle().await;
    }

    /// Answers a request that asks nothing of the home tier.
    async fn answer(&self) {
        self.visit("/_edge/").await;
    }

    fn received(&self) -> usize {
        self.home.batches.borrow().iter().sum()
    }
}

/// Runs a test in the steps.
async fn at_the_edge(test: impl AsyncFnOnce(Edge)) {
    LocalSet::new().run_until(async { test(Edge::start().await).await }).await;
}

#[tokio::test]
async fn an_isolate_carries_all_touches_of_a_busy_second_in_that_second() {
    at_the_edge(async |edge| {
        for second in 1..=40 {
            edge.record(600);
            edge.answer().await;
            edge.steps.advance(SECOND).await;
            assert_eq!(edge.received(), second * 600);
        }
    })
    .await;
}

#[tokio::test]
async fn a_request_sends_a_bounded_number_of_batches_and_the_next_one_the_rest() {
    at_the_edge(async |edge| {
        edge.record(10_000);
        edge.answer().await;
        for sent in [MAX_BATCHES, 2 * MAX_BATCHES, 10_000 / BATCH_SIZE] {
            edge.answer().await;
            edge.steps.advance(SECOND).await;
            assert_eq!(*edge.home.batches.borrow(), vec![BATCH_SIZE; sent]);
        }
    })
    .await;
}

#[tokio::test]
async fn an_open_circuit_keeps_the_activity_until_the_home_tier_answers_again() {
    at_the_edge(async |edge| {
        edge.record(500);
        edge.answer().await;
        edge.home.failure.replace(Some(FetchError::Timeout));
        for _ in 0..3 {
            edge.visit("/about").await;
        }
        assert!(edge.app.circuit.is_open());
        for _ in 0..4 {
            edge.steps.advance(SECOND).await;
        }
        edge.home.failure.take();
        edge.steps.advance(SECOND).await;
        // The probe of this request closes the circuit.
        edge.answer().await;
        assert!(!edge.app.circuit.is_open());
        edge.answer().await;
        // The full batches, and the rest.
        edge.steps.advance(SECOND).await;
        edge.steps.advance(SECOND).await;
        assert_eq!(edge.received(), 500);
    })
    .await;
}

#[tokio::test]
async fn a_silent_home_tier_costs_at_most_a_batch_a_second() {
    at_the_edge(async |edge| {
        edge.record(1_000);
        edge.answer().await;
        edge.home.failure.replace(Some(FetchError::Timeout));
        edge.steps.advance(SECOND).await;
        edge.home.failure.take();
        edge.steps.advance(SECOND).await;
        assert_eq!(edge.received(), 1_000 - BATCH_SIZE);
    })
    .await;
}

#[tokio::test]
async fn a_home_tier_that_is_down_costs_one_batch_until_it_answers_again() {
    at_the_edge(async |edge| {
        edge.record(100);
        edge.answer().await;
        edge.home.failure.replace(Some(FetchError::Unreachable));
        edge.steps.advance(SECOND).await;
        for _ in 0..5 {
            edge.record(10);
            edge.answer().await;
            edge.steps.advance(SECOND).await;
        }
        edge.home.failure.take();
        edge.steps.advance(SECOND).await;
        assert_eq!(edge.received(), 50);
    })
    .await;
}
