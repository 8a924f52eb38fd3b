//! Answers a request for a page: gathers the facts, asks [`decide`](super::decide) for the step, and runs it.
//!
//! The modules, in the order of a request:
//! - `answer`, in this file: the first step, and the steps after a lookup.
//! - `local`: the isolate's copies, while they are confirmed or Redis is down.
//! - `found`: the lookup of the page and the session in Redis.
//! - `step_facts`: the facts that decide the next step.
//!
//! A request gathers facts on its way. Each type contains or reads the one before it:
//!
//! | type | made by | content |
//! | --- | --- | --- |
//! | [`Visit`] | `routes::storefront` | the visitor: token, item, network |
//! | `PageRequest` | [`answer`] | the visit; the page's key; the request's caching directives, selecting headers and cookies |
//! | [`Found`] | `PageRequest::look_up` | from Redis: the page, its rank and lease ([`LookupResult`]), and the visitor's session |
//! | [`StepFacts`](super::decide::StepFacts) | `PageRequest::facts` | the answers to the questions of `next_step`, from the two types above and the notes of the isolate |
//! | [`Step`], `Miss` | [`next_step`] | the step, and the reason for it |
//!
//! The steps:
//! - `serve`: a response from the page that the lookup found. `fill`: its holes, filled for one visitor.
//! - `wait`: the wait for the render of another request.
//! - `shared`: a shared render while a visitor waits for it, and the [`last_step`](super::last_step). `background`: a shared render
//!   after a response.
//! - [`render`]: the shared render that both use, from one or more exchanges with the origin. The doctor judges a storefront with
//!   it, too.
//! - `lease_end`: the end of a render's lease, with a stored page, a note or nothing.
//! - `exchange`: one exchange with the origin, and the judgement of its response. `esi`: the fragments of the page.
//! - `personal`: a personal render. A shared render may follow it.
//! - `bypass`: a request that bypasses the cache. `noted`: a request for a page with a hit-for-miss note; its
//!   response can end the note.
//!
//! With two tiers: `edge_tier` passes requests to the home tier, and `hand_over` hands its stored pages over.
//!
//! Outside the path of a request:
//! - `invalidate`: unsafe requests; they bypass the cache and void the pages that they changed.
//! - `tokens`: the visitor's tokens in unsafe requests, in place of the placeholders of stored pages.
//! - `explain`: the decision for a URL, for operators.

mod background;
mod bypass;
mod edge_tier;
mod esi;
mod exchange;
mod explain;
mod fill;
mod found;
mod hand_over;
mod invalidate;
mod lease_end;
mod local;
mod noted;
mod personal;
pub mod render;
mod serve;
mod shared;
mod step_facts;
mod tokens;
mod wait;

use std::cell::LazyCell;

use self::{background::confirm_unstorable, found::Found, noted::Noted, wait::RenderWait};
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
    lookup::{LookupResult, PageState},
    policy::{ForwardReason, Reason, RequestDirectives, freshness::Popularity},
    selecting::SelectingHeaders,
    stored_page::StoredPage,
    visitor_cookies::VisitorCookies,
};
use crate::{
    config::rules::CookieKind,
    ports::{answer::Answer, fetch::Request},
    proxy::{Visit, home::PageChange},
    sessions::Session,
};

/// A request that the cache may answer. Boxed: otherwise each future that passes it on would contain it twice.
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
    // Evaluated on demand: most hits need only the cookies.
    let rules = &app.config.page.headers;
    let cookies = LazyCell::new(|| VisitorCookies::of(request.headers(), &app.config.page.cookies, &rules.varied));
    let selecting = LazyCell::new(|| SelectingHeaders::of(request.headers(), rules, &cookies));
    let has_personal_headers = LazyCell::new(|| cookies.identify() || !is_plain(request.headers(), rules));
    let copy = app.pages.hit(key.hash(), &selecting, now);
    let is_withheld = copy.as_ref().is_some_and(|hit| !hit.page.may_be_served_to(&cookies));
    let copy = copy.filter(|_| !is_withheld);
    let reuse = copy.as_ref().map(|hit| directives.reuse(&hit.page.state(now)));
    let bypass_reason = || {
        if is_withheld || cookies.strictest == CookieKind::Personal {
            return Some(Reason::Cookie);
        }
        let is_personal = || *has_personal_headers || visit.token.is_some();
        let personal = || app.pages.unstorable_personal(key.hash(), now).filter(|_| is_personal());
        app.pages.bypass_reason(key.hash(), now).or_else(personal)
    };
    let step = first_step(reuse, directives.only_if_cached(), bypass_reason, app.circuit.is_open());
    let is_edge = app.home.is_some();
    if let (FirstStep::ServeLocal, Some(hit)) = (step, copy)
        && !(is_edge && fill::is_needed(&hit.page, &cookies, &visit))
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
    /// Looks the page up, and runs the steps after the lookup.
    async fn answer_after_lookup(self: Box<Self>) -> Answer {
        match self.look_up().await {
            Ok(found) => self.answer_found(found).await,
            Err(failed) => Box::pin(local::serve_after_redis_failed(self, failed)).await,
        }
    }

    /// Runs steps until one of them answers.
    async fn answer_found(mut self: Box<Self>, mut found: Found) -> Answer {
        let app = self.visit.app.clone();
        let mut wait = RenderWait::new(&self);
        loop {
            let now = app.clock.now();
            self.learn_item(&found.lookup);
            let facts = self.facts(&found, &wait, now);
            let miss = |reason| Miss { reason, popularity: facts.popularity };
            let step = next_step(&facts);
            let serves = matches!(step, Step::Serve { .. } | Step::ServeOnError);
            if found.lacks_session && !serves {
                // Rare: the page is fresh and still not for this request.
                match Box::pin(self.check_session()).await {
                    Ok(session) => (found.session, found.lacks_session) = (session, false),
                    Err(error) => return Box::pin(local::serve_after_redis_failed(self, error.into())).await,
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
                    if let PageState::Unstorable(reason) = facts.state {
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
            match self.look_up_again().await {
                Ok(again) => found = Found { session: found.session, ..again },
                Err(failed) => return Box::pin(local::serve_after_redis_failed(self, failed)).await,
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
            self.visit.app.pages.keys.name(&self.key);
        }
    }
}
