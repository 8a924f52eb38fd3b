//! HTTP in, HTTP out. Paths below `/_edge/` belong to edgefront, all others to the storefront.
//! Routes send no Redis commands: they parse, make one domain call, and respond.
//!
//! - `storefront`: pages from the cache, or the origin's responses.
//! - `api`: `/_edge/v1`, a table of routes and their handlers.
//! - `dashboard`: `/_edge/`, the operator's page.
//! - `counted`: each answer counts in the traffic counters.
//! - [`problem`]: errors as responses.

use std::rc::Rc;

use http::{HeaderValue, Method, header};

use self::counted::{counted, metric_of_storefront};
use crate::{
    App,
    metrics::event_log,
    ports::{
        answer::{Answer, BackgroundTask},
        fetch::{Body, Request, Response},
    },
    schema::token::Token,
    sessions::cookie,
};
use upstash_rest::Attribution;

mod api;
mod counted;
mod dashboard;
pub mod problem;
mod storefront;

/// Answers a request whose URI is absolute. The caller still has to run the answer's background tasks.
pub async fn handle(app: &Rc<App>, request: Request) -> Answer {
    let now = app.clock.now();
    let method = request.method().clone();
    let path = request.uri().path();
    let asked = if path.starts_with(dashboard::PATH) { dashboard::PATH } else { "storefront" };
    let marks_change = !method.is_safe() && app.config.page.holes.has_facts();
    let changer = marks_change.then(|| app.keyring.read(request.headers(), now)).flatten();
    let mut answer = if path == dashboard::PATH || path == "/_edge" {
        dashboard::show(request.method(), path).into()
    } else if path.starts_with(dashboard::PATH) {
        api::handle(app, request, now).await
    } else {
        counted(app, metric_of_storefront, Box::pin(storefront::serve(app, request, now))).await
    };
    if marks_change {
        mark_change(app, changer.as_ref(), &mut answer.response);
    }
    // Every answer may carry the writes that are due, regardless of the route.
    let seen = app
        .activity
        .flush(&app.redis, &app.clock, &app.limits.views, now)
        .map(|work| -> BackgroundTask { Box::pin(app.redis.meter().attribute(Attribution::Background, work)) });
    answer.background.extend(seen);
    answer.background.extend(app.traffic.flush(&app.redis, now));
    event_log::request(&method, asked, &answer.response, || app.clock.now().since(now).as_millis());
    if method == Method::HEAD {
        drop_body(&mut answer);
    }
    answer
}

/// Lets the visitor's next pages show what the visitor changed: see [`cookie::changed`].
fn mark_change(app: &App, token: Option<&Token>, response: &mut Response) {
    if let Some(token) = token {
        app.pages.facts.forget(token);
    }
    if token.is_some() || response.headers().contains_key(header::SET_COOKIE) {
        response.headers_mut().append(header::SET_COOKIE, cookie::changed());
    }
}

/// Removes the body for HEAD; the headers stay those of GET, with `Content-Length` if the length is known.
fn drop_body(answer: &mut Answer) {
    let body = std::mem::take(answer.response.body_mut());
    if let (Body::Bytes(bytes), headers) = (body, answer.response.headers_mut()) {
        headers.entry(header::CONTENT_LENGTH).or_insert_with(|| HeaderValue::from(bytes.len()));
    }
}
