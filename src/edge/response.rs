//! [`Response`] as the answer to an event.

use http::StatusCode;
use wasm_bindgen::JsCast;
use worker::web_sys::{self, ResponseInit};

use super::{body, headers};
use crate::fetch::{Body, Response};

/// The platform's response.
///
/// # Errors
/// If the platform refuses the status or a header.
pub fn write(response: Response) -> worker::Result<web_sys::Response> {
    let (head, body) = response.into_parts();
    let init = ResponseInit::new();
    init.set_status(head.status.as_u16());
    init.set_headers_headers(&headers::write(&head.headers)?);
    // With these the platform takes no body, not even an empty one.
    let bodiless = [StatusCode::NO_CONTENT, StatusCode::RESET_CONTENT, StatusCode::NOT_MODIFIED].contains(&head.status);
    let body = body::write(if bodiless { Body::Empty } else { body });
    // The constructor takes any body; the bindings name a type for each, and this one passes it as it is.
    Ok(web_sys::Response::new_with_opt_readable_stream_and_init(Some(body.unchecked_ref()), &init)?)
}

/// For a request that can not be read.
///
/// # Errors
/// As [`write`].
pub fn bad_request() -> worker::Result<web_sys::Response> {
    let mut response = Response::new("the request can not be read\n".into());
    *response.status_mut() = StatusCode::BAD_REQUEST;
    write(response)
}
