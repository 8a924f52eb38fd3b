//! Requests that bypass the cache.

use std::rc::Rc;

use http::Method;

use super::{noted::Noted, serve::gateway_timeout};
use crate::{
    App,
    page_cache::{
        cache_status::CacheStatus,
        policy::{Reason, RequestDirectives},
    },
    ports::{
        answer::{Answer, BackgroundTask},
        circuit_breaker::Circuit,
        error::Error,
        fetch::{Request, Response},
    },
    proxy::{self, OriginDirectives, Visit, VisitorContext, failure, home},
};
use upstash_rest::Command;

/// Forwards the visitor's own request, with the visitor's facts from Redis. While Redis is down the origin gets an
/// anonymous request. `only-if-cached` gets 504.
pub async fn bypass(visit: &Visit, reason: Reason, request: Request) -> Answer {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    if is_read && RequestDirectives::of(request.headers()).only_if_cached() {
        return gateway_timeout(CacheStatus::not_stored(reason.forward(), Reason::OnlyIfCached)).into();
    }
    bypass_with_note(visit, reason, request, None).await
}

/// As [`bypass`], for a page whose note the response can end.
pub(super) async fn bypass_with_note(visit: &Visit, reason: Reason, request: Request, noted: Option<Noted>) -> Answer {
    if visit.app.home.is_some() {
        return pass(visit, request).await;
    }
    // Only a signed cookie costs a request to Redis.
    if visit.token.is_some()
        && let Circuit::Open { probe } = visit.app.circuit.state(visit.now)
    {
        let answer = forward(visit, Reason::RedisDown, VisitorContext::without_redis(visit), request, noted).await;
        return answer.followed_by(probe.then(|| probe_redis(visit.app.clone())));
    }
    match VisitorContext::read(visit).await {
        Ok(visitor) => forward(visit, reason, visitor, request, noted).await,
        Err(error) => {
            if let Error::Redis(error) = &error {
                visit.app.circuit.record::<()>(&Err(error.clone()), visit.app.clock.now());
            }
            log::warn!("session: {error}");
            forward(visit, Reason::RedisDown, VisitorContext::without_redis(visit), request, noted).await
        }
    }
}

/// Passes a request to the home tier.
pub(super) async fn pass(visit: &Visit, request: Request) -> Answer {
    let headers = request.headers().clone();
    match home::send(&visit.app, request, None).await {
        Ok(response) => response.into(),
        Err(error) => unavailable(&visit.app, &error, &headers),
    }
}

/// 503: the home tier is down.
pub(super) fn unavailable(app: &App, error: &Error, request: &http::HeaderMap) -> Answer {
    let mut response = failure(app, error, request);
    CacheStatus::bypass(Reason::HomeDown).append_to(&mut response);
    response.into()
}

/// Forwards the visitor's own request; `reason` goes into `Cache-Status`.
pub(super) async fn forward(
    visit: &Visit,
    reason: Reason,
    visitor: VisitorContext,
    request: Request,
    mut noted: Option<Noted>,
) -> Answer {
    let mut observe = |response: &mut Response, directives: &OriginDirectives| {
        if let Some(noted) = &mut noted {
            noted.observe(response, directives);
        }
        CacheStatus::bypass(reason).append_to(response);
    };
    let answer = Box::pin(proxy::forward(visit, visitor, request, &mut observe)).await;
    answer.followed_by(noted.and_then(|noted| noted.end(&visit.app)))
}

/// Checks whether Redis is back; an answer closes the circuit.
pub(super) fn probe_redis(app: Rc<App>) -> BackgroundTask {
    Box::pin(async move {
        let outcome = app.redis.run::<()>(Command::read("PING")).await;
        app.circuit.record(&outcome, app.clock.now());
    })
}
