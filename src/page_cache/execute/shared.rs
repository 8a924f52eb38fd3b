//! A shared render while a visitor waits for it.

use std::rc::Rc;

use http::{StatusCode, header};

use super::{
    Miss, PageRequest,
    background::{BackgroundRender, end_unstorable, log_error, release, store_page},
    exchange::{RenderRequest, UnstorableResponse},
    found::Found,
    render::{RenderOutcome, StreamingPage, render as render_page},
};
use crate::{
    App,
    page_cache::{
        cache_status::CacheStatus,
        hit_for_miss::{FollowUp, Unstorable},
        holes::is_html,
        lookup::{Lease, LookupResult, PageState, others_have_page},
        memory::RenderGuard,
        policy::{ForwardReason, Reason, VaryFields, is_failure, is_refusal, quality::accepts_gzip},
        selecting::RequestClass,
        store,
        stored_page::StoredPage,
    },
    ports::{
        answer::{Answer, BackgroundTask},
        error::Error,
        fetch::{Body, Request, Response},
        time::Timestamp,
    },
    proxy::{self, OriginDirectives, RequestHead, failure, fragments},
    sessions::Session,
};

/// Renders the page. The holder of the lease stores it.
pub async fn render(page_request: Box<PageRequest>, found: Found, miss: Miss) -> Answer {
    let app = page_request.visit.app.clone();
    let Found { lookup: LookupResult { page: stored, lease, vary, state, .. }, session, .. } = found;
    let others_have_page = others_have_page(stored.as_deref(), !vary.is_empty(), page_request.visit.now);
    let class = page_request.class(&vary);
    let is_known = state == PageState::Shared;
    let guard = lease
        .as_ref()
        .map(|_| app.pages.renders.start(page_request.key.hash(), page_request.visit.now + app.config.origin.timeout));
    let accepts_gzip = miss.popularity.is_err() && stored.is_none() && accepts_gzip(page_request.request.headers());
    let request = RenderRequest {
        key: &page_request.key,
        selecting: &page_request.selecting,
        sent: (is_known || miss.popularity.is_ok()).then_some(vary),
        stored: stored.as_deref(),
        popularity: miss.popularity,
        stamp: lease.as_ref().map_or(0, Lease::stamp),
        no_cache: page_request.directives.is_reload(),
        in_background: false,
        accepts_gzip,
    };
    let outcome = render_page(&app, &request).await;
    let (sent, now) = (request.sent, app.clock.now());
    let was_compressed = accepts_gzip;
    let render = SharedRender { page_request, lease, guard, miss, now, sent, was_compressed, others_have_page, class };
    // Boxed: the future of every page would be as large as the largest one of the outcomes.
    Box::pin(render.answer(outcome, stored, session)).await
}

/// A render that has ended, with all data for its response.
struct SharedRender {
    page_request: Box<PageRequest>,
    lease: Option<Lease>,
    /// Dropped when the page is stored: waiting requests of the isolate then find the page.
    guard: Option<RenderGuard>,
    miss: Miss,
    now: Timestamp,
    /// See [`RenderRequest::sent`].
    sent: Option<VaryFields>,
    /// The origin was asked for a compressed body.
    was_compressed: bool,
    /// Other requests still [have the page](others_have_page), regardless of the outcome.
    others_have_page: bool,
    /// The class of the request.
    class: RequestClass,
}

