//! The two tiers. The edge tier sends views, touches and traffic counts in batches; the home tier receives them, and
//! answers what the edge tier passes on.

use std::{rc::Rc, time::Duration};

use http::StatusCode;

use super::{flush, handle};
use crate::{
    App,
    page_cache::{CacheStatus, HandedOver},
    ports::{
        answer::{Answer, BackgroundTask},
        circuit_breaker::Circuit,
        fetch::{Collected, Request, Response},
        time::Timestamp,
        writer_lease::LeaseHolder,
    },
    proxy::home,
};

/// Time that a batch of the edge tier waits for further activity.
pub const WINDOW: Duration = Duration::from_secs(1);
/// Longest time that one request sends batches.
const MAX_TIME: Duration = Duration::from_secs(15);
/// The most batches of one request. A Worker calls other Workers at most 32 times for a request (Cloudflare, Service
/// bindings, Limits). The rest is for the request itself and for probes.
const MAX_BATCHES: usize = 24;
/// The longest batch, bytes.
const BATCH_LIMIT: usize = 1 << 20;

/// Answers a request that arrives at the home tier's entry point. No visitor can reach it.
pub async fn handle_from_edge(app: &Rc<App>, mut request: Request) -> Answer {
    if !home::accept(app, &mut request) {
        log::warn!("a request without the edge tier's key is refused: both tiers need the same SESSION_KEYS");
        return home::refusal().into();
    }
    if request.uri().path() == home::PATH {
        return receive(app, request).await;
    }
    let mut answer = handle(app, request).await;
    let response = &mut answer.response;
    if response.extensions().get::<HandedOver>().is_none() {
        home::clean(response.headers_mut());
    }
    if let Some(change) = response.extensions().get().copied() {
        home::tell_change(response.headers_mut(), change);
    }
    if response.extensions().get::<CacheStatus>().is_some_and(|status| status.lacks_redis()) {
        home::mark_without_redis(response.headers_mut());
    }
    answer
}

async fn receive(app: &Rc<App>, request: Request) -> Answer {
    let Ok(Collected::Whole(body)) = request.into_body().collect(BATCH_LIMIT).await else {
        return status(StatusCode::BAD_REQUEST).into();
    };
    // Lines of an unknown kind are skipped: the tiers may have different versions.
    for line in std::str::from_utf8(&body).unwrap_or_default().lines() {
        let _is_known = app.activity.receive(line) || app.traffic.receive(line);
    }
    Answer { response: status(StatusCode::NO_CONTENT), background: flush(app, app.clock.now()) }
}

fn status(status: StatusCode) -> Response {
    let mut response = Response::default();
    *response.status_mut() = status;
    response
}

/// The background tasks of the edge tier: the batches that are due, and a probe of a silent home tier.
pub fn background(app: &Rc<App>, now: Timestamp) -> Vec<BackgroundTask> {
    let mut tasks: Vec<BackgroundTask> = Vec::new();
    let has_something = !app.activity.is_idle() || app.traffic.has_counts();
    // While the circuit to the home tier is open, everything stays in its bounded queues.
    if has_something
        && !app.circuit.is_open()
        && let Some(holder) = app.activity.begin_relay(now)
    {
        tasks.push(Box::pin(send_batches(app.clone(), holder)));
    }
    if app.circuit.state(now) == (Circuit::Open { probe: true }) {
        let app = app.clone();
        tasks.push(Box::pin(async move {
            home::probe(&app).await;
        }));
    }
    tasks
}

/// Sends one batch after another until nothing is left, full ones without a pause. A batch without an answer is not sent
/// again, because the home tier may have received it. After it, the next batch waits for the pause and for a successful
/// probe.
async fn send_batches(app: Rc<App>, holder: LeaseHolder) {
    let end = app.clock.now() + MAX_TIME;
    let mut is_answered = None;
    for _ in 0..MAX_BATCHES {
        if app.clock.now() >= end {
            break;
        }
        if !(is_answered == Some(true) && app.activity.has_full_batch()) {
            app.clock.sleep(WINDOW).await;
        }
        // Nothing is sent through an open circuit, so a batch that was taken would be lost.
        if app.circuit.is_open() {
            break;
        }
        if is_answered == Some(false) && !home::probe(&app).await {
            continue;
        }
        let batch = app.activity.take_relay_lines(&app.limits.views).await + &app.traffic.take_relay_lines();
        if batch.is_empty() {
            break;
        }
        let answer = home::send(&app, home::batch(batch), None).await;
        is_answered = Some(answer.is_ok());
        match answer {
            Ok(answer) if answer.status() == StatusCode::NOT_FOUND => {
                log::error!(
                    "a batch of views is lost: bind HOME to the entry point `home`, as `cargo xtask tiers` does"
                );
            }
            Ok(_) => {}
            Err(error) => log::warn!("a batch of views is lost: {error}"),
        }
    }
    app.activity.end_relay(holder);
}
