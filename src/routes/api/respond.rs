//! JSON responses. Each has `Cache-Control`: without it, a cache in front of edgefront would apply its own rule.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Serialize;

use crate::{
    page_cache::policy::conditional,
    ports::fetch::{Body, Response},
};

pub use crate::ports::header_names::NO_STORE;

/// `Cache-Control` of a shared response that caches revalidate each time; its `ETag` makes that cheap.
pub const REVALIDATE: &str = "no-cache";
/// `Cache-Control` of a shared response that may be a few seconds old.
pub const SHARED_10_SECONDS: &str = "public, max-age=10";

/// A 200 with `document` as JSON and `cache_control`.
pub fn json(cache_control: &'static str, document: &impl Serialize) -> Response {
    // It cannot fail: all keys of the API's documents are strings.
    json_bytes(cache_control, serde_json::to_vec(document).unwrap_or_default().into())
}

/// As [`json`], for a document that is serialized already.
pub fn json_bytes(cache_control: &'static str, document: Bytes) -> Response {
    let mut response = Response::new(Body::from(document));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache_control));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// A response without a body.
pub fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(NO_STORE));
    response
}

/// Adds an `ETag`, a hash of the body.
pub fn with_etag(mut response: Response) -> Response {
    if let Body::Bytes(body) = response.body()
        && let Some(tag) = conditional::etag(body)
    {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

/// Turns a response with an `ETag` into a 304 if the `request_headers` show that the client has this body.
pub fn not_modified_if_known(request_headers: &HeaderMap, mut response: Response) -> Response {
    if conditional::is_not_modified(request_headers, response.headers()) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = Body::Empty;
        response.headers_mut().remove(header::CONTENT_TYPE);
    }
    response
}
