//! Answers a request for a page: gathers the facts, asks [`decide`](super::decide) for the step, and runs it.
//!
//! - `known`: the facts about a request after a lookup.
//! - `local`: the isolate's copies, while they are confirmed or Redis is down.
//! - `edge_tier`: the edge tier's part.
//! - `hand_over`: the pages that the home tier hands over to it.
//! - `shared`: a render for everybody.
//! - `personal`: a render for one visitor.
//! - `background`: renders and leases that end after the response.
//! - [`render`]: a shared render, from one or two exchanges with the origin. The doctor judges a storefront with it, too.
//! - `exchange`: one exchange with the origin, and the judgement of its response.
//! - `esi`: the fragments of a shared render.
//! - `bypass`: requests that bypass the cache.
//! - `noted`: requests for a page with a hit-for-miss note. Their responses can end the note.
//! - `fill`: the holes of a page, filled for one visitor.
//! - `explain`: the decision for a URL, for operators.
//! - `invalidate`: unsafe requests; they bypass the cache and void the pages that they changed.
//! - `tokens`: the visitor's tokens in unsafe requests, in place of the placeholders of stored pages.
//! - `wait`: the wait of a request for the render of another request.

mod background;
mod bypass;
mod edge_tier;
mod esi;
mod exchange;
mod explain;
mod fill;
mod hand_over;
mod invalidate;
mod known;
mod local;
mod noted;
mod personal;
pub mod render;
mod shared;
mod tokens;
mod wait;

use std::{cell::LazyCell, rc::Rc, time::Duration};

use http::{HeaderValue, StatusCode, header};

use self::{
    background::{BackgroundRender, confirm_unstorable, release},
    noted::Noted,
    wait::RenderWait,
};
pub use self::{
    bypass::bypass,
    exchange::{RenderRequest, UnstorableResponse},
    explain::{ExplainedEntry, ExplainedPage, Explanation, explain},
    fill::visitor_content_for_browser,
    hand_over::HandedOver,
    invalidate::forward_unsafe,
};
use super::{
    admission::is_plain,
    cache_status::CacheStatus,
    decide::{FirstStep, Step, first_step, next_step},
    key::PageKey,
    lookup::{Lease, LeaseRequest, LeaseTerms, Lookup, LookupResult, PageState, SessionRead, Wanted},
    memory::LookupEpoch,
    policy::{ForwardReason, Reason, RequestDirectives, Reuse, freshness::Popularity},
    respond::respond,
    selecting::SelectingHeaders,
    stored_page::StoredPage,
    visitor_cookies::VisitorCookies,
};
use crate::{
    config::rules::CookieKind,
    ports::{
        answer::Answer,
        error::Error,
        fetch::{FetchError, Request, Response},
        time::Timestamp,
    },
    proxy::{Visit, failure, home::PageChange},
    sessions::{self, Session},
};
use upstash_rest::next_reply;

/// A request that the cache may answer. It is passed on in a box: each future on its way would have room for it twice.
struct PageRequest {
    visit: Visit,
    key: PageKey,
    directives: RequestDirectives,
    selecting: SelectingHeaders,
    cookies: VisitorCookies,
    /// The request has a cookie that may identify the visitor, or uncommon headers, so the response may be personal.
    has_personal_headers: bool,
    request: Request,
}

/// The reply of Redis.
struct Found {
    lookup: LookupResult,
    session: Option<Session>,
    /// The page is fresh, so the visitor's session was not read.
    lacks_session: bool,
    epoch: LookupEpoch,
    /// Redis sent the page: the location's cache does not have it.
    is_new: bool,
    /// A read region replied.
    is_near: bool,
}

/// The reason for asking the origin, and whether popularity admits a response without stated freshness.
#[derive(Clone, Copy)]
struct Miss {
    reason: ForwardReason,
    popularity: Popularity,
}

