//! An event's request as [`Request`].

use http::{HeaderMap, Method, Uri, header};
use worker::web_sys;

use super::{body, glue, headers};
use crate::fetch::{Body, Request, content_length};

/// The request with its absolute URI; None if its method or address can not be one.
pub fn read(from: &web_sys::Request) -> Option<Request> {
    let head = glue::read_request(from);
    let mut lines = head.split('\n');
    let (method, address) = (lines.next()?, lines.next()?);
    let mut request = Request::default();
    *request.method_mut() = Method::from_bytes(method.as_bytes()).ok()?;
    *request.uri_mut() = Uri::try_from(address).ok()?;
    *request.headers_mut() = headers::read(lines);
    // What these two carry means nothing (RFC 9110 §9.3.1), and nobody reads it.
    let is_read = [Method::GET, Method::HEAD].contains(request.method());
    *request.body_mut() = if is_read { Body::Empty } else { body::read(from.body(), length(request.headers())) };
    Some(request)
}

/// What ends a request's body, where nothing else does (RFC 9112 §6.3): the platform reads no byte beyond it.
fn length(headers: &HeaderMap) -> Option<usize> {
    content_length(headers).filter(|_| !headers.contains_key(header::TRANSFER_ENCODING))
}
