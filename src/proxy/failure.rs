//! The response if the origin fails or a directive cannot be executed.

use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::esi::Processed;
use crate::{
    App,
    ports::{error::Error, fetch::Response, problem},
};

/// A page for a browser, a problem document (RFC 9457) for other clients.
#[must_use]
pub fn failure(app: &App, error: &Error, request: &HeaderMap) -> Response {
    let mut response = problem::respond(error, "storefront");
    if let Error::Esi(_) = error {
        response.extensions_mut().insert(Processed::Refused);
    }
    let accepts = request.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    if accepts.contains("text/html") {
        let page = if response.status() == StatusCode::TOO_MANY_REQUESTS {
            page(app, "Too many attempts", "Please wait a minute and try again.")
        } else if response.status().is_client_error() {
            page(app, "Request not possible", &format!("Sorry: {error}."))
        } else {
            page(app, "Shop unavailable", "The shop does not respond right now. Please try again in a moment.")
        };
        *response.body_mut() = page.into();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        // The policy of a problem document would block the styles of the demo shop's page.
        #[cfg(feature = "demo")]
        if app.config.origin.url.is_none() {
            response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, crate::demo::CONTENT_POLICY);
        }
    }
    response
}

/// The demo shop shows its own header and footer around the message.
#[cfg_attr(not(feature = "demo"), expect(unused_variables, reason = "only the demo shop has pages"))]
fn page(app: &App, title: &str, text: &str) -> String {
    #[cfg(feature = "demo")]
    if app.config.origin.url.is_none() {
        return crate::demo::failure_page(title, text);
    }
    // The text quotes nothing from the request; escaping keeps it text.
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title><h1>{title}</h1><p>{text}</p></html>\n"
    )
}