/// Answers a GET or HEAD for a page.
pub async fn answer(visit: Visit, key: PageKey, directives: RequestDirectives, request: Request) -> Answer {
    let (app, now) = (visit.app.clone(), visit.now);
    if let Some(change) = request.extensions().get::<PageChange>() {
        app.pages.learn_change(key.hash(), *change, now);
    }
    let rules = &app.config.page.headers;
    let cookies = LazyCell::new(|| VisitorCookies::of(request.headers(), &app.config.page.cookies, &rules.varied));
    let selecting = LazyCell::new(|| SelectingHeaders::of(request.headers(), rules, &cookies));
    let has_personal_headers = LazyCell::new(|| cookies.identify() || !is_plain(request.headers(), rules));
    let local = app.pages.hit(key.hash(), &selecting, now);
    let is_withheld = local.as_ref().is_some_and(|hit| !hit.page.may_be_served_to(&cookies));
    let local = local.filter(|_| !is_withheld);
    let reuse = local.as_ref().map(|hit| directives.reuse(&hit.page.state(now)));
    let bypass_reason = || {
        if is_withheld || cookies.strictest == CookieKind::Personal {
            return Some(Reason::Cookie);
        }
        let is_personal = || *has_personal_headers || visit.token.is_some();
        let personal = || app.pages.unstorable_personal(key.hash(), now).filter(|_| is_personal());
        app.pages.unstorable(key.hash(), now).or_else(personal)
    };
    let step = first_step(reuse, directives.only_if_cached(), bypass_reason, app.circuit.is_open());
    let is_edge = app.home.is_some();
    if let (FirstStep::ServeLocal, Some(hit)) = (step, local)
        && !(is_edge && fill::is_due(&hit.page, &cookies, &visit))
    {
        let answer = local::serve(&visit, &request, &key, &hit, &cookies);
        let confirm = if is_edge { edge_tier::confirm } else { local::confirm };
        let confirm = hit.confirm.then(|| confirm(&visit, key, selecting.clone(), hit.page));
        return answer.followed_by(confirm);
    }
    let (selecting, cookies, has_personal_headers) = (selecting.clone(), cookies.clone(), *has_personal_headers);
    let page_request =
        Box::new(PageRequest { visit, key, directives, selecting, cookies, has_personal_headers, request });
    if is_edge {
        return edge_tier::answer(page_request).await;
    }
    match step {
        FirstStep::Bypass(reason) => page_request.bypass_without_lookup(reason).await,
        FirstStep::WithoutRedis => local::serve_without_redis(page_request).await,
        FirstStep::ServeLocal | FirstStep::LookUp => page_request.answer_after_lookup().await,
    }
}

impl PageRequest {
    /// Looks the page up, and answers.
    async fn answer_after_lookup(self: Box<Self>) -> Answer {
        let app = &self.visit.app;
        let is_near = app.redis.has_read_regions()
            && !self.directives.is_reload()
            && !app.pages.has_changed(self.key.hash(), self.visit.now);
        match self.look_up(true, is_near).await {
            Ok(found) => self.answer_found(found).await,
            Err(error) => Box::pin(local::serve_after_redis_failed(self, &error)).await,
        }
    }

    /// One pipeline: the page, and with `with_session` the visitor's session. `is_near`: without a lease, in the nearest
    /// read region.
    async fn look_up(&self, with_session: bool, is_near: bool) -> Result<Found, Error> {
        let app = &self.visit.app;
        let keys = app.redis.keys();
        let token = self.visit.token.as_ref().filter(|_| with_session);
        let only_if_stale = self.cookies.strictest < CookieKind::Unknown && !self.directives.is_reload();
        let in_script = token.filter(|token| keys.reaches_shared(token)).map(|token| {
            let is_young = sessions::is_young(token, self.visit.now, &app.config.session);
            SessionRead { token, only_if_stale, is_young }
        });
        let duration = if is_near { Duration::ZERO } else { app.config.origin.timeout };
        let terms = LeaseTerms { duration, request: self.lease_request(), session: in_script };
        let held = self.held().await;
        let wanted = Wanted { selecting: &self.selecting, held: held.as_deref() };
        let (lookup, command) = Lookup::new(keys, &self.key, wanted, app.clock.now(), terms)?;
        let epoch = app.pages.epoch(app.clock.now());
        let command = if is_near { app.redis.near(command) } else { command };
        let mut commands = vec![command.expecting(app.config.page.max_bytes)];
        let in_pipeline = token.filter(|token| !keys.reaches_shared(token));
        let check = |token| sessions::check_commands(keys, token, self.visit.now, &app.config.session);
        commands.extend(in_pipeline.into_iter().flat_map(check));
        let replies = app.redis.pipeline(&commands).await;
        app.circuit.record(&replies, app.clock.now());
        let mut replies = replies?.into_iter();
        let mut lookup = lookup.read(next_reply(&mut replies)?)?;
        if is_near {
            lookup = lookup.not_older_than(held.as_deref());
        }
        if let Some(page) = &mut lookup.page {
            page.hold(&*app.fetch);
        }
        let (now, config) = (self.visit.now, &app.config.session);
        let (session, lacks_session) = match (in_pipeline, token, lookup.session.take()) {
            (Some(token), ..) => (sessions::split_check(replies, token, now, config)?.0, false),
            (None, Some(token), Some((user, seen))) => (sessions::from_check(token, user, seen, now, config), false),
            (None, token, _) => (None, token.is_some()),
        };
        let number = |page: Option<&StoredPage>| page.map(StoredPage::render_number);
        let is_new = number(lookup.page.as_deref()) != number(held.as_deref());
        Ok(Found { lookup, session, lacks_session, epoch, is_new, is_near })
    }

