//! Converts a [`Response`] to the platform's.

use http::{HeaderMap, StatusCode};
use wasm_bindgen::JsValue;

use super::{body, glue, headers};
use crate::ports::fetch::{Body, PreparedBody, Response};

/// The platform's response.
///
/// # Errors
/// If the platform refuses the status or a header.
pub fn write(response: Response) -> Result<JsValue, JsValue> {
    let (head, mut body) = response.into_parts();
    if let Body::Prepared(kept) = &body {
        return write_kept(head.status, &head.headers, kept);
    }
    if head.status == StatusCode::SWITCHING_PROTOCOLS {
        let opened = body::websocket(&mut body).ok_or(JsValue::UNDEFINED)?;
        return glue::respond_websocket(opened, &headers::write(&head.headers));
    }
    // With these statuses the platform refuses a body, even an empty one.
    let bodiless = [StatusCode::NO_CONTENT, StatusCode::RESET_CONTENT, StatusCode::NOT_MODIFIED].contains(&head.status);
    let body = body::write(if bodiless { Body::Empty } else { body });
    glue::respond(head.status.as_u16(), &headers::write(&head.headers), &body)
}

/// Reuses the platform's form of `kept`, made at its first use, and adds the response's own headers.
fn write_kept(status: StatusCode, headers: &HeaderMap, kept: &PreparedBody) -> Result<JsValue, JsValue> {
    let made = kept.made(|| Box::new(glue::keep(&headers::write(&kept.headers), &body::platform_form(&kept.content))));
    let made = made.downcast_ref::<JsValue>().ok_or(JsValue::UNDEFINED)?;
    glue::respond_kept(status.as_u16(), made, &headers::write(headers))
}

/// A response that contains only its status, for a request that fails.
pub fn bare(status: StatusCode) -> JsValue {
    let mut response = Response::new(format!("{status}\n").into());
    *response.status_mut() = status;
    // Never fails: the platform refuses none of its parts.
    write(response).unwrap_or_else(|refused| refused)
}
