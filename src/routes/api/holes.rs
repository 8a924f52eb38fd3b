//! `/holes`: the visitor's own content of pages with holes, for `assets/holes.js`.

use std::collections::HashMap;

use http::header;

use super::{request::ApiRequest, respond};
use crate::{
    page_cache::visitor_content_for_browser,
    ports::{answer::Answer, error::Error, fetch::FetchError},
    proxy::{is_same_origin, with_path},
    routes::problem::Problem,
};

/// `?page=/path` → `{selector: [html]}`: the elements that fill the holes of a page. The cookies of the page that has
/// them come with it.
///
/// Refuses a request of another site. The origin gets neither `Sec-Fetch-Site` nor `Origin`, so it cannot refuse such a request.
pub async fn show(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    if is_same_origin(request.uri(), request.headers()) == Some(false) {
        return Err(Problem::CrossOrigin);
    }
    let page =
        request.query_parameter("page")?.ok_or_else(|| Error::invalid("page", "is missing: name the page's path"))?;
    let uri = page.starts_with('/').then(|| with_path(request.uri(), &page)).flatten();
    let uri = uri.ok_or_else(|| Error::invalid("page", "is not a path: it begins with /"))?;
    let found = visitor_content_for_browser(request.app, &uri, request.headers()).await;
    let (content, cookies) = found.map_err(|problem| {
        log::warn!("holes: {problem}");
        Error::from(FetchError::Unreachable)
    })?;
    let mut texts: HashMap<&str, Vec<&str>> = HashMap::new();
    for (selector, elements) in &content {
        // JSON is UTF-8. Elements in another encoding stay as the page shows them.
        if let Ok(elements) = elements.iter().map(|html| std::str::from_utf8(html)).collect() {
            texts.insert(selector, elements);
        }
    }
    let mut response = respond::json(respond::NO_STORE, &texts);
    for cookie in cookies {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response.into())
}
