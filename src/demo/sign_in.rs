//! Signing in and out, as any origin does it: it answers with `Edge-Login` or `Edge-Logout`, and the edge does the rest.
//! The demo believes every name; no form of another site signs anybody in or out.

use http::{
    HeaderName, HeaderValue, StatusCode, Uri,
    header::{CACHE_CONTROL, LOCATION, ORIGIN},
    request::Parts,
};
use url::form_urlencoded;

use super::pages;
use crate::{
    error::Error,
    fetch::{Body, Collected, Response},
    ids::UserId,
};

const EDGE_USER: &str = "edge-user";
const EDGE_LOGIN: HeaderName = HeaderName::from_static("edge-login");
const EDGE_LOGOUT: HeaderName = HeaderName::from_static("edge-logout");

/// A name of 128 bytes, each percent-encoded, and the field's own.
const MAX_FORM: usize = 512;

/// Who asks, as the edge says. The edge drops what a client says of itself.
pub(super) fn user(head: &Parts) -> Option<&str> {
    head.headers.get(EDGE_USER)?.to_str().ok()
}

pub(super) async fn log_in(head: &Parts, body: Body) -> Result<Response, Error> {
    if is_cross_site(head) {
        return Ok(refused());
    }
    let Ok(Collected::Whole(form)) = body.collect(MAX_FORM).await else {
        return pages::login(StatusCode::PAYLOAD_TOO_LARGE, None, "", Some("This is too long for a name."));
    };
    let field = form_urlencoded::parse(&form).find(|(name, _)| name == "user").map(|(_, value)| value);
    let typed = field.as_deref().unwrap_or_default().trim();
    let known = UserId::parse(typed).ok().and_then(|user| HeaderValue::try_from(user.as_str()).ok());
    if let Some(user) = known {
        return Ok(see_home(EDGE_LOGIN, user));
    }
    let problem = "A name has 1 to 128 letters, digits and signs, without spaces, commas, quotes and braces.";
    pages::login(StatusCode::UNPROCESSABLE_ENTITY, None, typed, Some(problem))
}

pub(super) fn log_out(head: &Parts) -> Response {
    if is_cross_site(head) { refused() } else { see_home(EDGE_LOGOUT, HeaderValue::from_static("1")) }
}

/// 303, so that reloading what follows sends no form again.
fn see_home(name: HeaderName, value: HeaderValue) -> Response {
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = StatusCode::SEE_OTHER;
    let headers = response.headers_mut();
    headers.insert(LOCATION, HeaderValue::from_static("/"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(name, value);
    response
}

/// Whether a browser says that another site sent this. Every browser of today sends `Sec-Fetch-Site`, older ones `Origin`;
/// what sends neither is no browser, and carries nobody's cookies against their will.
fn is_cross_site(head: &Parts) -> bool {
    let text = |name: &str| head.headers.get(name).map(|value| value.to_str().unwrap_or_default());
    match (text("sec-fetch-site"), text(ORIGIN.as_str())) {
        (Some(site), _) => !matches!(site, "same-origin" | "none"),
        (None, Some(origin)) => {
            let origin = origin.parse::<Uri>().unwrap_or_default();
            origin.authority().is_none() || origin.authority() != head.uri.authority()
        }
        (None, None) => false,
    }
}

fn refused() -> Response {
    pages::message(StatusCode::FORBIDDEN, "Not from there", "This form was sent by another site.")
}
