//! Renders and leases that end after the response.

use std::{fmt::Display, rc::Rc};

use http::{HeaderName, HeaderValue, StatusCode, header};

use super::{
    exchange::{RenderRequest, UnstorableResponse},
    render::{RenderOutcome, acquire_memory, render},
};
use crate::{
    App,
    page_cache::{
        hit_for_miss::{FollowUp, Unstorable},
        key::PageKey,
        lookup::{Lease, LookupResult, PageState, Wanted, look_up, others_have_page, take_lease},
        memory::RenderGuard,
        policy::{freshness::Popularity, is_failure, is_refusal},
        selecting::{RequestClass, SelectingHeaders},
        store::{self, PageWriter},
        stored_page::StoredPage,
    },
    ports::{answer::BackgroundTask, error::Error, fetch::Response, time::Timestamp},
};

/// A shared render after a response.
pub struct BackgroundRender {
    pub app: Rc<App>,
    pub key: PageKey,
    pub selecting: SelectingHeaders,
    pub popularity: Popularity,
    /// The personal response before this render, if a header of its request may have selected it.
    pub follows: Option<PersonalHead>,
}

impl BackgroundRender {
    /// Renders the page and stores it. If the origin fails, the stale page stays. This isolate then asks the origin again
    /// after a backoff.
    pub fn run(self, lease: Lease, stored: Option<Rc<StoredPage>>) -> BackgroundTask {
        Box::pin(async move {
            let Self { app, key, selecting, popularity, follows } = self;
            let guard = app.pages.renders.start(key.hash(), app.clock.now() + app.config.origin.timeout);
            let others_have_page = others_have_page(stored.as_deref(), lease.has_variants, app.clock.now());
            let had_failed = app.pages.has_failed(key.hash(), app.clock.now());
            let vary = stored.as_ref().map(|page| page.vary.clone());
            let mut request = RenderRequest::in_background(&key, &selecting, popularity, vary);
            (request.stored, request.stamp) = (stored.as_deref(), lease.stamp());
            let outcome = match render(&app, &request).await {
                // A stored page may replace the error of this render.
                Err(Error::Esi(cause)) if stored.is_none() => {
                    Ok(RenderOutcome::NotStorable(UnstorableResponse::of_refused_esi(cause)))
                }
                outcome => outcome,
            };
            match outcome {
                Ok(RenderOutcome::Complete { page, .. })
                    if let Some(head) = follows.as_ref().filter(|head| !head.is_like(&page)) =>
                {
                    log::warn!(
                        "page cache: a page was not stored: without its headers, a request gets another response"
                    );
                    app.pages.note_unstorable_for(&head.class, app.clock.now());
                    log_error(store::release(&app.redis, &lease).await);
                }
                // An error that caches may store counts as a page if no page is stored.
                Ok(RenderOutcome::Complete { page, .. }) if stored.is_none() || !is_failure(page.status) => {
                    store_page(&app, &lease, *page, Some(guard)).await;
                }
                // Without a stored page, a background render follows a response of the origin to a visitor.
                Ok(RenderOutcome::NotStorable(UnstorableResponse { response, why, .. }))
                    if !is_failure(response.status()) || stored.is_none() && had_failed =>
                {
                    let is_refused = stored.is_none() && is_refusal(response.status());
                    let why = if is_refused { why.refused(response.status()) } else { *why };
                    let Unstorable { reason, cause, .. } = &why;
                    log::warn!("page cache: a background render cannot be stored: {} ({cause})", reason.as_str());
                    let is_of_one_client = others_have_page || selecting.may_cause(response.status());
                    let follow_up = FollowUp::of(*reason, false, is_of_one_client);
                    if follow_up == FollowUp::NoteUnstorable {
                        end_unstorable(&app, &lease, &why).await;
                    } else {
                        if let (FollowUp::NoteClass, Some(head)) = (follow_up, &follows) {
                            app.pages.note_unstorable_for(&head.class, app.clock.now());
                        }
                        log_error(store::release(&app.redis, &lease).await);
                    }
                }
                Ok(outcome) if outcome.is_failure() => {
                    end_failed(&app, &lease, &"error of the origin").await;
                }
                Ok(_) => end_failed(&app, &lease, &"the body took too long").await,
                Err(error) => end_failed(&app, &lease, &error).await,
            }
        })
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
    /// The names that begin with `x-`.
    extensions: Vec<HeaderName>,
}

impl PersonalHead {
    /// `class`: that of the request.
    pub fn of(response: &Response, class: RequestClass) -> Self {
        let (status, headers) = (response.status(), response.headers());
        let extensions = headers.keys().filter(|name| name.as_str().starts_with("x-")).cloned().collect();
        Self { class, status, content_type: headers.get(header::CONTENT_TYPE).cloned(), extensions }
    }

    /// Returns whether a shared render of the page has the same status and type, and lacks none of the extension headers.
    fn is_like(&self, page: &StoredPage) -> bool {
        self.status == page.status
            && self.content_type.as_ref() == page.headers.get(header::CONTENT_TYPE)
            && self.extensions.iter().all(|name| page.headers.contains_key(name))
    }
}

/// Ends a render whose page cannot be stored. Leaves a hit-for-miss note in the isolate, and in Redis in place of the
/// lease.
pub async fn end_unstorable(app: &App, lease: &Lease, why: &Unstorable) {
    app.pages.note_unstorable(lease.key().hash(), why.reason, app.clock.now());
    log_error(store::note_unstorable(&app.redis, lease, why).await);
}

/// Ends a render that failed. Releases its lease, because requests that cannot get the stale page wait for the lease.
async fn end_failed(app: &App, lease: &Lease, cause: &dyn Display) {
    log::warn!("page cache: a background render failed: {cause}");
    app.pages.note_failure(lease.key().hash(), app.clock.now());
    log_error(store::release(&app.redis, lease).await);
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

/// Stores a page, and keeps a copy only if Redis stored it: a purged page must not stay in the isolate. Then drops the
/// render's `guard`, so that waiting requests find the copy.
pub async fn store_page(app: &App, lease: &Lease, page: StoredPage, guard: Option<RenderGuard>) {
    let (now, limit) = (app.clock.now(), app.config.page.total_bytes);
    let epoch = app.pages.epoch(now);
    let Some(_permit) = acquire_memory(app, Some(page.body.len())) else {
        log::warn!("page cache: a page was not stored: other pages take all of the memory for pages");
        return log_error(store::release(&app.redis, lease).await);
    };
    let page = StoredPage { render: lease.id().to_owned(), ..page };
    let writer = PageWriter { redis: &app.redis, account: &app.pages.account, now, limit };
    match writer.put(lease, &page).await {
        Ok((is_stored, due)) => {
            if is_stored {
                let page = Rc::new(page);
                app.pages.keep(lease.key().hash(), page.clone(), epoch);
                app.pages.note_success(lease.key().hash());
                drop(guard);
                app.location.put(lease.key(), &page, app.clock.now()).await;
            }
            log_error(writer.complete_account(due).await);
        }
        Err(error) => {
            log::warn!("page cache: a page was not stored: {error}");
            // Other requests for the page wait for this lease.
            log_error(store::release(&app.redis, lease).await);
        }
    }
}

/// Releases a lease without a page.
pub fn release(app: &Rc<App>, lease: Lease) -> BackgroundTask {
    let app = app.clone();
    Box::pin(async move { log_error(store::release(&app.redis, &lease).await) })
}

pub fn log_error(result: Result<(), Error>) {
    if let Err(error) = result {
        log::warn!("page cache: {error}");
    }
}
