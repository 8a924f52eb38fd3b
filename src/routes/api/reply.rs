//! Answers in JSON. Every one carries Cache-Control: a cache in front of us would otherwise make up its own rule.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Serialize;

use crate::{
    page_cache::policy::conditional,
    ports::fetch::{Body, Response},
};

/// Somebody's own, or a service's: kept nowhere.
pub const PERSONAL: &str = "private, no-store";
/// For all, and asked for again each time; the `ETag` makes that cheap.
pub const ASK_AGAIN: &str = "no-cache";

/// A JSON answer with status 200. `cache` is its Cache-Control.
pub fn json(cache: &'static str, document: &impl Serialize) -> Response {
    // It cannot fail: no document of ours has keys that are no text.
    bytes(cache, serde_json::to_vec(document).unwrap_or_default().into())
}

/// Like [`json`], of a document that is written already.
pub fn bytes(cache: &'static str, document: Bytes) -> Response {
    let mut response = Response::new(Body::from(document));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// An answer that needs no words.
pub fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(PERSONAL));
    response
}

/// Gives a response an `ETag` made from its bytes.
pub fn tagged(mut response: Response) -> Response {
    if let Body::Bytes(body) = response.body()
        && let Some(tag) = conditional::etag(body)
    {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

/// Turns a tagged response into a 304 if the client that `asked` has its bytes already.
pub fn unless_known(asked: &HeaderMap, mut response: Response) -> Response {
    if conditional::is_not_modified(asked, response.headers()) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = Body::Empty;
        response.headers_mut().remove(header::CONTENT_TYPE);
    }
    response
}
