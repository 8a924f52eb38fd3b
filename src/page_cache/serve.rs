//! A stored page as an answer to one visitor.

use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::{cache_status::CacheStatus, conditional, entry::Entry};
use crate::{
    fetch::{Body, Response},
    time::Timestamp,
};

/// The page, or 304 for the visitor who has it already. `status` says where it comes from.
#[must_use]
pub fn serve(entry: &Entry, request: &HeaderMap, status: CacheStatus, now: Timestamp) -> Response {
    let mut headers = entry.headers.clone();
    let mut response = if conditional::is_not_modified(request, &headers) {
        for name in conditional::OF_THE_BODY {
            headers.remove(name);
        }
        let mut response = Response::new(Body::Empty);
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(entry.body.len()));
        let mut response = Response::new(entry.body.clone().into());
        *response.status_mut() = entry.status;
        response
    };
    let age = entry.age(now);
    // An answer with `Age` was not made for this request (RFC 9111 §5.1).
    if age > 0 || matches!(status, CacheStatus::Hit { .. }) {
        headers.insert(header::AGE, HeaderValue::from(age));
    }
    *response.headers_mut() = headers;
    status.append_to(&mut response);
    response
}
