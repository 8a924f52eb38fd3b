//! An event's request as [`Request`].

use http::{Method, Uri};

use super::{
    body,
    glue::{self, Message},
    headers,
};
use crate::ports::fetch::{Body, Request};

/// The request with its absolute URI; None if its method or address is invalid, or if it has too many headers.
pub fn read(from: Message) -> Option<Request> {
    let head = glue::read_request(&from);
    let mut lines = headers::lines(&head);
    let (method, address) = (lines.next()?, lines.next()?);
    let mut request = Request::default();
    *request.method_mut() = Method::from_bytes(method).ok()?;
    *request.uri_mut() = Uri::try_from(address).ok()?;
    *request.headers_mut() = headers::read(lines)?;
    // The body of a GET or HEAD has no meaning (RFC 9110 §9.3.1), and no code reads it.
    let is_read = [Method::GET, Method::HEAD].contains(request.method());
    *request.body_mut() = if is_read { Body::Empty } else { body::of_request(from, request.headers()) };
    Some(request)
}
