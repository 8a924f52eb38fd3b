//! Completes a page with ESI for visitors without cookies: its fragments are requested as the page is, and become its
//! holes. See [`fill`](super::fill) for other visitors.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use url::Url;

use super::{
    exchange::{RenderRequest, random_fraction, without_dropped_cookies},
    render::session_ids,
};
use crate::{
    App,
    page_cache::{
        admission::heuristic,
        holes::{Hole, HoleContent, IncludedHole},
        policy::{
            CacheControl, Freshness, Heuristic, Reason, VaryFields,
            freshness::{Arrival, freshness},
        },
        stored_page::StoredPage,
    },
    ports::{error::Error, fetch::Response, semaphore::MemoryPermit, time::Timestamp},
    proxy::{
        self, directives,
        esi::{CAPABILITY, CAPABILITY_HEADER, Include},
        fragments,
    },
    schema::ids::Tag,
};

/// Freshness lifetime of a page that lacks a fragment because the origin failed.
const AFTER_FAILURE: Duration = Duration::from_secs(10);

/// Gives `page` its body and holes. `response` is the origin's, with the ESI.
///
/// # Errors
/// [`Error::Esi`] if the page is refused, [`Error::Origin`] if its body is late or truncated; [`Error::Busy`].
pub async fn complete(
    app: &App,
    request: &RenderRequest<'_>,
    page: &mut StoredPage,
    response: Response,
) -> Result<(), Error> {
    let (head, body) = response.into_parts();
    let fetch =
        async |url: &Url, include: &Include| Sender { app, request, vary: &page.vary, url }.fragment(include).await;
    let (template, found) = fragments::with_fragments(app, request.key.url(), &head.headers, body, fetch).await?;
    let (body, places) = template.assemble(&found, |fragment| &fragment.body);
    if body.len() > app.config.page.max_bytes {
        return Err(Error::Esi("the page with its fragments exceeds PAGE_MAX_BYTES".to_owned()));
    }
    page.holes.extend(places.into_iter().filter_map(|(index, range)| {
        let fragment = found.get(index).filter(|fragment| !fragment.is_for_all)?;
        let Include { src, alt, .. } = template.includes.get(index)?.clone();
        let content = HoleContent::Include(IncludedHole { src, alt, is_private: fragment.is_private });
        Some(Hole { range, content })
    }));
    page.body = body.into();
    for fragment in found {
        fragment.limit(page);
    }
    Ok(())
}

/// A fragment for visitors without cookies.
#[derive(Default)]
struct SharedFragment {
    /// Empty if the fragment may not be shared, or failed and has no replacement.
    body: Bytes,
    is_private: bool,
    /// The origin declares the fragment shared, whatever cookies a visitor has.
    is_for_all: bool,
    /// The arrival and the freshness of the fragment. None without a fragment.
    limit: Option<(Timestamp, Freshness)>,
    tags: Vec<Tag>,
    /// The fragment failed at this time.
    failed: Option<Timestamp>,
    /// None without a body.
    _permit: Option<MemoryPermit>,
}

impl SharedFragment {
    /// The page lives no longer than its fragments, and is purged by their tags.
    fn limit(self, page: &mut StoredPage) {
        if let Some((arrived, freshness)) = self.limit {
            let fresh_until = arrived + freshness.fresh;
            page.expire(fresh_until);
            page.stale_until = page.stale_until.min(fresh_until + freshness.stale);
            page.error_until = page.error_until.min(fresh_until + freshness.on_error);
            page.strict |= freshness.strict;
        }
        if let Some(failed) = self.failed {
            page.expire(failed + AFTER_FAILURE);
        }
        for tag in self.tags {
            if page.tags.len() < directives::MAX_TAGS && !page.tags.contains(&tag) {
                page.tags.push(tag);
            }
        }
    }
}

/// Why a fragment has no content for visitors without cookies.
#[derive(Debug, thiserror::Error)]
enum Missing {
    /// The origin answered one visitor.
    #[error("it may not be shared: {}", .0.as_str())]
    Private(Reason),
    #[error("{}", Error::Busy)]
    Busy,
    #[error("{0}")]
    Failed(String),
}

/// Requests the fragments of one page, without cookies.
struct Sender<'a> {
    app: &'a App,
    request: &'a RenderRequest<'a>,
    vary: &'a VaryFields,
    url: &'a Url,
}

