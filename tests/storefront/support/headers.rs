//! Headers of responses, and the cookies in them.

use http::{HeaderMap, header};

/// A header's value, or "" without one.
pub fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).map_or("", |value| value.to_str().unwrap_or("not ASCII"))
}

/// The cookies of all `Set-Cookie`, as the browser sends them back: `name=value`.
pub fn cookie_pairs(headers: &HeaderMap) -> Vec<&str> {
    let lines = headers.get_all(header::SET_COOKIE).iter().map(|line| line.to_str().expect("ASCII"));
    lines.filter_map(|line| line.split(';').next()).collect()
}

/// The first of [`cookie_pairs`].
pub fn cookie_pair(headers: &HeaderMap) -> Option<&str> {
    cookie_pairs(headers).first().copied()
}

/// The first cookie of a response. Panics if the response sets none.
pub fn set_cookie(answer: &reqwest::Response) -> String {
    cookie_pair(answer.headers()).expect("a cookie").to_owned()
}

/// The token in a session's cookie.
pub fn token_of(cookie: &str) -> &str {
    cookie.trim_start_matches("__Host-session=").split('.').next().unwrap_or_default()
}
