//! Responses from the isolate's copies.

use std::rc::Rc;

use super::{
    PageRequest,
    bypass::{self, probe_redis},
    fill,
    found::LookupFailed,
    hand_over::hand_over,
    lease_end::release_late,
};
use crate::{
    App,
    page_cache::{
        cache_status::CacheStatus,
        key::PageKey,
        lookup::{LookupResult, look_up},
        memory::LocalHit,
        policy::{ForwardReason, Reason, Reuse, is_failure},
        respond::{is_unconditional_get, respond, respond_prepared},
        selecting::SelectingHeaders,
        stored_page::StoredPage,
        visitor_cookies::VisitorCookies,
    },
    ports::{
        answer::{Answer, BackgroundTask},
        circuit_breaker::Circuit,
        fetch::Request,
    },
    proxy::{RequestHead, Visit, VisitorContext},
};

/// Serves a copy without Redis. One request [confirms](confirm) the copy after its response, before the copy expires.
pub fn serve(visit: &Visit, request: &Request, key: &PageKey, hit: &LocalHit, cookies: &VisitorCookies) -> Answer {
    let LocalHit { page, prepared, .. } = hit;
    let status = CacheStatus::hit(page, visit.now);
    let is_filled = fill::is_needed(page, cookies, visit);
    if !is_filled && let Some(response) = hand_over(visit, key, page, status, hit.confirmed) {
        return response.into();
    }
    // The platform accepts no body with some statuses (204), and an empty body needs no preparation.
    let response = if is_filled {
        fill::respond(page, visit, request, status)
    } else if !page.body.is_empty() && is_unconditional_get(request.method(), request.headers()) {
        respond_prepared(page, prepared.clone(), status, visit.now)
    } else {
        respond(page, request.method(), request.headers(), status, visit.now)
    };
    visit.record(request.method(), request.headers(), page.status, page.item.as_ref());
    response.into()
}

/// Asks Redis whether it still has the page.
pub fn confirm(visit: &Visit, key: PageKey, selecting: SelectingHeaders, held: Rc<StoredPage>) -> BackgroundTask {
    let (app, now) = (visit.app.clone(), visit.now);
    Box::pin(async move {
        let epoch = app.pages.epoch(now);
        let mut held = held;
        // Another isolate of the location may have the page's successor.
        if !held.is_fresh(now)
            && let Some(newer) = app.location.find(&key, &selecting, Some(&held), now).await
        {
            held = newer;
        }
        match look_up(&app.redis, &key, &selecting, Some(&held), now).await {
            Ok(LookupResult { page: Some(mut page), .. }) => {
                page.hold(&*app.fetch);
                let page: Rc<StoredPage> = Rc::from(page);
                app.pages.keep(key.hash(), page.clone(), epoch);
                if page.render != held.render {
                    put_in_location(&app, &key, page).await;
                }
            }
            Ok(_) => app.pages.forget(key.hash(), now),
            Err(error) => log::warn!("page cache: {error}"),
        }
    })
}

/// Puts a page from Redis into the location's cache.
pub fn put_in_location(app: &Rc<App>, key: &PageKey, page: Rc<StoredPage>) -> BackgroundTask {
    let (app, key) = (app.clone(), key.clone());
    Box::pin(async move { app.location.put(&key, &page, app.clock.now()).await })
}

/// Serves a copy while the circuit is open, so that the origin does not get the cache's load. The copy may have missed
/// a purge. Without a copy the request is forwarded.
pub async fn serve_without_redis(page_request: Box<PageRequest>) -> Answer {
    let (app, now) = (page_request.visit.app.clone(), page_request.visit.now);
    let probe = app.circuit.state(now) == Circuit::Open { probe: true };
    let answer = match fallback(&page_request, &app) {
        Some(copy) => page_request.respond_with_fallback(&copy),
        None => forward(page_request).await,
    };
    answer.followed_by(probe.then(|| probe_redis(app)))
}

/// Redis failed just now: the request is forwarded. If the origin fails, too, a copy replaces its response.
pub async fn serve_after_redis_failed(page_request: Box<PageRequest>, failed: LookupFailed) -> Answer {
    let LookupFailed { error, lease } = failed;
    log::warn!("page cache: {error}");
    let (app, now) = (page_request.visit.app.clone(), page_request.visit.now);
    let copy = fallback(&page_request, &app);
    let head = RequestHead::of(&page_request.request);
    let mut answer = forward(page_request).await;
    if let Some(copy) = copy.filter(|_| is_failure(answer.response.status())) {
        let status = CacheStatus::fallback(&copy, now, Reason::RedisDown);
        answer.response = respond(&copy, &head.method, &head.headers, status, now);
    }
    answer.followed_by(lease.map(|lease| release_late(app, lease)))
}

async fn forward(page_request: Box<PageRequest>) -> Answer {
    if page_request.directives.only_if_cached() {
        return page_request.gateway_timeout(None, CacheStatus::bypass(Reason::RedisDown));
    }
    let visitor = VisitorContext::without_redis(&page_request.visit);
    bypass::forward(&page_request.visit, Reason::RedisDown, visitor, page_request.request, None).await
}

/// The copy that may answer the request while Redis is down.
pub fn fallback(page_request: &PageRequest, app: &App) -> Option<Rc<StoredPage>> {
    let now = page_request.visit.now;
    let copy = app.pages.fallback(page_request.key.hash(), &page_request.selecting, now)?;
    let (directives, state) = (&page_request.directives, copy.state(now));
    let is_usable = copy.is_fresh(now) || directives.allows_on_error(&state, false);
    let is_refused = directives.reuse(&state) == Reuse::Forward(ForwardReason::Request);
    Some(copy).filter(|copy| copy.may_be_served_to(&page_request.cookies) && is_usable && !is_refused)
}

impl PageRequest {
    fn respond_with_fallback(&self, copy: &StoredPage) -> Answer {
        let now = self.visit.now;
        self.respond_with(copy, CacheStatus::fallback(copy, now, Reason::RedisDown), now)
    }
}
