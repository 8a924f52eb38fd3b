//! [`Response`] as the answer to an event.

use http::StatusCode;
use wasm_bindgen::JsValue;

use super::{body, glue, headers};
use crate::fetch::{Body, Response};

/// The platform's response.
///
/// # Errors
/// If the platform refuses the status or a header.
pub fn write(response: Response) -> Result<JsValue, JsValue> {
    let (head, body) = response.into_parts();
    // With these the platform takes no body, not even an empty one.
    let bodiless = [StatusCode::NO_CONTENT, StatusCode::RESET_CONTENT, StatusCode::NOT_MODIFIED].contains(&head.status);
    let body = body::write(if bodiless { Body::Empty } else { body });
    glue::respond(head.status.as_u16(), &headers::write(&head.headers), &body)
}

/// An answer of the status alone, for what can not be answered better.
///
/// # Errors
/// As [`write`].
pub fn bare(status: StatusCode) -> Result<JsValue, JsValue> {
    let mut response = Response::new(format!("{status}\n").into());
    *response.status_mut() = status;
    write(response)
}
