//! The response if the origin fails or a directive cannot be executed.

use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::esi::Processed;
use crate::ports::{error::Error, fetch::Response, problem};

/// A page for a browser, a problem document (RFC 9457) for other clients.
#[must_use]
pub fn failure(error: &Error, request: &HeaderMap) -> Response {
    // The text quotes nothing from the request; escaping keeps it text.
    let text = error.to_string().replace('&', "&amp;").replace('<', "&lt;");
    let mut response = problem::respond(error, "storefront");
    if let Error::Esi(_) = error {
        response.extensions_mut().insert(Processed::Refused);
    }
    let accepts = request.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    if accepts.contains("text/html") {
        let page = if response.status() == StatusCode::TOO_MANY_REQUESTS {
            page("Too many attempts", "Please wait a minute and try again.")
        } else if response.status().is_client_error() {
            page("Request not possible", &format!("Sorry: {text}."))
        } else {
            page("Shop unavailable", "The shop does not respond right now. Please try again in a moment.")
        };
        *response.body_mut() = page.into();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    }
    response
}

fn page(title: &str, text: &str) -> String {
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title><h1>{title}</h1><p>{text}</p></html>\n"
    )
}