    fn lease_request(&self) -> LeaseRequest {
        let app = &self.visit.app;
        if self.directives.is_reload() {
            LeaseRequest::Always
        } else if app.pages.is_unpopular(self.key.hash(), self.visit.now) {
            let limit = if self.key.by_popularity().is_ok() { app.config.page.rank_limit } else { 0 };
            LeaseRequest::IfPopular(limit)
        } else {
            LeaseRequest::IfStale
        }
    }

    async fn check_session(&self) -> Result<Option<Session>, Error> {
        let Visit { app, token, now, .. } = &self.visit;
        let Some(token) = token else { return Ok(None) };
        sessions::check(&app.redis, token, *now, &app.config.session).await
    }

    /// The newest copy of the page without Redis: the isolate's while it is fresh, else the location's if that is
    /// newer.
    async fn held(&self) -> Option<Rc<StoredPage>> {
        let (app, now) = (&self.visit.app, self.visit.app.clock.now());
        let copy = app.pages.fallback(self.key.hash(), &self.selecting, now);
        if copy.as_ref().is_some_and(|page| page.is_fresh(now)) {
            return copy;
        }
        app.location.find(&self.key, &self.selecting, copy.as_deref(), now).await.or(copy)
    }

    /// Runs steps until one of them answers.
    async fn answer_found(mut self: Box<Self>, mut found: Found) -> Answer {
        let app = self.visit.app.clone();
        let mut wait = RenderWait::new(&self);
        loop {
            let now = app.clock.now();
            self.learn_item(&found.lookup);
            let known = self.known(&found, &wait, now);
            let miss = |reason| Miss { reason, popularity: known.popularity };
            let step = next_step(&known);
            let serves = matches!(step, Step::Serve { .. } | Step::ServeOnError);
            if found.lacks_session && !serves {
                // Rare: the page is fresh and still not for this request.
                match Box::pin(self.check_session()).await {
                    Ok(session) => (found.session, found.lacks_session) = (session, false),
                    Err(error) => return Box::pin(local::serve_after_redis_failed(self, &error)).await,
                }
                continue;
            }
            match step {
                Step::Serve { collapsed } => {
                    let status = |page: &StoredPage| {
                        collapsed.map_or_else(|| CacheStatus::hit(page, now), CacheStatus::collapsed)
                    };
                    return self.serve_stored(found, status, now);
                }
                Step::ServeOnError => {
                    let status = |page: &StoredPage| CacheStatus::fallback(page, now, Reason::OriginDown);
                    return self.serve_stored(found, status, now);
                }
                Step::GatewayTimeout(reason) => {
                    let status = CacheStatus::not_stored(reason, Reason::OnlyIfCached);
                    return self.gateway_timeout(found.lookup.lease, status);
                }
                Step::Bypass(reason) => {
                    if matches!(known.state, PageState::Unstorable(_)) {
                        app.pages.note_unstorable(self.key.hash(), reason, now);
                    }
                    return self.bypass(reason, found.session).await;
                }
                Step::RenderPersonal(reason) => return personal::render(self, found, miss(reason)).await,
                Step::RenderShared(reason) => return shared::render(self, found, miss(reason)).await,
                Step::Wait(reason) => {
                    app.clock.sleep(wait.pause).await;
                    if !wait.end_pause(&self, &found.lookup, reason) {
                        continue;
                    }
                }
                Step::AskPrimary => {}
            }
            match self.look_up(false, false).await {
                Ok(again) => found = Found { session: found.session, ..again },
                Err(error) => return Box::pin(local::serve_after_redis_failed(self, &error)).await,
            }
        }
    }

