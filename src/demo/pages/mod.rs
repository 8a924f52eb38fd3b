//! Responses and public pages. A page that the edge may cache is the same for every visitor: it contains no name and
//! sets no cookie.
//!
//! - `frame`: head, header and footer. `home`, `listing`, `product`: the pages of the catalogue.
//! - `discovery`: files for search engines.

mod discovery;
mod frame;
mod home;
mod listing;
mod product;

use askama::Template;
use http::{
    HeaderName, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, RETRY_AFTER},
};
use serde_json::json;

pub(super) use self::{
    discovery::{robots, sitemap},
    frame::{Frame, PageFooter},
    home::home,
    listing::{category, search},
    product::{product, product_with_problem},
};
use super::catalogue::ProductCard;
use crate::ports::{
    error::Error,
    fetch::{Body, Response},
};

const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
pub(super) const EDGE_TAGS: HeaderName = HeaderName::from_static("edge-tags");

#[derive(Template)]
#[template(path = "message.html")]
struct MessagePage<'a> {
    frame: Frame<'a>,
    title: &'a str,
    text: &'a str,
}

/// `{"products": [card]}`: product data for scripts, which know only ids. Browsers may keep it for 30 s.
pub(super) fn cards(cards: &[ProductCard]) -> Response {
    let mut response = Response::new(Body::from(json!({ "products": cards }).to_string()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, max-age=30"));
    response
}

pub(super) fn not_found() -> Response {
    let text = "We could not find this page. Please check the address, or continue shopping.";
    message(StatusCode::NOT_FOUND, "Page not found", text)
}

/// 503 for a failed database, or while Redis is down.
pub(super) fn unavailable() -> Response {
    let text = "We could not load this page. Please try again in a moment.";
    let mut response = message(StatusCode::SERVICE_UNAVAILABLE, "Temporarily unavailable", text);
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    response
}

/// A page with one message.
pub(super) fn message(status: StatusCode, title: &str, text: &str) -> Response {
    html_response(status, Ok(message_text(title, text))).unwrap_or_default()
}

/// The text of a page with one message; only the message if the template fails.
pub(super) fn message_text(title: &str, text: &str) -> String {
    let frame = Frame { title: title.into(), ..Frame::default() };
    MessagePage { frame, title, text }.render().unwrap_or_else(|_| text.to_owned())
}

/// 303 after a form, so that a reload does not send the form again. `path` is a path of this shop.
pub(super) fn see_other(path: &str) -> Response {
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = StatusCode::SEE_OTHER;
    let headers = response.headers_mut();
    headers.extend(HeaderValue::try_from(path).map(|path| (LOCATION, path)));
    headers.insert(CACHE_CONTROL, NO_STORE);
    response
}

/// A 503 has `Retry-After`.
///
/// # Errors
/// [`Error::Platform`] if the template fails.
pub(super) fn html(status: StatusCode, page: &impl Template) -> Result<Response, Error> {
    html_response(status, page.render())
}

/// The part of [`html`] that does not depend on the template, so that it is compiled once.
fn html_response(status: StatusCode, page: askama::Result<String>) -> Result<Response, Error> {
    let text = page.map_err(|error| Error::Platform(format!("a template failed: {error}")))?;
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
    }
    Ok(response)
}

/// Marks a personal page as uncacheable.
pub(super) fn private(page: Result<Response, Error>) -> Result<Response, Error> {
    page.map(|mut response| {
        response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
        response
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::catalogue::{Category, test_card};

    pub(super) fn text(response: Response) -> String {
        match response.into_body() {
            Body::Bytes(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            other => panic!("no page: {other:?}"),
        }
    }

    #[test]
    fn no_page_contains_an_inline_script_or_style() {
        let category = Category {
            id: "a".into(),
            name: "A".into(),
            blurb: "B".into(),
            products: 60,
            picture: "mug".into(),
            tone: "sage".into(),
        };
        let pages = [
            home("https://shop.example", &[category], &[test_card(1400, 900, 0)], &[]),
            Ok(product::tests::mug_page(&test_card(1, 1, 1), vec![])),
            Ok(not_found()),
            Ok(unavailable()),
        ];
        for page in pages {
            let page = text(page.unwrap());
            assert!(!page.contains("<style") && !page.contains(" style=") && !page.contains(" onclick"), "{page}");
            let data = page.matches("<script type=\"application/ld+json\">").count();
            assert_eq!(
                page.matches("<script").count(),
                page.matches("<script src=\"/_edge/assets/").count() + data,
                "{page}"
            );
            assert_eq!(page.matches("<h1").count(), 1, "{page}");
        }
    }
}
