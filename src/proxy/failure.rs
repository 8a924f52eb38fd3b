//! The response if the origin fails or a directive cannot be executed.

use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::esi::Processed;
use crate::{
    App,
    ports::{error::Error, fetch::Response, html::escaped, problem},
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
        let (title, text) = if response.status() == StatusCode::TOO_MANY_REQUESTS {
            ("Too many attempts", "Please wait a minute and try again.".to_owned())
        } else if response.status().is_client_error() {
            ("Request not possible", format!("Sorry: {error}."))
        } else {
            ("Shop unavailable", "The shop does not respond right now. Please try again in a moment.".to_owned())
        };
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        show(app, &mut response, title, &text);
    }
    response
}

/// Replaces the problem document by a page. The demo shop shows its own header and footer around the message.
#[cfg_attr(not(feature = "demo"), expect(unused_variables, reason = "only the demo shop has pages"))]
fn show(app: &App, response: &mut Response, title: &str, text: &str) {
    #[cfg(feature = "demo")]
    if app.config.origin.url.is_none() {
        *response.body_mut() = crate::demo::failure_page(title, text).into();
        // The policy of a problem document would block the styles of this page.
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, crate::demo::CONTENT_POLICY);
        return;
    }
    // The text quotes nothing from the request; escaping keeps it text.
    let text = escaped(text);
    let page = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title><h1>{title}</h1><p>{text}</p></html>\n"
    );
    *response.body_mut() = page.into();
}
