//! Parts of a page for one visitor, requested with the visitor's cookies and identity. A part is a fragment that a page
//! includes by [ESI](super::esi), or the page that fills [holes](crate::page_cache::holes).

use std::rc::Rc;

use bytes::Bytes;
use futures_util::future::join_all;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use url::Url;

use super::{
    cookies::at_path,
    directives::OriginDirectives,
    esi::{self, Include, Processed, Template},
    failure::failure,
    forward::forward,
    headers::ADDRESS,
    visit::{RequestHead, Visit},
    visitor::VisitorContext,
};
use crate::{
    App,
    config::HeaderRules,
    ports::{
        error::Error,
        fetch::{Body, FetchError, Request, Response, content_length, is_whole},
        semaphore::{CollectOutcome, MemoryPermit},
    },
};

/// The headers of a visitor's request that a part of a page may depend on.
const PART_HEADERS: [HeaderName; 5] =
    [header::COOKIE, header::ACCEPT_LANGUAGE, header::USER_AGENT, ADDRESS, HeaderName::from_static("cf-ipcountry")];

/// The request for a part, by the visitor whose request has `headers`. The headers that `rules` name select the page and its
/// parts.
#[must_use]
pub fn part_request(uri: Uri, headers: &HeaderMap, rules: &HeaderRules) -> Request {
    let mut part = Request::new(Body::Empty);
    *part.uri_mut() = uri;
    let mut names = PART_HEADERS.to_vec();
    for name in rules.varied.iter().chain(rules.normalized.iter().map(|rule| &rule.name)) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    for name in &names {
        for value in headers.get_all(name) {
            part.headers_mut().append(name.clone(), value.clone());
        }
    }
    part.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("text/html,*/*;q=0.8"));
    part.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    part
}

/// The URI with another path and query; None if they are malformed.
#[must_use]
pub fn with_path(uri: &Uri, path: &str) -> Option<Uri> {
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path.parse().ok()?);
    Uri::from_parts(parts).ok()
}

/// Requests a part of a page, and obeys the directives of the response. It counts as no view.
pub async fn fetch_part(app: &Rc<App>, request: Request) -> Response {
    fetch_for(Visit::of(app, &request, app.clock.now()), request).await
}

async fn fetch_for(visit: Visit, request: Request) -> Response {
    let visit = Visit { is_part: true, ..visit };
    let is_silent = visit.token.is_some() && visit.app.circuit.is_open();
    let read = if is_silent { Ok(VisitorContext::without_redis(&visit)) } else { VisitorContext::read(&visit).await };
    let visitor = match read {
        Ok(visitor) => visitor,
        Err(error) => {
            log::warn!("a part of a page: {error}");
            VisitorContext::without_redis(&visit)
        }
    };
    // Boxed, because the call is recursive: a page is forwarded with its parts.
    let answer = Box::pin(forward(&visit, visitor, request, &mut |_, _| {})).await;
    for task in answer.background {
        task.await;
    }
    answer.response
}

/// A fragment for one visitor.
pub struct Fragment {
    pub body: Bytes,
    /// The lines of `Set-Cookie`, each with a `Path`.
    pub cookies: Vec<HeaderValue>,
    /// None without a body.
    _permit: Option<MemoryPermit>,
}

/// The fragment `src`, or `alt` in its place. `page` is the visitor's request for the page.
///
/// # Errors
/// [`Error::Esi`] without a fragment; [`Error::Busy`].
pub async fn fetch_fragment(
    app: &Rc<App>,
    page: &RequestHead,
    src: &str,
    alt: Option<&str>,
) -> Result<Fragment, Error> {
    let failed = match fetch_path(app, page, src).await {
        // The replacement would need the same room.
        Err(failed) if !matches!(failed, Error::Busy) => failed,
        found => return found,
    };
    let Some(alt) = alt else { return Err(failed) };
    log::warn!("{failed}");
    fetch_path(app, page, alt).await
}

async fn fetch_path(app: &Rc<App>, page: &RequestHead, path: &str) -> Result<Fragment, Error> {
    // Without the query, which may identify the visitor.
    let name = path.split('?').next().unwrap_or_default();
    let failed = |cause: &dyn std::fmt::Display| Error::Esi(format!("the include {name}: {cause}"));
    let uri = with_path(&page.uri, path).ok_or_else(|| failed(&"no path"))?;
    let request = part_request(uri, &page.headers, &app.config.page.headers);
    let visit = Visit::of(app, &request, app.clock.now());
    let visit = Visit { may_lack_session_cookie: page.may_lack_session_cookie(), ..visit };
    let (head, body) = fetch_for(visit, request).await.into_parts();
    if head.status != StatusCode::OK {
        return Err(failed(&format_args!("status {}", head.status.as_u16())));
    }
    let (body, permit) = whole(app, &head.headers, body).await.map_err(|error| match error {
        Error::Busy => Error::Busy,
        error => failed(&error),
    })?;
    let cookies = head.headers.get_all(header::SET_COOKIE).iter().map(|line| at_path(line, name)).collect();
    Ok(Fragment { body, cookies, _permit: Some(permit) })
}

const TOO_LARGE: &str = "the body exceeds PAGE_MAX_BYTES";