impl SharedRender {
    /// Answers with the outcome of the render. `stored`: the page that was stored before.
    async fn answer(
        self,
        outcome: Result<RenderOutcome, Error>,
        stored: Option<Box<StoredPage>>,
        session: Option<Session>,
    ) -> Answer {
        let (app, now) = (self.page_request.visit.app.clone(), self.now);
        let failed = outcome.as_ref().map_or(true, RenderOutcome::is_failure);
        if failed && let Some(stored) = stored.filter(|stored| self.may_replace_error(stored, outcome.is_err())) {
            app.pages.note_failure(self.page_request.key.hash(), now);
            let why = if matches!(outcome, Err(Error::Busy)) { Reason::Busy } else { Reason::OriginDown };
            let answer = self.page_request.respond_with(&stored, CacheStatus::fallback(&stored, now, why), now);
            return answer.followed_by(self.lease.map(|lease| release(&app, lease)));
        }
        let is_refused = outcome.as_ref().is_ok_and(RenderOutcome::is_refusal);
        let asks_for_visitor = is_refused && app.pages.refusals.may_ask_for_visitor(now);
        if failed && !asks_for_visitor {
            app.pages.note_failure(self.page_request.key.hash(), now);
        }
        let cookies = &self.page_request.cookies;
        match outcome {
            Ok(RenderOutcome::Complete { page, .. }) if !page.may_be_served_to(cookies) => {
                self.forward_personally(Some(*page), session).await
            }
            Ok(RenderOutcome::Complete { page, not_modified }) => self.complete(*page, not_modified),
            Ok(RenderOutcome::Streaming { response, page }) if !page.may_be_served_to(cookies) => {
                // Ends the origin's connection and the copy.
                drop((response, page));
                self.forward_personally(None, session).await
            }
            Ok(RenderOutcome::Streaming { response, page }) => self.stream(*response, *page),
            Ok(RenderOutcome::NotStorable(unstorable)) if asks_for_visitor => {
                self.ask_for_visitor(*unstorable.why, unstorable.response.status(), session).await
            }
            Ok(RenderOutcome::NotStorable(unstorable)) if failed => self.finish_failed(unstorable).await,
            Ok(RenderOutcome::NotStorable(unstorable)) => self.finish_not_stored(unstorable, session).await,
            Err(Error::Esi(cause)) => self.finish_not_stored(UnstorableResponse::of_refused_esi(cause), session).await,
            Err(error) => self.fail(&error),
        }
    }

    /// Returns whether the stored page may replace the error of this render. `disconnected`: the origin sent no response.
    fn may_replace_error(&self, stored: &StoredPage, disconnected: bool) -> bool {
        self.page_request.directives.allows_on_error(&stored.state(self.now), disconnected)
    }

    fn status(&self, status: Option<StatusCode>) -> CacheStatus {
        match &self.lease {
            Some(_) => CacheStatus::stored(self.miss.reason, status.map(|status| status.as_u16())),
            None => CacheStatus::not_stored(self.miss.reason, Reason::InRender),
        }
    }

    /// Answers with the page and stores it afterwards.
    fn complete(self, page: StoredPage, not_modified: bool) -> Answer {
        let status = self.status(not_modified.then_some(StatusCode::NOT_MODIFIED));
        let answer = self.page_request.respond_with(&page, status, self.now);
        answer.followed_by(storing(self.page_request.visit.app, self.lease, self.guard, page))
    }

    /// Forwards the visitor's own request, and stores the page for others. This visitor may not get the page: unlike the
    /// page that was stored before, it is not declared shared, or has no holes. `rendered`: the page if it is whole.
    async fn forward_personally(self, rendered: Option<StoredPage>, session: Option<Session>) -> Answer {
        let status = CacheStatus::not_stored(self.miss.reason, Reason::Cookie);
        let Self { page_request, lease, guard, .. } = self;
        let app = page_request.visit.app.clone();
        let answer = page_request.forward(session, status).await;
        answer.followed_by(match rendered {
            Some(rendered) => storing(app, lease, guard, rendered),
            None => lease.map(|lease| release(&app, lease)),
        })
    }

    /// Streams the body to the visitor and stores the copy afterwards.
    fn stream(self, mut response: Response, page: StreamingPage) -> Answer {
        self.status(None).append_to(&mut response);
        let PageRequest { visit, request, .. } = &*self.page_request;
        visit.record(request.method(), request.headers(), response.status(), page.item());
        let Self { page_request, guard, others_have_page, .. } = self;
        let PageRequest { visit, key, .. } = *page_request;
        let app = visit.app;
        let background = self.lease.map(|lease| -> BackgroundTask {
            Box::pin(async move {
                match page.complete(&app, &key).await {
                    Ok(page) => return store_page(&app, &lease, page, guard).await,
                    Err(why) if why.reason != Reason::OriginDown && !others_have_page => {
                        end_unstorable(&app, &lease, &why).await;
                    }
                    Err(_) => log_error(store::release(&app.redis, &lease).await),
                }
                drop(guard);
            })
        });
        Answer::from(response).followed_by(background)
    }

