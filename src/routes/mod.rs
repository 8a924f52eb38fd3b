//! HTTP in, HTTP out. `/_edge/` is ours, everything else is the storefront's. Nothing here is a Redis command.
//!
//! - [`problem`]: errors as answers.
//! - `api`: `/_edge/v1`, a table of routes and their handlers.
//! - `dashboard`: `/_edge/`, the operator's page.
//! - `storefront`: a page from the cache, or the origin's answer.

use std::rc::Rc;

use http::{HeaderValue, Method, header};

use crate::{
    App,
    metrics::{event_log, traffic::Metric},
    ports::{
        answer::{Answer, BackgroundTask},
        fetch::{Body, Request, Response},
    },
    upstash::Waits,
};

mod api;
mod dashboard;
pub mod problem;
mod storefront;

/// Answers a request whose URI is absolute. The answer's `later` is still to be run.
pub async fn handle(app: &Rc<App>, request: Request) -> Answer {
    let now = app.clock.now();
    let method = request.method().clone();
    let path = request.uri().path();
    let asked = if path.starts_with(dashboard::PATH) { dashboard::PATH } else { "storefront" };
    let mut answer = if path == dashboard::PATH || path == "/_edge" {
        dashboard::show(request.method(), path).into()
    } else if path.starts_with(dashboard::PATH) {
        api::handle(app, request, now).await
    } else {
        counted(app, Metric::of_storefront, Box::pin(storefront::serve(app, request, now))).await
    };
    // Whoever's answer it is: what visitors left behind is written as soon as it is due.
    let seen = app
        .activity
        .flush(&app.redis, &app.clock, &app.limits.views, now)
        .map(|work| -> BackgroundTask { Box::pin(app.redis.meter().during(Waits::Nobody, work)) });
    answer.background.extend(seen);
    answer.background.extend(app.traffic.flush(&app.redis, now));
    event_log::request(&method, asked, &answer.response, || app.clock.now().since(now).as_millis());
    if method == Method::HEAD {
        drop_body(&mut answer);
    }
    answer
}

/// Runs the work for a visitor's answer, and counts it: what it is, and what is sent to Redis before and behind it.
async fn counted(app: &App, count: impl Fn(&Response) -> Metric, work: impl Future<Output = Answer>) -> Answer {
    let meter = app.redis.meter();
    let mut answer = meter.clone().during(Waits::Caller, work).await;
    app.traffic.count(count(&answer.response));
    let behind =
        |background: BackgroundTask| -> BackgroundTask { Box::pin(meter.clone().during(Waits::Nobody, background)) };
    answer.background = answer.background.into_iter().map(behind).collect();
    answer
}

/// Leaves of an answer what HEAD asks for: the head that GET would have had, its Content-Length included if that is known.
fn drop_body(answer: &mut Answer) {
    let body = std::mem::take(answer.response.body_mut());
    if let (Body::Bytes(bytes), headers) = (body, answer.response.headers_mut()) {
        headers.entry(header::CONTENT_LENGTH).or_insert_with(|| HeaderValue::from(bytes.len()));
    }
}
