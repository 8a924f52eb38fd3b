//! A stored page as an answer to one visitor: the whole, a part, or only that they have it already.

use std::rc::Rc;

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use super::{
    cache_status::CacheStatus,
    conditional,
    entry::Entry,
    range::{self, Part},
};
use crate::ports::{
    fetch::{Body, PreparedBody, Response},
    time::Timestamp,
};

/// All of a page for a request that wants it whole, without a condition: what it has for everybody stays where it is kept.
#[must_use]
pub fn serve_kept(entry: &Entry, kept: Rc<PreparedBody>, status: CacheStatus, now: Timestamp) -> Response {
    let mut response = Response::new(Body::Prepared(kept));
    *response.status_mut() = entry.status;
    response.headers_mut().insert(header::AGE, HeaderValue::from(entry.age(now)));
    status.append_to(&mut response);
    response
}

/// Whether a request is a GET for all of a page, whatever its visitor has of it.
#[must_use]
pub fn is_for_all(method: &Method, request: &HeaderMap) -> bool {
    let asks_less = [header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE, header::RANGE];
    method == Method::GET && !asks_less.iter().any(|name| request.contains_key(name))
}

/// The page for a request of `method` with the headers `request`. `status` says where it comes from.
#[must_use]
pub fn serve(entry: &Entry, method: &Method, request: &HeaderMap, status: CacheStatus, now: Timestamp) -> Response {
    let mut headers = entry.headers.clone();
    // Conditions and ranges are about what a plain 200 is the whole of (RFC 9110 §13.2.1, §14.2).
    let is_plain = entry.status == StatusCode::OK;
    let (code, body) = if is_plain && conditional::is_not_modified(request, &headers) {
        for name in conditional::OF_THE_BODY {
            headers.remove(name);
        }
        (StatusCode::NOT_MODIFIED, Body::Empty)
    } else {
        let takes_parts = is_plain && method == Method::GET && !headers.contains_key(header::CONTENT_RANGE);
        let length = entry.body.len();
        match if takes_parts { range::part(request, &headers, length) } else { Part::Whole } {
            Part::Whole => {
                if code_has_body(entry.status) {
                    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
                }
                (entry.status, entry.body.clone().into())
            }
            Part::Bytes { start, end } => {
                say_range(&mut headers, &format!("bytes {start}-{}/{length}", end - 1));
                headers.insert(header::CONTENT_LENGTH, HeaderValue::from(end - start));
                (StatusCode::PARTIAL_CONTENT, entry.body.slice(start..end).into())
            }
            Part::Nothing => {
                for name in conditional::OF_THE_BODY {
                    headers.remove(name);
                }
                say_range(&mut headers, &format!("bytes */{length}"));
                (StatusCode::RANGE_NOT_SATISFIABLE, Body::Empty)
            }
        }
    };
    let age = entry.age(now);
    // An answer with `Age` was not made for this request (RFC 9111 §5.1).
    if age > 0 || status.is_hit() {
        headers.insert(header::AGE, HeaderValue::from(age));
    }
    let mut response = Response::new(body);
    *response.status_mut() = code;
    *response.headers_mut() = headers;
    status.append_to(&mut response);
    response
}

fn say_range(headers: &mut HeaderMap, text: &str) {
    // Digits and ASCII words: always a header value.
    headers.extend(HeaderValue::try_from(text).ok().map(|value| (header::CONTENT_RANGE, value)));
}

const fn code_has_body(status: StatusCode) -> bool {
    !matches!(status.as_u16(), 204 | 205 | 304)
}
