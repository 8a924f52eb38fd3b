//! A shared render while a visitor waits for it.

use std::time::Duration;

use http::{StatusCode, header};

use super::{
    Miss, PageRequest,
    background::BackgroundRender,
    exchange::{RenderRequest, UnstorableResponse},
    found::Found,
    lease_end::{LeaseEnd, RenderLease},
    render::{
        RenderOutcome::{self, Slow, Whole},
        StreamingPage,
        WholeRender::{Complete, NotStorable},
        render as render_page,
    },
};
use crate::{
    page_cache::{
        cache_status::CacheStatus,
        content_type::is_html,
        hit_for_miss::{FollowUp, Unstorable},
        last_step::{LastStep, RenderFacts, last_step},
        lookup::{LookupResult, PageState, others_have_page},
        policy::{ForwardReason, Reason, VaryFields, is_failure, is_refusal, quality::accepts_gzip},
        selecting::RequestClass,
        stored_page::StoredPage,
    },
    ports::{answer::Answer, error::Error, fetch::Response, time::Timestamp},
    proxy::{self, OriginDirectives, RequestHead, failure},
    sessions::Session,
};

/// Longest time that a visitor waits for a complete body. Then the body is streamed.
const COLLECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Renders the page. The holder of the lease stores it.
pub async fn render(page_request: Box<PageRequest>, found: Found, miss: Miss) -> Answer {
    let app = page_request.visit.app.clone();
    let Found { lookup: LookupResult { page: stored, lease, vary, state, .. }, session, .. } = found;
    let others_have_page = others_have_page(stored.as_deref(), !vary.is_empty(), page_request.visit.now);
    let class = page_request.class(&vary);
    let is_known = state == PageState::Shared;
    let lease = lease.map(|lease| RenderLease::new(&app, lease));
    let accepts_gzip = miss.popularity.is_err() && stored.is_none() && accepts_gzip(page_request.request.headers());
    let request = RenderRequest {
        key: &page_request.key,
        selecting: &page_request.selecting,
        sent: (is_known || miss.popularity.is_ok()).then_some(vary),
        stored: stored.as_deref(),
        popularity: miss.popularity,
        stamp: lease.as_ref().map_or(0, RenderLease::stamp),
        no_cache: page_request.directives.is_reload(),
        accepts_gzip,
    };
    let outcome = render_page(&app, &request, COLLECT_TIMEOUT).await;
    let (sent, now) = (request.sent, app.clock.now());
    let asked_for_gzip = accepts_gzip;
    let render =
        SharedRender { page_request, lease, session, miss, now, sent, asked_for_gzip, others_have_page, class };
    // Boxed: otherwise each page's future is as large as the largest outcome's.
    Box::pin(render.answer(outcome, stored)).await
}

/// A render that has ended, with all data for its response.
struct SharedRender {
    page_request: Box<PageRequest>,
    /// With it, the page is stored.
    lease: Option<RenderLease>,
    session: Option<Session>,
    miss: Miss,
    now: Timestamp,
    /// See [`RenderRequest::sent`].
    sent: Option<VaryFields>,
    /// The origin was asked for a compressed body.
    asked_for_gzip: bool,
    /// Other requests still [have the page](others_have_page), regardless of the outcome.
    others_have_page: bool,
    /// The class of the request.
    class: RequestClass,
}

