//! `/_edge/`: the operator's dashboard. The page is the same for everybody and holds no secret: its script reads the
//! API with the service key. So the page works in front of any origin, and without Redis.

use askama::Template;
use http::{
    HeaderName, HeaderValue, Method, StatusCode,
    header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS},
};

use super::problem::Problem;
use crate::ports::{
    assets::{Asset, ICON, asset},
    error::Error,
    fetch::{Body, Response},
};

/// The page's path. The same path without the trailing slash redirects here.
pub const PATH: &str = "/_edge/";

const STYLE: Asset = asset!(
    "dashboard.css",
    "dashboard/frame.css",
    "dashboard/charts.css",
    "dashboard/panels.css",
    "dashboard/actions.css",
    "../package-lock.json",
);
const SCRIPT: Asset = asset!(
    "dashboard.js",
    "dashboard/abandoned.js",
    "dashboard/api.js",
    "dashboard/chart.js",
    "dashboard/charts.js",
    "dashboard/errors.js",
    "dashboard/dialog.js",
    "dashboard/explain.js",
    "dashboard/figures.js",
    "dashboard/flash.js",
    "dashboard/format.js",
    "dashboard/health.js",
    "dashboard/items.js",
    "dashboard/jobs.js",
    "dashboard/links.js",
    "dashboard/lookup.js",
    "dashboard/notice.js",
    "dashboard/popovers.js",
    "dashboard/problem.js",
    "dashboard/purge.js",
    "dashboard/range.js",
    "dashboard/rows.js",
    "dashboard/series.js",
    "dashboard/table.js",
    "dashboard/users.js",
    "../package-lock.json",
);

/// The content security policy allows files of this host only, no inline script, no frame, and no form submission: only
/// the script may read the key in the form.
const HEADERS: [(HeaderName, HeaderValue); 6] = [
    (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    ),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (HeaderName::from_static("x-robots-tag"), HeaderValue::from_static("noindex")),
];

#[derive(Template)]
#[template(path = "dashboard.html")]
struct Dashboard {
    icon: Asset,
    style: Asset,
    script: Asset,
}

/// The page. `path` is [`PATH`], with or without its trailing slash.
pub fn show(method: &Method, path: &str) -> Response {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return Problem::WrongMethod { allow: HeaderValue::from_static("GET, HEAD") }.respond(PATH);
    }
    if path != PATH {
        return redirect_to_page();
    }
    match (Dashboard { icon: ICON, style: STYLE, script: SCRIPT }).render() {
        Ok(page) => {
            let mut response = Response::new(Body::from(page));
            response.headers_mut().extend(HEADERS);
            response
        }
        Err(error) => Problem::from(Error::Platform(error.to_string())).respond(PATH),
    }
}

fn redirect_to_page() -> Response {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
    let headers = [(LOCATION, HeaderValue::from_static(PATH)), (CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    response.headers_mut().extend(headers);
    response
}
