//! Shared renders after a response.

use std::{fmt::Display, rc::Rc};

use http::{HeaderName, HeaderValue, StatusCode, header};

use super::{
    exchange::{RenderRequest, UnstorableResponse},
    lease_end::{LeaseEnd, RenderLease},
    render::{WholeRender, render_whole},
};
use crate::{
    App,
    page_cache::{
        hit_for_miss::{FollowUp, Unstorable},
        key::PageKey,
        lookup::{Lease, LookupResult, PageState, Wanted, look_up, others_have_page, take_lease},
        policy::{freshness::Popularity, is_failure, is_refusal},
        selecting::{RequestClass, SelectingHeaders},
        stored_page::StoredPage,
    },
    ports::{answer::BackgroundTask, error::Error, fetch::Response, time::Timestamp},
};

/// A shared render that no visitor waits for.
pub struct BackgroundRender {
    pub app: Rc<App>,
    pub key: PageKey,
    pub selecting: SelectingHeaders,
    pub popularity: Popularity,
    /// The personal response before this render, if the visitor's headers may have selected it.
    pub follows: Option<PersonalHead>,
}

impl BackgroundRender {
    /// Renders the page and stores it. If the origin fails, the stale page stays. This isolate then asks the origin again
    /// after a backoff.
    pub fn run(self, lease: Lease, stored: Option<Rc<StoredPage>>) -> BackgroundTask {
        Box::pin(async move {
            let app = self.app.clone();
            let others_have_page = others_have_page(stored.as_deref(), lease.has_variants, app.clock.now());
            let lease = RenderLease::new(&app, lease);
            let had_failed = app.pages.has_failed(self.key.hash(), app.clock.now());
            let vary = stored.as_ref().map(|page| page.vary.clone());
            let mut request = RenderRequest::in_background(&self.key, &self.selecting, self.popularity, vary);
            (request.stored, request.stamp) = (stored.as_deref(), lease.stamp());
            let outcome = match render_whole(&app, &request).await {
                // With a stored page, this is an error: the stored page stays.
                Err(Error::Esi(cause)) if stored.is_none() => {
                    Ok(WholeRender::NotStorable(UnstorableResponse::of_refused_esi(cause)))
                }
                outcome => outcome,
            };
            let is_first = stored.is_none();
            let end = match outcome {
                Ok(WholeRender::Complete { page, .. })
                    if let Some(head) = self.follows.as_ref().filter(|head| !head.is_like(&page)) =>
                {
                    log::warn!(
                        "page cache: a page was not stored: its response depends on headers of the visitor's request"
                    );
                    app.pages.note_unstorable_for(&head.class, app.clock.now());
                    LeaseEnd::Release
                }
                // An error that caches may store counts as a page if no page is stored.
                Ok(WholeRender::Complete { page, .. }) if is_first || !is_failure(page.status) => LeaseEnd::Store(page),
                // Without a stored page, the origin has just answered a visitor: it refuses shared renders only.
                Ok(WholeRender::NotStorable(UnstorableResponse { response, why, .. }))
                    if !is_failure(response.status()) || is_first && had_failed =>
                {
                    let is_refused = is_first && is_refusal(response.status());
                    let why = if is_refused { why.refused(response.status()) } else { *why };
                    let may_cause = why.sets_only_varied_cookies || self.selecting.may_cause(response.status());
                    self.follow_up(why, others_have_page || may_cause)
                }
                Ok(_) => self.fail(&"error of the origin"),
                Err(error) => self.fail(&error),
            };
            lease.end(&app, end).await;
        })
    }

    /// Leaves the note that [`FollowUp`] demands, and returns the end of the lease.
    fn follow_up(&self, why: Unstorable, is_of_one_client: bool) -> LeaseEnd {
        let (pages, now, Unstorable { reason, cause, .. }) = (&self.app.pages, self.app.clock.now(), &why);
        log::warn!("page cache: a background render cannot be stored: {} ({cause})", reason.as_str());
        match (FollowUp::of(*reason, false, is_of_one_client), &self.follows) {
            (FollowUp::NoteUnstorable, _) => {
                pages.note_unstorable(self.key.hash(), *reason, now);
                return LeaseEnd::HitForMiss(why);
            }
            (FollowUp::NoteClass, Some(head)) => pages.note_unstorable_for(&head.class, now),
            _ => {}
        }
        LeaseEnd::Release
    }

    /// Notes a failed render. The lease is released, because requests that cannot get the stale page wait for it.
    fn fail(&self, cause: &dyn Display) -> LeaseEnd {
        log::warn!("page cache: a background render failed: {cause}");
        self.app.pages.note_failure(self.key.hash(), self.app.clock.now());
        LeaseEnd::Release
    }

    /// Takes the lease of a page that is not fresh, and renders the page. Does nothing if another request has the lease.
    pub fn run_with_new_lease(self, stored: Option<Rc<StoredPage>>) -> BackgroundTask {
        Box::pin(async move {
            let (app, wanted) = (&self.app, Wanted { selecting: &self.selecting, held: stored.as_deref() });
            match take_lease(&app.redis, &self.key, wanted, app.config.origin.timeout, app.clock.now()).await {
                Ok(Some(lease)) => self.run(lease, stored).await,
                Ok(None) => {}
                Err(error) => log::warn!("page cache: {error}"),
            }
        })
    }
}

/// The head of the response to a personal request with headers that shared renders do not send. Without such a header, a call of
/// a server function (`SolidStart`, `TanStack` Start) gets a redirect, an error or another encoding of the same data.
pub struct PersonalHead {
    class: RequestClass,
    status: StatusCode,
    content_type: Option<HeaderValue>,
    /// The names of headers that begin with `x-`.
    x_headers: Vec<HeaderName>,
}

impl PersonalHead {
    /// `class`: that of the request.
    pub fn of(response: &Response, class: RequestClass) -> Self {
        let (status, headers) = (response.status(), response.headers());
        let x_headers = headers.keys().filter(|name| name.as_str().starts_with("x-")).cloned().collect();
        Self { class, status, content_type: headers.get(header::CONTENT_TYPE).cloned(), x_headers }
    }

    /// Returns whether a shared render of the page has the same status and type, and lacks none of the extension headers. A 304
    /// states no type.
    fn is_like(&self, page: &StoredPage) -> bool {
        let is_not_modified = self.status == StatusCode::NOT_MODIFIED;
        let is_part = is_not_modified || self.status == StatusCode::PARTIAL_CONTENT;
        let status = if is_part { StatusCode::OK } else { self.status };
        status == page.status
            && (is_not_modified || self.content_type.as_ref() == page.headers.get(header::CONTENT_TYPE))
            && self.x_headers.iter().all(|name| page.headers.contains_key(name))
    }
}

/// Confirms the isolate's hit-for-miss note with Redis, and drops the note if Redis has none. A purge in another location
/// voids the note in Redis only.
pub fn confirm_unstorable(app: Rc<App>, key: PageKey, selecting: SelectingHeaders, now: Timestamp) -> BackgroundTask {
    Box::pin(async move {
        match look_up(&app.redis, &key, &selecting, None, now).await {
            Ok(LookupResult { state: PageState::Unstorable(_), .. }) => {}
            Ok(_) => app.pages.forget_unstorable(key.hash()),
            Err(error) => log::warn!("page cache: {error}"),
        }
    })
}
