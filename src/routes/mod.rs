//! HTTP in, HTTP out. Paths below `/_edge/` belong to edgefront, all others to the storefront.
//! Routes send no Redis commands: they parse, make one domain call, and respond.
//!
//! - `storefront`: pages from the cache, or the origin's responses.
//! - `api`: `/_edge/v1`, a table of routes and their handlers.
//! - `dashboard`: `/_edge/`, the operator's page.
//! - `change`: requests whose effect the visitor's next pages must show.
//! - `counted`: each answer counts in the traffic counters.
//! - `sync`: with read regions, each visitor reads their own changes.
//! - `tiers`: requests from the edge tier to the home tier.
//! - [`problem`]: errors as responses.

use std::rc::Rc;

use http::{HeaderValue, Method, header};

use self::{
    change::VisitorChange,
    counted::{Area, counted},
    sync::VisitorSync,
};
use crate::{
    App,
    metrics::event_log,
    ports::{
        answer::{Answer, BackgroundTask},
        fetch::{Body, Request},
        time::Timestamp,
    },
    proxy::visit::EdgeAsk,
};
use upstash_rest::Attribution;

mod api;
mod change;
mod counted;
mod dashboard;
pub mod problem;
mod storefront;
mod sync;
mod tiers;

pub use self::tiers::{WINDOW as EDGE_BATCH_WINDOW, handle_from_edge};

/// Answers a request whose URI is absolute. The caller still has to run the answer's background tasks.
pub async fn handle(app: &Rc<App>, mut request: Request) -> Answer {
    let Some(mut sync) = VisitorSync::read(app, &request) else { return answer(app, request).await };
    let work = app.redis.in_scope(
        Some(sync.scope()),
        Box::pin(async {
            sync.merge(app, &mut request).await;
            answer(app, request).await
        }),
    );
    let mut answer = work.await;
    sync.end(app, &mut answer.response);
    answer
}

async fn answer(app: &Rc<App>, request: Request) -> Answer {
    let now = app.clock.now();
    let method = request.method().clone();
    let path = request.uri().path();
    let route = if path.starts_with(dashboard::PATH) { dashboard::PATH } else { "storefront" };
    let change = VisitorChange::begin(app, &request, now);
    let mut answer = if path == dashboard::PATH || path == "/_edge" {
        dashboard::show(request.method(), path).into()
    } else if path.starts_with(dashboard::PATH) {
        // Boxed, like the storefront below: otherwise each task would be as large as both.
        Box::pin(api::handle(app, request, now)).await
    } else if request.extensions().get::<EdgeAsk>().is_some_and(|ask| ask.is_confirmation) {
        // No visitor gets the answer.
        Box::pin(storefront::serve(app, request, now)).await
    } else {
        counted(app, Area::Storefront, now, Box::pin(storefront::serve(app, request, now))).await
    };
    if let Some(change) = change {
        change.end(app, &mut answer.response);
    }
    answer.background.extend(flush(app, now));
    event_log::request(&method, route, &answer.response, || app.clock.now().since(now).as_millis());
    if method == Method::HEAD {
        drop_body(&mut answer);
    }
    answer
}

/// The writes that are due. Every answer may carry them, regardless of the route.
fn flush(app: &Rc<App>, now: Timestamp) -> Vec<BackgroundTask> {
    if app.home.is_some() {
        return tiers::background(app, now);
    }
    let seen = app
        .activity
        .flush(&app.redis, &app.clock, &app.limits.views, now)
        .map(|work| -> BackgroundTask { Box::pin(app.redis.meter().attribute(Attribution::Background, work)) });
    seen.into_iter().chain(app.traffic.flush(&app.redis, &app.activity.pace(), now)).collect()
}

/// Removes the body for HEAD; the headers stay those of GET, with `Content-Length` if the length is known.
fn drop_body(answer: &mut Answer) {
    let body = std::mem::take(answer.response.body_mut());
    if let (Body::Bytes(bytes), headers) = (body, answer.response.headers_mut()) {
        headers.entry(header::CONTENT_LENGTH).or_insert_with(|| HeaderValue::from(bytes.len()));
    }
}
