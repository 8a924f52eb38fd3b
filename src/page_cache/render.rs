//! Renders a page for everybody: the origin is asked without cookies or identity, with the validators of what is stored, and the
//! answer is kept whole before anybody gets it, so that a body that breaks off is never stored and never looks complete.

use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::{
    conditional,
    entry::Entry,
    key::Page,
    storable::{self, Freshness, Popularity},
    validation,
    vary::{Fields, Selecting},
};
use crate::{
    app::App,
    config::PageConfig,
    error::Error,
    fetch::{Collected, FetchError, Response},
    origin::{self, Says},
    time::Timestamp,
};

/// What is to be rendered.
pub struct Order<'a> {
    pub page: &'a Page,
    pub selecting: &'a Selecting,
    /// The headers of [`Order::selecting`] that the origin gets. None: all. An origin that says nothing of freshness is not trusted to
    /// name what its answer depends on, so it gets only what it has named before.
    pub sent: Option<Fields>,
    /// What is stored, to be validated.
    pub stored: Option<&'a Entry>,
    /// Whether an answer that says nothing of freshness may be stored.
    pub popularity: Popularity,
    /// The lease's, or 0 for what will not be stored.
    pub stamp: u64,
    /// The client wants the origin's own word: a cache between it and us is told.
    pub validated: bool,
    /// The answer may come compressed, as its visitor takes it; it then passes, and is not stored.
    pub compressed: bool,
}

/// What the origin made of a page.
pub enum Rendered {
    /// It may be stored. `not_modified`: the origin said that what is stored still holds.
    Page { entry: Box<Entry>, not_modified: bool },
    /// It is for this visitor only, or fails; `reason` says why it is not stored.
    Other { response: Box<Response>, says: Says, reason: &'static str },
}

/// Asks the origin.
///
/// # Errors
/// [`Error::Origin`], also for a body that breaks off; what the demo shop's database says.
pub async fn render(app: &App, order: &Order<'_>) -> Result<Rendered, Error> {
    let mut sent = order.sent.clone();
    let mut asked_again = false;
    loop {
        let conditions = order.stored.and_then(validation::conditions);
        let mut headers = order.selecting.headers(sent.as_ref());
        headers.extend(conditions.clone().unwrap_or_default());
        if order.compressed {
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        }
        if order.validated {
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        }
        let asked = app.clock.now();
        let (response, says) = origin::ask_for_page(app, order.page.url(), headers, asked).await?;
        let arrived = app.clock.now();
        let not_modified = response.status() == StatusCode::NOT_MODIFIED;
        let stored = order.stored.filter(|_| not_modified && conditions.is_some());
        let (status, headers) = match stored {
            Some(stored) => (stored.status, validation::freshened(&stored.headers, response.headers())),
            None => (response.status(), response.headers().clone()),
        };
        let told = Told { asked, arrived, status, headers, says: &says };
        let (freshness, vary, variant) = match told.judge(order, &app.config.page) {
            Ok(judged) => judged,
            Err(reason) => return Ok(Rendered::Other { response: Box::new(response), says, reason }),
        };
        if order.selecting.lacked(&vary, sent.as_ref()) && !asked_again {
            // It depends on what it did not get: once more, with that.
            (sent, asked_again) = (Some(vary), true);
            continue;
        }
        let Told { status, headers, .. } = told;
        let entry = Entry {
            stamp: order.stamp,
            stored: arrived - freshness.age,
            fresh_until: arrived + freshness.fresh,
            stale_until: arrived + freshness.fresh + freshness.stale,
            error_until: arrived + freshness.fresh + freshness.on_error,
            dies: arrived + freshness.lives,
            strict: freshness.strict,
            vary,
            variant,
            own_etag: stored.is_some_and(|stored| stored.own_etag),
            tags: says.tags.clone(),
            status,
            headers,
            body: bytes::Bytes::new(),
        };
        return match stored {
            Some(stored) => Ok(hold(entry, stored)),
            None => collect(app, entry, response, says).await,
        };
    }
}

/// What came of a question.
struct Told<'a> {
    asked: Timestamp,
    arrived: Timestamp,
    status: StatusCode,
    headers: HeaderMap,
    says: &'a Says,
}

impl Told<'_> {
    /// How long it may be kept, and for which requests.
    fn judge(&self, order: &Order<'_>, config: &PageConfig) -> Result<(Freshness, Fields, String), &'static str> {
        if self.says.is_personal() {
            return Err("personal");
        }
        let times = (self.asked, self.arrived);
        let mut freshness = storable::freshness(self.status, &self.headers, times, order.popularity, config)?;
        if !freshness.stated {
            // Pages that were stored together must not become stale together, so each is fresh for 90 to 100 % of PAGE_TTL. What
            // the origin chose is taken as it is.
            let fresh = freshness.fresh.mul_f64(1.0 - 0.1 * chance());
            freshness.lives = freshness.lives.saturating_sub(freshness.fresh.saturating_sub(fresh));
            freshness.fresh = fresh;
        }
        let vary = Fields::of(&self.headers).ok_or("vary-star")?;
        let variant = order.selecting.variant(&vary).ok_or("vary")?;
        Ok((freshness, vary, variant))
    }
}

/// What is stored holds for as long again as the 304 says.
fn hold(mut entry: Entry, stored: &Entry) -> Rendered {
    entry.body = stored.body.clone();
    if entry.tags.is_empty() {
        entry.tags.clone_from(&stored.tags);
    }
    describe(&mut entry);
    Rendered::Page { entry: Box::new(entry), not_modified: true }
}

/// Takes the body in, if it is one that can be stored.
async fn collect(app: &App, mut entry: Entry, response: Response, says: Says) -> Result<Rendered, Error> {
    let (head, body) = response.into_parts();
    let promised = head.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    entry.body = match body.collect(app.config.page.max_bytes).await {
        Ok(Collected::Whole(body)) if promised.is_none_or(|promised: usize| promised == body.len()) => body,
        Ok(Collected::Whole(_)) | Err(_) => return Err(FetchError::Unreachable.into()),
        Ok(Collected::TooLarge(body)) => {
            let response = Box::new(Response::from_parts(head, body));
            return Ok(Rendered::Other { response, says, reason: "too-large" });
        }
    };
    describe(&mut entry);
    Ok(Rendered::Page { entry: Box::new(entry), not_modified: false })
}

/// What is kept of the origin's headers, and what we add.
fn describe(entry: &mut Entry) {
    let headers = &mut entry.headers;
    for name in ["content-length", "age", "cache-status"] {
        headers.remove(name);
    }
    if !headers.contains_key(header::ETAG)
        && entry.status == StatusCode::OK
        && let Some(etag) = conditional::etag(&entry.body)
    {
        headers.insert(header::ETAG, etag);
        entry.own_etag = true;
    }
    // RFC 9110 §6.6.1: who keeps an answer that does not say when it was made says so.
    if !headers.contains_key(header::DATE) {
        let made = std::time::UNIX_EPOCH + std::time::Duration::from_secs(entry.stored.as_secs());
        headers.extend(HeaderValue::try_from(httpdate::fmt_http_date(made)).ok().map(|date| (header::DATE, date)));
    }
    // Where the origin leaves it to us, browsers ask each time: a purge could not reach their copies, and the ETag makes the
    // question cheap.
    let ours = if headers.contains_key(header::EXPIRES) { "public" } else { "no-cache" };
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static(ours));
}

/// 0 to 1; where there are no random bits, 0.
fn chance() -> f64 {
    f64::from(getrandom::u32().unwrap_or(0)) / f64::from(u32::MAX)
}
