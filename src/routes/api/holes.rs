//! `/holes`: the visitor's own content of pages with holes, for `assets/holes.js`.

use std::collections::HashMap;

use http::header;

use super::{request::ApiRequest, respond};
use crate::{
    page_cache::own_content_for_browser,
    ports::{answer::Answer, error::Error, fetch::FetchError},
    routes::problem::Problem,
};

/// `{selector: [html]}`: the elements of the page that fills holes. The cookies of that page come with it.
pub async fn show(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let found = own_content_for_browser(request.app, request.uri(), request.headers()).await;
    let (content, cookies) = found.map_err(|problem| {
        log::warn!("holes: {problem}");
        Error::from(FetchError::Unreachable)
    })?;
    let content: HashMap<_, Vec<_>> = content
        .iter()
        .map(|(selector, elements)| (selector, elements.iter().map(|html| String::from_utf8_lossy(html)).collect()))
        .collect();
    let mut response = respond::json(respond::NO_STORE, &content);
    for cookie in cookies {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response.into())
}
