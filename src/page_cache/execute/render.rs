//! Shared renders. The request to the origin has no cookies and no identity. It has the validators of the stored page.
//!
//! The body is collected before the response. So the page has an `ETag`, and a truncated body is an error, not half a
//! page. A body that takes longer than a second is streamed to the visitor and copied. A truncated body is never stored.
//!
//! A page with rules for holes is streamed only if it is larger than `PAGE_MAX_BYTES`, and is then not stored. A larger page
//! with ESI is refused.

use std::{cell::RefCell, rc::Rc, time::Duration};

use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::{
    esi,
    exchange::{Exchanged, RenderRequest, UnstorableResponse, exchange},
};
use crate::{
    App,
    config::rules::HoleRule,
    page_cache::{
        content_type::is_html,
        hit_for_miss::Unstorable,
        holes,
        key::PageKey,
        policy::{Reason, conditional},
        session_ids::{self, SessionIds},
        stored_page::StoredPage,
        visitor_cookies::VisitorCookies,
    },
    ports::{
        error::Error,
        fetch::{Body, BodyCopy, FetchError, NotCopied, Response, content_length, is_whole},
        header_names::append_text,
        semaphore::{CollectOutcome, MemoryPermit},
    },
    proxy::OriginDirectives,
    schema::ids::ItemId,
};

/// The outcome of a render whose body has arrived.
pub enum WholeRender {
    /// A storable page. `not_modified`: the origin confirmed the stored one.
    Complete {
        page: Box<StoredPage>,
        not_modified: bool,
    },
    NotStorable(UnstorableResponse),
}

/// The outcome of a render.
pub(super) enum RenderOutcome {
    Whole(WholeRender),
    /// The body did not end in time.
    Slow(Box<SlowPage>),
}

/// A storable page whose body is still arriving.
pub(super) struct SlowPage {
    page: StoredPage,
    content_length: Option<usize>,
    body: Body,
    ids: SessionIds,
    permit: MemoryPermit,
}

impl SlowPage {
    pub(super) const fn status(&self) -> StatusCode {
        self.page.status
    }

    /// Returns whether a visitor with these cookies may get the page.
    pub(super) fn may_be_served_to(&self, cookies: &VisitorCookies) -> bool {
        self.page.may_be_served_to(cookies)
    }

    /// The response that streams the body to a visitor, and the page that is copied from it.
    pub(super) fn stream(self, app: &App) -> (Response, Box<StreamingPage>) {
        let Self { mut page, content_length, body, ids, permit } = self;
        let permit = Rc::new(RefCell::new(permit));
        let (limit, copied) = (app.config.page.max_bytes, Rc::downgrade(&permit));
        // The permit belongs to the copy: the body may take longer to pass.
        let (body, copy) =
            body.copied(move |bytes| copied.upgrade().ok_or(NotCopied::Truncated)?.borrow_mut().admit(bytes, limit));
        set_stored_headers(&mut page);
        let mut headers = page.visible_headers();
        // Age at the arrival (RFC 9111 §5.1).
        let age = page.age(app.clock.now());
        if age > 0 {
            headers.insert(header::AGE, HeaderValue::from(age));
        }
        if let Some(length) = content_length {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        }
        let mut response = Response::new(body);
        *response.status_mut() = page.status;
        *response.headers_mut() = headers;
        (response, Box::new(StreamingPage { page, content_length, copy, ids, _permit: permit }))
    }
}

/// A page whose body is streamed to a visitor and copied.
pub struct StreamingPage {
    page: StoredPage,
    content_length: Option<usize>,
    copy: BodyCopy,
    ids: SessionIds,
    _permit: Rc<RefCell<MemoryPermit>>,
}

impl StreamingPage {
    /// The item that the origin named.
    #[must_use]
    pub const fn item(&self) -> Option<&ItemId> {
        self.page.item.as_ref()
    }

    /// The page, after its body has been sent.
    ///
    /// # Errors
    /// The reason why it cannot be stored: the body was too large, had no room, broke off, or contains the id of a session.
    pub async fn complete(self, app: &App, key: &PageKey) -> Result<StoredPage, Unstorable> {
        let Self { mut page, content_length, copy, ids, _permit } = self;
        let reason = match copy.await {
            Ok(body) if is_whole(content_length, &body) => {
                page.body = body.into();
                match finish(app, key, &mut page, &ids).await {
                    Ok(()) => return Ok(page),
                    Err(reason) => reason,
                }
            }
            Err(NotCopied::TooLarge) => Reason::TooLarge,
            Err(NotCopied::NoRoom) => Reason::Busy,
            Ok(_) | Err(NotCopied::Truncated) => Reason::OriginDown,
        };
        Err(Unstorable { item: page.item, tags: page.tags, ..unstorable(reason) })
    }
}

