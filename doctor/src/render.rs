//! A page as edgefront would render it for everybody. The code of the Worker sends the request and judges the response.

use std::rc::Rc;

use bytes::Bytes;
use edgefront::{
    App,
    page_cache::{
        PageKey, Reason, RenderRequest, SelectingHeaders, StoredPage, UnstorableResponse,
        admission::popularity_of_page, header_lines, holes, render::WholeRender,
    },
    ports::{error::Error, fetch::Collected, html::LolHtml},
    proxy::{cookie_name, esi, set_cookie_pair},
};
use http::{HeaderMap, HeaderName, StatusCode, header};
use url::Url;

use super::{
    settings::Settings,
    shop::{Shop, SystemClock, is_trouble},
    visitor::name_in_rules,
};
use xtask::failure::Failure;

/// A response to a request that names no visitor, judged by edgefront.
pub struct SharedRender {
    pub status: StatusCode,
    /// Without the cookies that the rules drop, if the page is stored.
    pub headers: HeaderMap,
    pub body: Bytes,
    /// The page that edgefront stores, or why it stores none.
    pub stored: Result<Box<StoredPage>, NotStored>,
    /// The stored page is never fresh: each visit asks the shop if the page is still valid.
    is_never_fresh: bool,
}

/// The reason why edgefront does not store a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotStored {
    pub reason: Reason,
    /// The part of the response that gives the reason, such as `set-cookie: csrftoken`. Empty without one.
    pub cause: String,
}

/// edgefront with these settings, in front of the shop. It has no Redis: nothing is stored.
///
/// # Errors
/// When a setting is wrong.
pub fn edgefront(settings: &Settings, shop: &Rc<Shop>) -> Result<Rc<App>, Failure> {
    Ok(Rc::new(App::new(settings.config()?, shop.clone(), Rc::new(SystemClock), Rc::new(LolHtml), None)))
}

/// Renders a page for everybody. Each item counts as popular. None if the shop does not answer, or is in trouble.
pub async fn for_everybody(app: &App, key: &PageKey) -> Option<SharedRender> {
    variant(app, key, &SelectingHeaders::default()).await
}

/// Renders the variant of a page that these headers and varied cookies select, as [`for_everybody`].
pub async fn variant(app: &App, key: &PageKey, selecting: &SelectingHeaders) -> Option<SharedRender> {
    let popularity = popularity_of_page(&app.config.page, key, Some(0));
    let request = RenderRequest::in_background(key, selecting, popularity, None);
    let outcome = match edgefront::page_cache::render::render_whole(app, &request).await {
        Ok(outcome) => outcome,
        // No visitor gets the page, whatever its status is.
        Err(Error::Esi(cause)) => {
            return Some(not_stored(StatusCode::OK, HeaderMap::new(), Bytes::new(), Reason::Esi, cause));
        }
        Err(_) => return None,
    };
    let render = match outcome {
        WholeRender::Complete { page, .. } => of_page(app, page, key),
        WholeRender::NotStorable(UnstorableResponse { response, why, .. }) => {
            let (head, body) = response.into_parts();
            let body = match body.collect(usize::MAX).await {
                Ok(Collected::Whole(body)) => body,
                _ => Bytes::new(),
            };
            not_stored(head.status, head.headers, body, why.reason, why.cause)
        }
    };
    (!is_trouble(render.status)).then_some(render)
}

/// A page with ESI without the fragments of its includes. A page that edgefront refuses stays as it is.
pub fn without_fragments(app: &App, key: &PageKey, body: Bytes) -> Bytes {
    let Ok(url) = Url::parse(key.url()) else { return body };
    let template = esi::scan(&body, &url, app.config.origin.url.as_ref());
    template.map_or(body, |template| template.assemble(&[], |fragment: &Bytes| fragment).0)
}

/// Only the canonical spelling of an address is stored.
fn of_page(app: &App, page: Box<StoredPage>, key: &PageKey) -> SharedRender {
    let (status, headers, body) = (page.status, page.headers.clone(), page.body.read());
    if !key.is_exact() {
        return not_stored(status, headers, body, Reason::Spelling, format!("the canonical address is {}", key.url()));
    }
    let is_never_fresh = page.stale_until <= app.clock.now();
    SharedRender { status, headers, body, stored: Ok(page), is_never_fresh }
}

fn not_stored(status: StatusCode, headers: HeaderMap, body: Bytes, reason: Reason, cause: String) -> SharedRender {
    SharedRender { status, headers, body, stored: Err(NotStored { reason, cause }), is_never_fresh: false }
}

/// The page without the holes of the rules, which edgefront fills for each visitor.
pub async fn without_holes(app: &App, key: &PageKey, body: Bytes) -> Bytes {
    let rules: Vec<_> = app.config.page.holes.of_path(key.path()).collect();
    let found = holes::find(&*app.html, &rules, key.path_and_query(), &body).await.unwrap_or_default();
    // The stored page has scripts for tokens, and they belong to the holes.
    let (body, holes) = found.into_page(body, Vec::new());
    let mut kept = Vec::with_capacity(body.len());
    let mut end = 0;
    for hole in holes {
        kept.extend_from_slice(body.get(end..hole.range.start).unwrap_or_default());
        end = hole.range.end;
    }
    kept.extend_from_slice(body.get(end..).unwrap_or_default());
    kept.into()
}

impl SharedRender {
    /// Why no stored page answers a visitor.
    ///
    /// # Errors
    /// The reason.
    pub fn verdict(&self) -> Result<(), NotStored> {
        self.stored.as_ref().map_err(NotStored::clone)?;
        let cause = "each visit asks the shop if the stored page is still valid";
        let why = || NotStored { reason: Reason::NotFresh, cause: cause.to_owned() };
        if self.is_never_fresh { Err(why()) } else { Ok(()) }
    }

    /// The body as text.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }
}

/// The names of the cookies that a response sets, as [`name_in_rules`].
pub fn set_cookies(headers: &HeaderMap) -> Vec<String> {
    headers.get_all(header::SET_COOKIE).iter().map(|line| name_in_rules(&cookie_name(line))).collect()
}

/// Name and value of each cookie that a response sets.
pub fn set_cookie_pairs(headers: &HeaderMap) -> Vec<(String, String)> {
    headers.get_all(header::SET_COOKIE).iter().filter_map(set_cookie_pair).collect()
}

/// The headers that decide on storing, as far as a response has them: `cache-control: …`.
pub fn deciding_headers(headers: &HeaderMap) -> Vec<String> {
    let names = [HeaderName::from_static("cdn-cache-control"), header::CACHE_CONTROL, header::EXPIRES, header::VARY];
    names.iter().filter_map(|name| header_lines(headers, name)).collect()
}