impl SharedRender {
    /// Answers with the outcome of the render, and ends the lease after the response. `stored`: the page that was stored before.
    async fn answer(mut self, outcome: Result<RenderOutcome, Error>, stored: Option<Box<StoredPage>>) -> Answer {
        let directives = &self.page_request.directives;
        let stored = stored.filter(|stored| directives.allows_on_error(&stored.state(self.now), outcome.is_err()));
        let facts = self.facts(&outcome);
        let step = last_step(facts, stored.is_some());
        let has_failed = facts.has_failed();
        let app = self.page_request.visit.app.clone();
        if has_failed && step != LastStep::ForwardAfterRefusal {
            app.pages.note_failure(self.page_request.key.hash(), self.now);
        }
        let (answer, end) = match outcome {
            outcome if let (LastStep::ServeOnError, Some(stored)) = (step, &stored) => {
                let why = outcome.as_ref().err().map_or(Reason::OriginDown, reason_of_error);
                let status = CacheStatus::fallback(stored, self.now, why);
                (self.page_request.respond_with(stored, status, self.now), LeaseEnd::Release)
            }
            Ok(Whole(Complete { page, not_modified })) => {
                let answer = match step {
                    LastStep::Serve => self.serve(&page, not_modified),
                    _ => self.forward(Reason::Cookie).await,
                };
                (answer, LeaseEnd::Store(page))
            }
            Ok(Slow(page)) if step == LastStep::Serve => {
                let (response, page) = page.stream(&app);
                let answer = self.stream(response, &page);
                (answer, LeaseEnd::StoreCopy { page, others_have_page: self.others_have_page })
            }
            Ok(Slow(page)) => {
                // Ends the origin's connection.
                drop(page);
                (self.forward(Reason::Cookie).await, LeaseEnd::Release)
            }
            Ok(Whole(NotStorable(unstorable))) if step == LastStep::ForwardAfterRefusal => {
                self.forward_after_refusal(*unstorable.why, unstorable.response.status()).await
            }
            Ok(Whole(NotStorable(UnstorableResponse { response, directives, why }))) => {
                let reason = why.reason;
                let end = if has_failed { LeaseEnd::Release } else { self.follow_up(*why, response.status()) };
                let answer = match step {
                    LastStep::Forward => self.forward(reason).await,
                    _ => self.pass_on(*response, directives, reason).await,
                };
                (answer, end)
            }
            Err(Error::Esi(cause)) => {
                let refused = UnstorableResponse::of_refused_esi(cause);
                let end = self.follow_up(*refused.why, refused.response.status());
                (self.forward(Reason::Esi).await, end)
            }
            Err(error) => (self.fail(&error), LeaseEnd::Release),
        };
        answer.followed_by(self.lease.map(|lease| lease.end_later(app, end)))
    }

    /// The facts that decide the [`last_step`].
    fn facts(&self, outcome: &Result<RenderOutcome, Error>) -> RenderFacts {
        let PageRequest { cookies, visit, .. } = &*self.page_request;
        match outcome {
            Ok(Whole(Complete { page, .. })) => {
                RenderFacts::Storable { status: page.status, may_be_served: page.may_be_served_to(cookies) }
            }
            Ok(Slow(page)) => {
                RenderFacts::Storable { status: page.status(), may_be_served: page.may_be_served_to(cookies) }
            }
            Ok(Whole(NotStorable(unstorable))) => RenderFacts::Unstorable {
                status: unstorable.response.status(),
                may_ask_for_visitor: visit.app.pages.refusals.may_ask_for_visitor(self.now),
                may_differ: self.may_differ(unstorable),
            },
            Err(Error::Esi(_)) => RenderFacts::RefusedEsi,
            Err(_) => RenderFacts::NoResponse,
        }
    }

    /// Returns whether the visitor's own request may get another response than the shared render. A page that only
    /// [lacks room](Reason::lacks_room) is the same for all visitors, except for its holes and ranges.
    fn may_differ(&self, unstorable: &UnstorableResponse) -> bool {
        let UnstorableResponse { response, directives, why } = unstorable;
        let page_request = &self.page_request;
        let (headers, lacks_room) = (response.headers(), why.reason.lacks_room());
        let has_holes = || page_request.visit.app.config.page.holes.of_path(page_request.key.path()).next().is_some();
        page_request.may_identify(self.session.as_ref()) && (!lacks_room || has_holes())
            || !lacks_room && page_request.selecting.varies_on_unsent(headers, self.sent.as_ref())
            || page_request.cookies.refuses_html && is_html(headers)
            || response.status() == StatusCode::NOT_MODIFIED
            // Video players give up if a range is answered with 200.
            || page_request.request.headers().contains_key(header::RANGE)
            // The visitor's own request does not announce ESI, so the origin fills the page.
            || directives.has_esi
    }

    fn serve(&self, page: &StoredPage, not_modified: bool) -> Answer {
        let status = self.status(not_modified.then_some(StatusCode::NOT_MODIFIED));
        self.page_request.respond_with(page, status, self.now)
    }

    /// Streams the body to the visitor.
    fn stream(&self, mut response: Response, page: &StreamingPage) -> Answer {
        self.status(None).append_to(&mut response);
        let PageRequest { visit, request, .. } = &*self.page_request;
        visit.record(request.method(), request.headers(), response.status(), page.item());
        response.into()
    }

    /// Forwards the visitor's own request. `reason`: the reason to withhold the shared render.
    async fn forward(&mut self, reason: Reason) -> Answer {
        let status = self.not_stored_status(reason);
        self.forward_observed(&mut |response: &mut Response, _: &OriginDirectives| status.append_to(response)).await
    }

