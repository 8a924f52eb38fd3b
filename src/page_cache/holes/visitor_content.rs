//! A visitor's content for holes: elements of one page of the origin, requested with the visitor's cookies.

use std::{collections::HashMap, rc::Rc};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, Uri};

use super::placeholder::LastForm;
use crate::{
    config::{
        HeaderRules, PageConfig,
        rules::{HolePage, HoleRules},
    },
    ports::{
        fetch::Request,
        html::{self, Html, HtmlError},
        sort,
    },
    proxy::{SetCookie, cookie_name, part_request, with_path},
    sessions::cookie,
};

/// The elements of a visitor's page by the selectors of the rules, in their order. The tokens of a form also have an entry with
/// [`key_in_form`].
pub type VisitorContent = HashMap<String, Vec<Bytes>>;

/// The key of tokens in forms with an `action`. No [placeholder](super::placeholder::Placeholder) has a selector with a line break,
/// so the key is that of no selector.
#[must_use]
pub fn key_in_form(selector: &str, action: &str) -> String {
    format!("{selector}\n{action}")
}

/// The reason for which the origin's page fills no hole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotFilled {
    #[error("the page that fills them did not arrive within HOLES_WAIT_MS")]
    Late,
    /// The content has arrived. Its tokens may need the cookie.
    #[error("the page that fills them sets the cookie {0}")]
    Cookie(String, Rc<VisitorContent>),
    #[error("the page that fills them has the status {0}")]
    Status(StatusCode),
    #[error("the page that fills them is not HTML")]
    NotHtml,
    #[error("the page that fills them broke off, or exceeds PAGE_MAX_BYTES")]
    Body,
    #[error("other pages take the isolate's memory")]
    Busy,
    #[error("the page that fills them: {0}")]
    Html(#[from] HtmlError),
}

impl NotFilled {
    /// Returns whether the browser can get the content by a request of its own.
    #[must_use]
    pub const fn is_open_to_browser(&self) -> bool {
        matches!(self, Self::Late | Self::Cookie(..) | Self::Busy)
    }

    /// The content to show until the browser has requested it.
    #[must_use]
    pub fn content(&self) -> Option<&VisitorContent> {
        if let Self::Cookie(_, content) = self { Some(content) } else { None }
    }
}

/// The visitor's request for the page that fills holes. None without such a page.
#[must_use]
pub fn request(config: &PageConfig, uri: &Uri, headers: &HeaderMap) -> Option<Request> {
    let uri = match config.holes.page()? {
        HolePage::Itself => uri.clone(),
        HolePage::Other(path) => with_path(uri, path)?,
    };
    Some(part_request(uri, headers, &config.headers))
}

/// The key of kept content: everything of the request that the origin gets.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VisitorContentKey {
    pub visitor: VisitorKey,
    pub url: String,
}

/// The visitor's part of the key: the headers of a request that its content may depend on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VisitorKey(Vec<u8>);

impl VisitorContentKey {
    /// `request` is from [`request`].
    #[must_use]
    pub fn of(request: &Request) -> Self {
        Self { visitor: VisitorKey::of_request(request), url: request.uri().to_string() }
    }

    /// The size in memory, bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.visitor.0.len() + self.url.len()
    }
}

impl VisitorKey {
    /// The visitor whose request has `headers`.
    #[must_use]
    pub fn of(headers: &HeaderMap, rules: &HeaderRules) -> Self {
        Self::of_request(&part_request(Uri::default(), headers, rules))
    }

    fn of_request(request: &Request) -> Self {
        let headers = request.headers().iter();
        // No value contains a line break.
        let lines = headers.flat_map(|(name, value)| [b"\n", name.as_str().as_bytes(), b":", value.as_bytes()]);
        Self(lines.collect::<Vec<_>>().concat())
    }
}

/// A copy of the content, without the memory of the page that it was cut from.
#[must_use]
pub fn detached(content: &VisitorContent) -> VisitorContent {
    let copy = |elements: &Vec<Bytes>| elements.iter().map(|html| Bytes::copy_from_slice(html)).collect();
    content.iter().map(|(selector, elements)| (selector.clone(), copy(elements))).collect()
}

/// The elements of `html` that the rules fill holes with.
///
/// # Errors
/// [`HtmlError`].
pub async fn read(parser: &dyn Html, rules: &HoleRules, html: &Bytes) -> Result<VisitorContent, HtmlError> {
    let mut selectors: Vec<_> = rules.page_selectors().collect();
    sort::sort_by(&mut selectors, Ord::cmp);
    selectors.dedup();
    let of_rules = selectors.len();
    selectors.extend(rules.has_tokens().then_some(LastForm::SELECTOR));
    let mut last_form = LastForm::default();
    let mut content = VisitorContent::new();
    for element in html::elements(parser, html, &selectors).await? {
        let Some(selector) = selectors.get(element.selector).filter(|_| element.selector < of_rules) else {
            last_form = LastForm::new(element.outer, html);
            continue;
        };
        let form = last_form.action_at(element.outer.start);
        let element = html.slice(element.outer);
        if !form.is_empty() && rules.is_token(selector) {
            content.entry(key_in_form(selector, form)).or_default().push(element.clone());
        }
        content.entry((*selector).to_owned()).or_default().push(element);
    }
    Ok(content)
}

/// The name of a cookie that the response to a request for `path` would change. `lines` are its `Set-Cookie`s. A cookie
/// that repeats the value in the request, or that shared pages do not set either, changes nothing.
#[must_use]
pub fn new_cookie(config: &PageConfig, path: &str, request: &HeaderMap, lines: &[HeaderValue]) -> Option<String> {
    let is_known = |line: &HeaderValue| {
        let cookie = SetCookie::of(line);
        let mut known = cookie::of_origin(request);
        config.cookies.is_dropped(&cookie.name(), path) || known.any(|known| known == cookie.pair())
    };
    lines.iter().find(|line| !is_known(line)).map(cookie_name)
}