    /// Answers with the origin's server error.
    async fn finish_failed(self, unstorable: UnstorableResponse) -> Answer {
        let status = self.not_stored_status(unstorable.why.reason);
        let answer = self.page_request.pass_on(*unstorable.response, unstorable.directives, status).await;
        answer.followed_by(self.lease.map(|lease| release(&self.page_request.visit.app, lease)))
    }

    /// Answers with a response that cannot be stored, or forwards the visitor's own request if the visitor
    /// [needs it](Self::needs_personal_render). The first response is then dropped, because its `Set-Cookie`
    /// would replace the visitor's session at the origin.
    async fn finish_not_stored(mut self, unstorable: UnstorableResponse, session: Option<Session>) -> Answer {
        let has_user = session.as_ref().is_some_and(|session| session.user.is_some());
        let needs_personal_render = self.needs_personal_render(&unstorable, has_user);
        let UnstorableResponse { response, directives, why } = unstorable;
        let status = self.not_stored_status(why.reason);
        let ended = self.follow_up(*why, response.status());
        let answer = if needs_personal_render {
            self.page_request.forward(session, status).await
        } else {
            self.page_request.pass_on(*response, directives, status).await
        };
        answer.followed_by(ended)
    }

    /// Forwards the visitor's own request, because the origin [refused](is_refusal) the shared render with `status`: a shop
    /// may need the visitor's address or a cookie. If the origin accepts the request, the shop works, and the page is not
    /// shared for a while. A server error must occur twice for that, because it may be an accident.
    async fn ask_for_visitor(mut self, why: Unstorable, status: StatusCode, session: Option<Session>) -> Answer {
        let mut personal_status = status;
        let request = std::mem::replace(&mut self.page_request.request, Request::new(Body::Empty));
        let mut observe = |response: &mut Response, _: &OriginDirectives| {
            personal_status = response.status();
            let reason = if is_refusal(personal_status) { why.reason } else { Reason::Refused };
            self.not_stored_status(reason).append_to(response);
        };
        let answer = proxy::forward(&self.page_request.visit, session.into(), request, &mut observe).await;
        let (pages, hash, now) =
            (&self.page_request.visit.app.pages, self.page_request.key.hash(), self.page_request.visit.app.clock.now());
        let had_failed = pages.has_failed(hash, now);
        if is_failure(status) {
            pages.note_failure(hash, now);
        }
        let why = if is_refusal(personal_status) {
            why
        } else {
            log::warn!("page cache: the shop refused a shared render ({status}), not the visitor's own request");
            pages.refusals.note_accepted(now);
            why.refused(status)
        };
        if is_failure(personal_status) {
            pages.refusals.note_failed(now);
        }
        let leaves_note = !is_failure(personal_status) && (had_failed || !is_failure(status));
        let ended = if leaves_note {
            self.follow_up(why, status)
        } else {
            self.lease.map(|lease| release(&self.page_request.visit.app, lease))
        };
        answer.followed_by(ended)
    }