/// Renders a page and waits for its whole body.
///
/// # Errors
/// [`Error::Origin`], also for a truncated or late body; [`Error::Esi`] if the page is refused; [`Error::Busy`]; [`Error::Database`]
/// of the demo shop.
pub async fn render_whole(app: &App, request: &RenderRequest<'_>) -> Result<WholeRender, Error> {
    match render(app, request, app.config.origin.timeout).await? {
        RenderOutcome::Whole(whole) => Ok(whole),
        RenderOutcome::Slow(_) => Err(FetchError::Timeout.into()),
    }
}

/// Renders a page. Waits for its body as long as `patience`.
///
/// If the response varies on a header that the origin did not get, asks again with this header: a page may be stored only under
/// values that selected it (RFC 9111 §4.1). Each repetition sends at least one more header.
///
/// # Errors
/// Those of [`render_whole`].
pub(super) async fn render(app: &App, request: &RenderRequest<'_>, patience: Duration) -> Result<RenderOutcome, Error> {
    let mut sent = request.sent.clone();
    let exchanged = loop {
        match (exchange(app, request, sent.as_ref()).await?, &mut sent) {
            (Exchanged::Storable { page, .. }, Some(sent)) if request.selecting.lacks(&page.vary, Some(sent)) => {
                page.vary.iter().for_each(|name| sent.insert(name.to_owned()));
            }
            (exchanged, _) => break exchanged,
        }
    };
    Ok(RenderOutcome::Whole(match exchanged {
        Exchanged::NotStorable(response) => WholeRender::NotStorable(response),
        Exchanged::Storable { mut page, validated: Some(stored), response, directives } => {
            if session_ids(app, request.key.url(), response.headers()).are_in(&page.headers, &[]) {
                return Ok(not_storable(Reason::Personal, *response, directives));
            }
            page.body = stored.body.clone();
            if page.tags.is_empty() {
                page.tags.clone_from(&stored.tags);
            }
            // The stored body was checked before.
            prepare(app, request.key, &mut page).await;
            page.hold(&*app.fetch);
            WholeRender::Complete { page, not_modified: true }
        }
        Exchanged::Storable { page, validated: None, response, directives } if !directives.has_esi => {
            return collect(app, request, page, (*response, directives), patience).await;
        }
        Exchanged::Storable { mut page, validated: None, response, .. } => {
            let ids = session_ids(app, request.key.url(), response.headers());
            Box::pin(esi::complete(app, request, &mut page, *response)).await?;
            let finished = finish(app, request.key, &mut page, &ids).await;
            finished.map_err(|reason| Error::Esi(cause_of(reason).to_owned()))?;
            page.is_declared_shared |= page.has_includes();
            WholeRender::Complete { page, not_modified: false }
        }
    }))
}

/// The ids of sessions that a page or fragment must not contain. `headers`: those of its response from `url`.
pub(super) fn session_ids(app: &App, url: &str, headers: &HeaderMap) -> SessionIds {
    SessionIds::of(headers, url, app.config.page.cookies.csrf.as_deref())
}

/// Completes a page whose body has arrived. Placeholders have already replaced its tokens.
///
/// # Errors
/// The reason not to store the page: it contains one of `ids`, or its placeholders and script tags make it too large.
async fn finish(app: &App, key: &PageKey, page: &mut StoredPage, ids: &SessionIds) -> Result<(), Reason> {
    prepare(app, key, page).await;
    if ids.are_in(&page.headers, &page.body.read()) {
        return Err(Reason::Personal);
    }
    if page.body.len() > app.config.page.max_bytes {
        return Err(Reason::TooLarge);
    }
    page.hold(&*app.fetch);
    Ok(())
}

/// Sets the stored headers and the `ETag`, and finds the page's holes.
async fn prepare(app: &App, key: &PageKey, page: &mut StoredPage) {
    set_stored_headers(page);
    set_etag(page);
    find_holes(app, key, page).await;
}

fn unstorable(reason: Reason) -> Unstorable {
    Unstorable::new(reason, cause_of(reason).to_owned())
}

/// The cause, for operators, if the body gives the reason.
const fn cause_of(reason: Reason) -> &'static str {
    match reason {
        Reason::Personal => session_ids::CAUSE,
        Reason::TooLarge => "the page, with its placeholders, exceeds PAGE_MAX_BYTES",
        _ => "",
    }
}