    /// Forwards the visitor's own request, because the origin [refused](is_refusal) the shared render with `status`: a shop
    /// may need the visitor's address or a cookie. If the origin accepts the request, the shop works, and the page is not
    /// shared for a while. One server error may be an accident, so only the second one counts.
    async fn forward_after_refusal(&mut self, why: Unstorable, status: StatusCode) -> (Answer, LeaseEnd) {
        let mut personal_status = status;
        let cache_status = |reason| self.not_stored_status(reason);
        let (refused, accepted) = (cache_status(why.reason), cache_status(Reason::Refused));
        let mut observe = |response: &mut Response, _: &OriginDirectives| {
            personal_status = response.status();
            if is_refusal(personal_status) { &refused } else { &accepted }.append_to(response);
        };
        let answer = self.forward_observed(&mut observe).await;
        let visit = &self.page_request.visit;
        let (pages, hash, now) = (&visit.app.pages, self.page_request.key.hash(), visit.app.clock.now());
        let had_failed = pages.has_failed(hash, now);
        if is_failure(status) {
            pages.note_failure(hash, now);
        }
        let why = if is_refusal(personal_status) {
            why
        } else {
            log::warn!(
                "page cache: the shop refused a shared render ({status}), but accepted the visitor's own request"
            );
            pages.refusals.note_accepted(now);
            why.refused(status)
        };
        if is_failure(personal_status) {
            pages.refusals.note_failed(now);
        }
        let leaves_note = !is_failure(personal_status) && (had_failed || !is_failure(status));
        (answer, if leaves_note { self.follow_up(why, status) } else { LeaseEnd::Release })
    }

    async fn forward_observed(&mut self, observe: &mut dyn FnMut(&mut Response, &OriginDirectives)) -> Answer {
        let request = std::mem::take(&mut self.page_request.request);
        proxy::forward(&self.page_request.visit, self.session.take().into(), request, observe).await
    }

    /// Answers with the response of the shared render, which is not stored.
    async fn pass_on(&self, response: Response, directives: OriginDirectives, reason: Reason) -> Answer {
        let PageRequest { visit, request, .. } = &*self.page_request;
        let head = RequestHead::of(request);
        let mut response = proxy::expanded(visit, &head, response, &directives).await;
        self.not_stored_status(reason).append_to(&mut response);
        proxy::finish(visit, &head, None, response, directives).await
    }

    /// Answers with an error: the origin sent no response, or there is no room for the page.
    fn fail(&self, error: &Error) -> Answer {
        let mut response = failure(&self.page_request.visit.app, error, self.page_request.request.headers());
        CacheStatus::not_stored(self.miss.reason, reason_of_error(error)).append_to(&mut response);
        response.into()
    }

    /// Leaves the note that [`FollowUp`] demands after a response with `status`, and returns the end of the lease.
    fn follow_up(&self, why: Unstorable, status: StatusCode) -> LeaseEnd {
        let PageRequest { visit, key, selecting, .. } = &*self.page_request;
        let (app, now) = (visit.app.clone(), visit.now);
        let is_of_one_client = self.others_have_page || why.sets_only_varied_cookies || selecting.may_cause(status);
        match FollowUp::of(why.reason, self.asked_for_gzip, is_of_one_client) {
            FollowUp::Nothing => {}
            FollowUp::RenderUncompressed => {
                let (key, selecting, popularity) = (key.clone(), selecting.clone(), self.miss.popularity);
                let render = BackgroundRender { app, key, selecting, popularity, follows: None };
                return LeaseEnd::RenderUncompressed(Box::new(render));
            }
            FollowUp::NoteClass => app.pages.note_unstorable_for(&self.class, now),
            FollowUp::NoteUnpopular => app.pages.note_unpopular(key.hash(), now),
            FollowUp::NoteFailure => app.pages.note_failure(key.hash(), app.clock.now()),
            FollowUp::NoteUnstorable => {
                app.pages.note_unstorable(key.hash(), why.reason, now);
                return LeaseEnd::HitForMiss(why);
            }
        }
        LeaseEnd::Release
    }

    fn status(&self, status: Option<StatusCode>) -> CacheStatus {
        match &self.lease {
            Some(_) => CacheStatus::stored(self.miss.reason, status.map(|status| status.as_u16())),
            None => CacheStatus::not_stored(self.miss.reason, Reason::InRender),
        }
    }

    /// A page that only lacks popularity is no miss: it bypasses the cache.
    fn not_stored_status(&self, reason: Reason) -> CacheStatus {
        CacheStatus::not_stored(
            if reason.lacks_popularity() { ForwardReason::Bypass } else { self.miss.reason },
            reason,
        )
    }
}

/// The reason for the missing response.
fn reason_of_error(error: &Error) -> Reason {
    if *error == Error::Busy { Reason::Busy } else { Reason::OriginDown }
}
