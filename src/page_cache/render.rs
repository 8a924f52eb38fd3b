//! Renders a page for everybody: the origin is asked without cookies or identity, with the validators of what is stored. The answer is
//! kept whole before anybody gets it, so that it has an `ETag`, and one that breaks off is an error and not half a page; where that takes
//! longer than a second, it passes while it is copied. A body that breaks off is never stored.

use std::time::Duration;

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
    App,
    config::PageConfig,
    ports::{
        error::Error,
        fetch::{BodyCopy, Collected, FetchError, InTime, Response, content_length},
        random,
        time::Timestamp,
    },
    proxy::{self, OriginDirectives},
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
    /// Nobody waits for the answer: its body may take its time.
    pub behind: bool,
    /// The answer may come compressed, as its visitor takes it; it then passes, and is not stored.
    pub compressed: bool,
}

/// What the origin made of a page.
pub enum Rendered {
    /// It may be stored. `not_modified`: the origin said that what is stored still holds.
    Page { entry: Box<Entry>, not_modified: bool },
    /// It may be stored when all of it has passed.
    Slow { response: Box<Response>, growing: Box<Growing> },
    /// It is for this visitor only, or fails; `reason` says why it is not stored.
    Other { response: Box<Response>, says: OriginDirectives, reason: &'static str },
}

/// A page whose body is on its way to a visitor.
pub struct Growing {
    entry: Entry,
    promised: Option<usize>,
    copy: BodyCopy,
}

impl Growing {
    /// The page, when all of it has passed. None if that was not all of it, or too much.
    pub async fn whole(self) -> Option<Entry> {
        let Self { mut entry, promised, copy } = self;
        entry.body = copy.await.filter(|body| promised.is_none_or(|promised| promised == body.len()))?;
        describe(&mut entry);
        name(&mut entry);
        Some(entry)
    }
}

/// What a visitor waits for the whole of a page, once its head is there.
const PATIENCE: Duration = Duration::from_secs(1);

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
        let (response, says) = proxy::ask_for_page(app, order.page.url(), headers, asked).await?;
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
            None => collect(app, order, entry, response, says).await,
        };
    }
}

/// What came of a question.
struct Told<'a> {
    asked: Timestamp,
    arrived: Timestamp,
    status: StatusCode,
    headers: HeaderMap,
    says: &'a OriginDirectives,
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
    name(&mut entry);
    Rendered::Page { entry: Box::new(entry), not_modified: true }
}

/// Takes the body in, if it is one that can be stored.
async fn collect(
    app: &App,
    order: &Order<'_>,
    mut entry: Entry,
    response: Response,
    says: OriginDirectives,
) -> Result<Rendered, Error> {
    let (head, body) = response.into_parts();
    let promised = content_length(&head.headers);
    let limit = app.config.page.max_bytes;
    // Known to be too large: not one byte of it waits.
    let collected = match promised {
        Some(promised) if promised > limit => Ok(InTime::Collected(Collected::TooLarge(body))),
        _ if order.behind => body.collect(limit).await.map(InTime::Collected),
        _ => body.collect_within(limit, app.clock.sleep(PATIENCE)).await,
    };
    entry.body = match collected {
        Ok(InTime::Collected(Collected::Whole(body)))
            if promised.is_none_or(|promised: usize| promised == body.len()) =>
        {
            body
        }
        Ok(InTime::Collected(Collected::Whole(_))) | Err(_) => return Err(FetchError::Unreachable.into()),
        Ok(InTime::Collected(Collected::TooLarge(body))) => {
            let response = Box::new(Response::from_parts(head, body));
            return Ok(Rendered::Other { response, says, reason: "too-large" });
        }
        Ok(InTime::Slow(body)) => {
            let (body, copy) = body.copied(limit);
            describe(&mut entry);
            let mut response = Response::new(body);
            *response.status_mut() = entry.status;
            response.headers_mut().clone_from(&entry.headers);
            response.headers_mut().extend(promised.map(|length| (header::CONTENT_LENGTH, HeaderValue::from(length))));
            let growing = Growing { entry, promised, copy };
            return Ok(Rendered::Slow { response: Box::new(response), growing: Box::new(growing) });
        }
    };
    describe(&mut entry);
    name(&mut entry);
    Ok(Rendered::Page { entry: Box::new(entry), not_modified: false })
}

/// What is kept of the origin's headers, and what we add.
fn describe(entry: &mut Entry) {
    let headers = &mut entry.headers;
    for name in ["content-length", "age", "cache-status"] {
        headers.remove(name);
    }
    // RFC 9110 §6.6.1: who keeps an answer that does not say when it was made says so.
    if !headers.contains_key(header::DATE) {
        let made = std::time::UNIX_EPOCH + Duration::from_secs(entry.stored.as_secs());
        headers.extend(HeaderValue::try_from(httpdate::fmt_http_date(made)).ok().map(|date| (header::DATE, date)));
    }
    // Where the origin leaves it to us, browsers ask each time: a purge could not reach their copies, and the ETag makes the
    // question cheap.
    let ours = if headers.contains_key(header::EXPIRES) { "public" } else { "no-cache" };
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static(ours));
}

/// Gives a page that has none an `ETag`.
fn name(entry: &mut Entry) {
    if !entry.headers.contains_key(header::ETAG)
        && entry.status == StatusCode::OK
        && let Some(etag) = conditional::etag(&entry.body)
    {
        entry.headers.insert(header::ETAG, etag);
        entry.own_etag = true;
    }
}

/// 0 to 1; where there are no random bits, 0.
fn chance() -> f64 {
    f64::from(random::bytes().map_or(0, u32::from_ne_bytes)) / f64::from(u32::MAX)
}