    /// Leaves the note that [`FollowUp`] demands after a response with `status`. The task does the rest after the answer.
    fn follow_up(&mut self, why: Unstorable, status: StatusCode) -> Option<BackgroundTask> {
        let PageRequest { visit, key, selecting, .. } = &*self.page_request;
        let (app, now) = (visit.app.clone(), visit.now);
        let is_of_one_client = self.others_have_page || selecting.may_cause(status);
        let follow_up = FollowUp::of(why.reason, self.was_compressed, is_of_one_client);
        match follow_up {
            FollowUp::Nothing | FollowUp::RenderUncompressed => {}
            FollowUp::NoteClass => app.pages.note_unstorable_for(&self.class, now),
            FollowUp::NoteUnpopular => app.pages.note_unpopular(key.hash(), now),
            FollowUp::NoteFailure => app.pages.note_failure(key.hash(), app.clock.now()),
            FollowUp::NoteUnstorable => app.pages.note_unstorable(key.hash(), why.reason, now),
        }
        let lease = self.lease.take()?;
        Some(match follow_up {
            FollowUp::RenderUncompressed => {
                let (key, selecting, popularity) = (key.clone(), selecting.clone(), self.miss.popularity);
                BackgroundRender { app, key, selecting, popularity, follows: None }.run(lease, None)
            }
            FollowUp::NoteUnstorable => {
                Box::pin(async move { log_error(store::note_unstorable(&app.redis, &lease, &why).await) })
            }
            _ => release(&app, lease),
        })
    }

    /// Returns whether a personal render may give another response than the shared render. A page that only
    /// [lacks room](Reason::lacks_room) is the same for all visitors, except for its holes and ranges.
    fn needs_personal_render(&self, unstorable: &UnstorableResponse, has_user: bool) -> bool {
        let UnstorableResponse { response, directives, why } = unstorable;
        let page_request = &self.page_request;
        let (headers, lacks_room) = (response.headers(), why.reason.lacks_room());
        let has_holes = || page_request.visit.app.config.page.holes.of_path(page_request.key.path()).next().is_some();
        (page_request.has_personal_headers || has_user) && (!lacks_room || has_holes())
            || !lacks_room && page_request.selecting.varies_on_unsent(headers, self.sent.as_ref())
            || page_request.cookies.refuses_html && is_html(headers)
            || response.status() == StatusCode::NOT_MODIFIED
            // Players of videos give up after a whole 200.
            || page_request.request.headers().contains_key(header::RANGE)
            // The visitor's own request does not announce ESI, so the origin fills the page.
            || why.reason == Reason::Esi
            // A compressed page cannot be scanned for fragments.
            || directives.has_esi && fragments::is_compressed(headers)
    }

    /// Answers with an error: the origin sent no response, or there is no room for the page.
    fn fail(self, error: &Error) -> Answer {
        let mut response = failure(&self.page_request.visit.app, error, self.page_request.request.headers());
        let reason = if *error == Error::Busy { Reason::Busy } else { Reason::OriginDown };
        CacheStatus::not_stored(self.miss.reason, reason).append_to(&mut response);
        Answer::from(response).followed_by(self.lease.map(|lease| release(&self.page_request.visit.app, lease)))
    }

    /// A page that only lacks popularity is no miss: it bypasses the cache.
    fn not_stored_status(&self, reason: Reason) -> CacheStatus {
        CacheStatus::not_stored(
            if reason.lacks_popularity() { ForwardReason::Bypass } else { self.miss.reason },
            reason,
        )
    }
}

impl PageRequest {
    /// Forwards the visitor's own request.
    async fn forward(self: Box<Self>, session: Option<Session>, status: CacheStatus) -> Answer {
        let mut observe = |response: &mut Response, _: &OriginDirectives| status.append_to(response);
        proxy::forward(&self.visit, session.into(), self.request, &mut observe).await
    }

    /// Answers with the response of a shared render that is not stored.
    async fn pass_on(&self, response: Response, directives: OriginDirectives, status: CacheStatus) -> Answer {
        let head = RequestHead::of(&self.request);
        let mut response = proxy::expanded(&self.visit, &head, response, &directives).await;
        status.append_to(&mut response);
        proxy::finish(&self.visit, &head, None, response, directives).await
    }
}

/// Stores a page after its response, if this request holds the lease.
fn storing(app: Rc<App>, lease: Option<Lease>, guard: Option<RenderGuard>, page: StoredPage) -> Option<BackgroundTask> {
    let lease = lease?;
    Some(Box::pin(async move {
        store_page(&app, &lease, page, guard).await;
    }))
}