/// Finds the page's elements that rules name, and makes them holes.
async fn find_holes(app: &App, key: &PageKey, page: &mut StoredPage) {
    let rules = hole_rules(app, key, page);
    if rules.is_empty() {
        return;
    }
    let body = page.body.read();
    match holes::find(&*app.html, &rules, key.path_and_query(), &body).await {
        Ok(found) => {
            let (body, holes) = found.into_page(body, std::mem::take(&mut page.holes));
            (page.body, page.holes) = (body.into(), holes);
        }
        Err(error) => log::error!("page cache: the holes of a page were not found: {error}"),
    }
}

/// The rules with holes for the page.
fn hole_rules<'a>(app: &'a App, key: &PageKey, page: &StoredPage) -> Vec<&'a HoleRule> {
    let may_have_holes = page.status == StatusCode::OK && is_html(&page.headers);
    if may_have_holes { app.config.page.holes.of_path(key.path()).collect() } else { Vec::new() }
}

/// Collects the body, for as long as `patience`.
async fn collect(
    app: &App,
    request: &RenderRequest<'_>,
    mut page: Box<StoredPage>,
    (response, directives): (Response, OriginDirectives),
    patience: Duration,
) -> Result<RenderOutcome, Error> {
    let content_length = content_length(response.headers());
    let Some(mut permit) = acquire_memory(app, content_length) else {
        return Ok(not_storable(Reason::Busy, response, directives));
    };
    let ids = session_ids(app, request.key.url(), response.headers());
    let (head, body) = response.into_parts();
    let limit = app.config.page.max_bytes;
    // Holes are found in a whole body only, so a page with rules for holes is not streamed.
    let must_be_whole = !hole_rules(app, request.key, &page).is_empty();
    let patience = app.clock.sleep(if must_be_whole { app.config.origin.timeout } else { patience });
    let collected = match content_length {
        // A body that is known to be too large is passed on at once.
        Some(length) if length > limit => CollectOutcome::TooLarge(body),
        _ => permit.collect(body, limit, std::pin::pin!(patience)).await.map_err(|_| FetchError::Unreachable)?,
    };
    let (reason, body) = match collected {
        CollectOutcome::Whole(body) if is_whole(content_length, &body) => {
            page.body = body.clone().into();
            match finish(app, request.key, &mut page, &ids).await {
                Ok(()) => return Ok(RenderOutcome::Whole(WholeRender::Complete { page, not_modified: false })),
                Err(reason) => (reason, body.into()),
            }
        }
        CollectOutcome::Whole(_) => return Err(FetchError::Unreachable.into()),
        CollectOutcome::Slow(_) if must_be_whole => return Err(FetchError::Timeout.into()),
        CollectOutcome::Slow(body) => {
            return Ok(RenderOutcome::Slow(Box::new(SlowPage { page: *page, content_length, body, ids, permit })));
        }
        CollectOutcome::TooLarge(body) => (Reason::TooLarge, body),
        CollectOutcome::NoPermit(body) => (Reason::Busy, body),
    };
    Ok(not_storable(reason, Response::from_parts(head, body), directives))
}

/// A permit for a page of `bytes`, if known. Returns None if other pages leave no room.
pub(super) fn acquire_memory(app: &App, bytes: Option<usize>) -> Option<MemoryPermit> {
    let now = app.clock.now();
    app.semaphore.try_acquire(bytes, now, now + app.config.origin.timeout)
}

fn not_storable(reason: Reason, response: Response, directives: OriginDirectives) -> RenderOutcome {
    let (item, tags) = (directives.item.clone(), directives.tags.clone());
    let why = Box::new(Unstorable { item, tags, ..unstorable(reason) });
    RenderOutcome::Whole(WholeRender::NotStorable(UnstorableResponse { response: Box::new(response), directives, why }))
}

/// Removes headers that the cache computes for each response, and adds the `Date` that a cache must send.
fn set_stored_headers(page: &mut StoredPage) {
    let headers = &mut page.headers;
    for name in ["content-length", "age", "cache-status"] {
        headers.remove(name);
    }
    // A recipient that stores a response without `Date` adds it (RFC 9110 §6.6.1).
    if !headers.contains_key(header::DATE) {
        append_text(headers, header::DATE, httpdate::fmt_http_date(page.stored.into()));
    }
}

/// Adds an `ETag` to a 200 without one.
fn set_etag(page: &mut StoredPage) {
    if !page.headers.contains_key(header::ETAG)
        && page.status == StatusCode::OK
        && let Some(etag) = conditional::etag(&page.body.read())
    {
        page.headers.insert(header::ETAG, etag);
        page.has_generated_etag = true;
    }
}
