//! Responses from a stored page: 200, 206, 304 or 416.

use std::rc::Rc;

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use super::{
    cache_status::CacheStatus,
    policy::{
        conditional,
        range::{self, Part},
    },
    stored_page::StoredPage,
};
use crate::ports::{
    fetch::{Body, PreparedBody, Response},
    header_names::{append_text, remove_all},
    time::Timestamp,
};

/// The complete response with a prepared body: the platform's form of body and headers is reused.
#[must_use]
pub fn respond_prepared(
    page: &StoredPage,
    prepared: Rc<PreparedBody>,
    status: CacheStatus,
    now: Timestamp,
) -> Response {
    let mut response = Response::new(Body::Prepared(prepared));
    *response.status_mut() = page.status;
    response.headers_mut().insert(header::AGE, HeaderValue::from(page.age(now)));
    status.append_to(&mut response);
    response
}

/// Returns whether a request is a GET without a condition or a range.
#[must_use]
pub fn is_unconditional_get(method: &Method, request: &HeaderMap) -> bool {
    let limits = [header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE, header::RANGE];
    method == Method::GET && !limits.iter().any(|name| request.contains_key(name))
}

/// The response to a request of `method` with the headers `request`.
#[must_use]
pub fn respond(
    page: &StoredPage,
    method: &Method,
    request: &HeaderMap,
    status: CacheStatus,
    now: Timestamp,
) -> Response {
    let mut headers = page.visible_headers();
    // Conditions and ranges apply to a plain 200 only (RFC 9110 §13.2.1, §14.2).
    let is_plain = page.status == StatusCode::OK;
    let (code, body) = if is_plain && conditional::is_not_modified(request, &headers) {
        remove_all(&mut headers, &conditional::BODY_HEADERS);
        (StatusCode::NOT_MODIFIED, Body::Empty)
    } else {
        let accepts_range = is_plain && method == Method::GET && !headers.contains_key(header::CONTENT_RANGE);
        let length = page.body.len();
        match if accepts_range { range::part(request, &headers, length) } else { Part::Whole } {
            Part::Whole => {
                if code_has_body(page.status) {
                    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
                }
                (page.status, page.body.clone().into())
            }
            Part::Bytes { start, end } => {
                append_text(&mut headers, header::CONTENT_RANGE, format!("bytes {start}-{}/{length}", end - 1));
                headers.insert(header::CONTENT_LENGTH, HeaderValue::from(end - start));
                (StatusCode::PARTIAL_CONTENT, page.body.read().slice(start..end).into())
            }
            Part::Unsatisfiable => {
                remove_all(&mut headers, &conditional::BODY_HEADERS);
                append_text(&mut headers, header::CONTENT_RANGE, format!("bytes */{length}"));
                (StatusCode::RANGE_NOT_SATISFIABLE, Body::Empty)
            }
        }
    };
    if code != page.status {
        remove_all(&mut headers, &conditional::OF_CONTENT);
    }
    let age = page.age(now);
    // `Age` implies that the response was not made for this request (RFC 9111 §5.1).
    if age > 0 || status.is_hit() {
        headers.insert(header::AGE, HeaderValue::from(age));
    }
    let mut response = Response::new(body);
    *response.status_mut() = code;
    *response.headers_mut() = headers;
    status.append_to(&mut response);
    response
}

const fn code_has_body(status: StatusCode) -> bool {
    !matches!(status.as_u16(), 204 | 205 | 304)
}
