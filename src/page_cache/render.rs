//! Renders a page for everybody: the origin is asked without cookies or identity, and the answer is kept whole before anybody
//! gets it, so that a body that breaks off is never stored and never looks complete.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, header};

use super::{conditional, entry::Entry, key::Page, storable};
use crate::{
    app::App,
    error::Error,
    fetch::{Collected, FetchError, Response},
    origin::{self, Says},
    time::Timestamp,
};

/// What the origin made of a page.
pub enum Rendered {
    /// It may be stored, for `lives`.
    Page { entry: Box<Entry>, lives: Duration },
    /// It is for this visitor only, or fails; `reason` says why it is not stored.
    Other { response: Response, reason: &'static str },
}

/// Asks the origin for `page`. `stamp` is the lease's, or 0 for what will not be stored.
///
/// # Errors
/// [`Error::Origin`], also for a body that breaks off; what the demo shop's database says.
pub async fn render(app: &App, page: &Page, stamp: u64, now: Timestamp) -> Result<(Rendered, Says), Error> {
    let (response, says) = origin::ask_for_page(app, page.url(), now).await?;
    let config = &app.config.page;
    let freshness = storable::freshness(response.status(), response.headers(), now, config);
    let freshness = if says.is_personal() { Err("personal") } else { freshness };
    let freshness = match freshness {
        Ok(freshness) => freshness,
        Err(reason) => return Ok((Rendered::Other { response, reason }, says)),
    };
    let (head, body) = response.into_parts();
    let promised = head.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let body = match body.collect(config.max_bytes).await {
        Ok(Collected::Whole(body)) if promised.is_none_or(|promised: usize| promised == body.len()) => body,
        Ok(Collected::Whole(_)) | Err(_) => return Err(FetchError::Unreachable.into()),
        Ok(Collected::TooLarge(body)) => {
            let response = Response::from_parts(head, body);
            return Ok((Rendered::Other { response, reason: "too-large" }, says));
        }
    };
    // Pages that were stored together must not become stale together, so each is fresh for 90 to 100 % of PAGE_TTL. What the
    // origin chose is taken as it is.
    let fresh = if freshness.stated { freshness.fresh } else { freshness.fresh.mul_f64(1.0 - 0.1 * chance()) };
    let mut headers = head.headers;
    describe(&mut headers, &body);
    let entry = Entry {
        stamp,
        // Measured from before the request, as RFC 9111 §4.2.3 asks: the way of the answer counts as age.
        stored: now - freshness.age,
        fresh_until: now + fresh,
        tags: says.tags.clone(),
        status: head.status,
        headers,
        body,
    };
    Ok((Rendered::Page { entry: Box::new(entry), lives: fresh + freshness.stale }, says))
}

/// What is kept of the origin's headers, and what we add.
fn describe(headers: &mut HeaderMap, body: &[u8]) {
    for name in ["content-length", "age", "cache-status"] {
        headers.remove(name);
    }
    if !headers.contains_key(header::ETAG)
        && let Some(etag) = conditional::etag(body)
    {
        headers.insert(header::ETAG, etag);
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
