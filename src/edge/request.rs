//! An event's request as [`Request`].

use http::{Method, Uri};
use worker::web_sys;

use super::{body, headers};
use crate::fetch::Request;

/// The request with its absolute URI; None if its method or address can not be one.
pub fn read(from: &web_sys::Request) -> Option<Request> {
    let mut request = Request::new(body::read(from.body()));
    *request.method_mut() = Method::from_bytes(from.method().as_bytes()).ok()?;
    *request.uri_mut() = Uri::try_from(from.url()).ok()?;
    *request.headers_mut() = headers::read(&from.headers());
    Some(request)
}