/// The whole body of a page or a fragment, as text. The permit counts its memory until it is dropped.
///
/// # Errors
/// [`Error::Esi`] if it is too large, or is no text; [`Error::Origin`] if it is late or truncated; [`Error::Busy`].
pub async fn whole(app: &App, headers: &HeaderMap, body: Body) -> Result<(Bytes, MemoryPermit), Error> {
    let refused = |cause: &str| Err(Error::Esi(cause.to_owned()));
    if is_compressed(headers) {
        return refused("the body is compressed");
    }
    let (limit, timeout, now) = (app.config.page.max_bytes, app.config.origin.timeout, app.clock.now());
    let length = content_length(headers);
    if length.is_some_and(|length| length > limit) {
        return refused(TOO_LARGE);
    }
    let mut permit = app.semaphore.try_acquire_for_fragment(length, now, now + timeout).ok_or(Error::Busy)?;
    match permit.collect(body, limit, std::pin::pin!(app.clock.sleep(timeout))).await {
        Ok(CollectOutcome::Whole(body)) if is_whole(length, &body) => Ok((body, permit)),
        Ok(CollectOutcome::TooLarge(_)) => refused(TOO_LARGE),
        Ok(CollectOutcome::NoPermit(_)) => Err(Error::Busy),
        Ok(CollectOutcome::Slow(_)) => Err(FetchError::Timeout.into()),
        Ok(CollectOutcome::Whole(_)) | Err(_) => Err(FetchError::Unreachable.into()),
    }
}

/// The page with ESI at `url`, and the result of `fetch` for each of its includes.
///
/// # Errors
/// As [`whole`]; [`Error::Esi`] if the page is refused; the errors of `fetch`.
pub async fn with_fragments<F>(
    app: &App,
    url: &str,
    headers: &HeaderMap,
    body: Body,
    fetch: impl AsyncFn(&Url, &Include) -> Result<F, Error>,
) -> Result<(Template, Vec<F>), Error> {
    let (template, _permit) = whole(app, headers, body).await?;
    let url = Url::parse(url).map_err(|_| Error::Platform("a page's URL is invalid".to_owned()))?;
    let template = esi::scan(&template, &url, app.config.origin.url.as_ref())?;
    let found = join_all(template.includes.iter().map(|include| fetch(&url, include))).await;
    let found = found.into_iter().collect::<Result<_, _>>()?;
    Ok((template, found))
}

/// Returns whether the body of a response is no text.
#[must_use]
pub fn is_compressed(headers: &HeaderMap) -> bool {
    let is_none = |coding: &[u8]| coding.is_empty() || coding.eq_ignore_ascii_case(b"identity");
    headers.get_all(header::CONTENT_ENCODING).iter().any(|coding| !is_none(coding.as_bytes()))
}

/// The origin's response with its ESI expanded for the visitor of `visit`; any other response as it is. A response that
/// cannot be expanded is replaced by a failure.
pub async fn expanded(
    visit: &Visit,
    head: &RequestHead,
    mut response: Response,
    directives: &OriginDirectives,
) -> Response {
    if !directives.has_esi {
        return response;
    }
    if head.method == Method::HEAD || matches!(response.status().as_u16(), 204 | 304) {
        response.headers_mut().remove(header::CONTENT_LENGTH);
        return response;
    }
    // Boxed: the futures of all other pages stay small.
    Box::pin(expand(visit, head, response)).await.unwrap_or_else(|error| failure(&visit.app, &error, &head.headers))
}

async fn expand(visit: &Visit, head: &RequestHead, response: Response) -> Result<Response, Error> {
    let refused = |cause: &str| Err(Error::Esi(cause.to_owned()));
    if visit.is_part {
        return refused("a part of a page has ESI of its own");
    }
    if response.status() == StatusCode::PARTIAL_CONTENT {
        return refused("the response is a range of a page");
    }
    let (mut parts, body) = response.into_parts();
    let fetch = async |_: &Url, include: &Include| {
        let fragment = fetch_fragment(&visit.app, head, &include.src, include.alt.as_deref()).await;
        match fragment {
            Err(error) if include.continue_on_error => {
                log::warn!("{error}");
                Ok(Fragment { body: Bytes::new(), cookies: Vec::new(), _permit: None })
            }
            fragment => fragment,
        }
    };
    let url = head.uri.to_string();
    let (template, fragments) = with_fragments(&visit.app, &url, &parts.headers, body, fetch).await?;
    let (page, _) = template.assemble(&fragments, |fragment| &fragment.body);
    parts.headers.remove(header::CONTENT_LENGTH);
    let cookies = fragments.into_iter().flat_map(|fragment| fragment.cookies);
    for cookie in cookies {
        parts.headers.append(header::SET_COOKIE, cookie);
    }
    parts.extensions.insert(Processed::Expanded);
    Ok(Response::from_parts(parts, page.into()))
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, header};

    use super::is_compressed;

    #[test]
    fn identity_is_no_compression_in_any_spelling() {
        for (coding, expected) in
            [("", false), ("identity", false), ("Identity", false), ("gzip", true), ("GZIP", true)]
        {
            let headers = HeaderMap::from_iter([(header::CONTENT_ENCODING, coding.parse().unwrap())]);
            assert_eq!(is_compressed(&headers), expected, "{coding}");
        }
    }
}