    /// Forwards the request for a page with a hit-for-miss note of this isolate.
    async fn bypass_without_lookup(self: Box<Self>, reason: Reason) -> Answer {
        let noted = Noted::of(&self, reason);
        let Self { visit, key, selecting, request, .. } = *self;
        let must_confirm = visit.app.pages.must_confirm_unstorable(key.hash(), visit.now);
        let confirm = must_confirm.then(|| confirm_unstorable(visit.app.clone(), key, selecting, visit.now));
        bypass::bypass_with_note(&visit, reason, request, noted).await.followed_by(confirm)
    }

    /// Forwards the request for a page with a hit-for-miss note, after a lookup.
    async fn bypass(self: Box<Self>, reason: Reason, session: Option<Session>) -> Answer {
        let noted = Noted::of(&self, reason);
        bypass::forward(&self.visit, reason, session.into(), self.request, noted).await
    }

    /// Takes over the item that the stored page names: another isolate may have learned it first.
    fn learn_item(&mut self, lookup: &LookupResult) {
        let item = lookup.page.as_ref().and_then(|page| page.item.as_ref());
        if item.is_some() && item != self.key.item() {
            self.key = self.key.naming(item);
            self.visit.app.pages.name(&self.key);
        }
    }

    /// Serves the stored page. If this request holds the lease of a stale page, it is rendered again after the
    /// response.
    fn serve_stored(
        self: Box<Self>,
        found: Found,
        status: impl FnOnce(&StoredPage) -> CacheStatus,
        now: Timestamp,
    ) -> Answer {
        let popularity = self.popularity(&found.lookup);
        let LookupResult { page: Some(page), lease, .. } = found.lookup else {
            return failure(&self.visit.app, &FetchError::Unreachable.into(), self.request.headers()).into();
        };
        let status = status(&page);
        let is_filled = fill::is_due(&page, &self.cookies, &self.visit);
        let hand_over = || hand_over::hand_over(&self.visit, &self.key, &page, status, found.epoch.began());
        let handed = if is_filled { None } else { hand_over() };
        let answer = handed.map_or_else(|| self.respond_with(&page, status, now), Answer::from);
        let page: Rc<StoredPage> = Rc::from(page);
        let app = &self.visit.app;
        app.pages.keep(self.key.hash(), page.clone(), found.epoch);
        let put = found.is_new.then(|| local::put_in_location(app, &self.key, page.clone()));
        let is_due = !page.is_fresh(now) && !app.pages.has_failed(self.key.hash(), now);
        let ended = lease.map(|lease| {
            if is_due {
                let (app, key, selecting) = (app.clone(), self.key.clone(), self.selecting.clone());
                BackgroundRender { app, key, selecting, popularity, follows: None }.run(lease, Some(page))
            } else {
                release(app, lease)
            }
        });
        answer.followed_by(put).followed_by(ended)
    }

    /// 504 for `only-if-cached` (RFC 9111 §5.2.1.7).
    fn gateway_timeout(&self, lease: Option<Lease>, status: CacheStatus) -> Answer {
        let mut response = Response::default();
        *response.status_mut() = StatusCode::GATEWAY_TIMEOUT;
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
        status.append_to(&mut response);
        Answer::from(response).followed_by(lease.map(|lease| release(&self.visit.app, lease)))
    }

    /// The response from a stored page. A 304 counts as a view: the visitor sees the page.
    fn respond_with(&self, page: &StoredPage, status: CacheStatus, now: Timestamp) -> Answer {
        let response = if fill::is_due(page, &self.cookies, &self.visit) {
            fill::respond(page, &self.visit, &self.request, status)
        } else {
            respond(page, self.request.method(), self.request.headers(), status, now)
        };
        self.visit.record(self.request.method(), self.request.headers(), page.status, page.item.as_ref());
        response.into()
    }

    fn is_reused(&self, page: &StoredPage, now: Timestamp) -> bool {
        self.directives.reuse(&page.state(now)) != Reuse::Forward(ForwardReason::Request)
    }
}