impl Sender<'_> {
    async fn fragment(&self, include: &Include) -> Result<SharedFragment, Error> {
        let missing = match self.fetch(&include.src).await {
            // The replacement would need the same room.
            Err(Missing::Busy) => return Err(Error::Busy),
            Err(missing) => missing,
            Ok(found) => return Ok(found),
        };
        let is_private = matches!(missing, Missing::Private(_));
        let failed = (!is_private).then(|| self.app.clock.now());
        let cause = format!("the include {}: {missing}", include.src);
        let replacement = match &include.alt {
            Some(alt) => self.fetch(alt).await.ok(),
            None => None,
        };
        match replacement {
            None if !is_private && !include.continue_on_error => {
                return Err(Error::Esi(cause));
            }
            _ if is_private => {}
            _ => log::warn!("{cause}"),
        }
        let found = replacement.unwrap_or_default();
        Ok(SharedFragment { is_private, is_for_all: false, failed, ..found })
    }

    async fn fetch(&self, path: &str) -> Result<SharedFragment, Missing> {
        let Self { app, request, vary, url } = self;
        let failed = |cause: &dyn std::fmt::Display| Missing::Failed(cause.to_string());
        let url = url.join(path).map_err(|error| failed(&error))?;
        if app.config.page.urls.personal_paths.contains(url.path()) {
            return Err(Missing::Private(Reason::Path));
        }
        let asked = app.clock.now();
        let mut headers = request.selecting.headers(Some(vary));
        if request.no_cache {
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        }
        headers.insert(CAPABILITY_HEADER, HeaderValue::from_static(CAPABILITY));
        let mut is_nested = false;
        let (response, directives) = loop {
            let fetched = proxy::fetch_shared(app, url.as_str(), headers.clone(), asked).await;
            let (response, directives) = fetched.map_err(|error| failed(&error))?;
            if is_nested || !directives.has_esi {
                break (response, directives);
            }
            // The origin fills the fragments of this fragment itself. Its headers say nothing about them.
            is_nested = true;
            headers.remove(CAPABILITY_HEADER);
        };
        let (head, body) = response.into_parts();
        let arrived = app.clock.now();
        if directives.has_esi {
            return Err(failed(&"it has ESI of its own"));
        }
        if head.status != StatusCode::OK {
            return Err(failed(&format_args!("status {}", head.status.as_u16())));
        }
        if directives.is_personal {
            return Err(Missing::Private(Reason::Personal));
        }
        let config = &app.config.page;
        let ids = session_ids(app, url.as_str(), &head.headers);
        let headers = without_dropped_cookies(head.headers, &config.cookies, url.path());
        // A rule for the page does not share a private fragment.
        let heuristic = Heuristic { overrides: false, ..heuristic(config, request.key, Ok(())) };
        let arrival = Arrival { at: arrived.into(), delay: arrived.since(asked) };
        let freshness = match freshness(head.status, &headers, arrival, &heuristic) {
            // The page would have to be validated at each visit.
            Ok(freshness) if freshness.fresh.is_zero() => return Err(Missing::Private(Reason::NotFresh)),
            Ok(freshness) => freshness,
            Err(Reason::Encoding) => return Err(failed(&"the body is compressed")),
            Err(reason) => return Err(Missing::Private(reason)),
        };
        // A visitor with cookies gets a fragment of their own. The page's variant covers the other headers.
        let fields = VaryFields::of(&headers).ok_or(Missing::Private(Reason::VaryStar))?;
        if !fields.iter().all(|field| field == "cookie" || vary.contains(field)) {
            return Err(Missing::Private(Reason::Vary));
        }
        let (body, permit) = fragments::whole(app, &headers, body).await.map_err(|error| match error {
            Error::Busy => Missing::Busy,
            error => failed(&error),
        })?;
        // No visitor gets the headers of a fragment.
        if ids.are_in(&HeaderMap::new(), &body) {
            return Err(Missing::Private(Reason::Personal));
        }
        Ok(SharedFragment {
            body,
            is_private: false,
            is_for_all: !is_nested
                && CacheControl::of_response(&headers).is_declared_shared()
                && !fields.contains("cookie"),
            limit: Some((arrived, freshness.jittered(random_fraction()))),
            tags: directives.tags,
            failed: None,
            _permit: Some(permit),
        })
    }
}
