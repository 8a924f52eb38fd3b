//! The pages at which visitors sign in or register, by their paths.

use super::advice::path_pattern;

/// The risk of `LOGIN_ROUTES`.
pub const RISK: &str = "at most LOGIN_LIMIT attempts in a minute from one network, 20 by default.";

/// Segments of the paths.
pub const SEGMENTS: [&str; 9] =
    ["login", "signin", "sign-in", "sign_in", "register", "signup", "sign-up", "sign_up", "log-in"];

/// The ends of the paths with Rails' form to sign in. The form is sent to the path before `/new`.
const NEW_SESSIONS: [&str; 2] = ["/session/new", "/sessions/new"];

/// Returns whether visitors sign in or register at the pages of a kind.
pub fn is_login(kind: &str) -> bool {
    let path = kind.split('?').next().unwrap_or_default().to_ascii_lowercase();
    is_new_session(&path) || path.split('/').any(|segment| SEGMENTS.contains(&segment))
}

fn is_new_session(path: &str) -> bool {
    NEW_SESSIONS.iter().any(|end| path.ends_with(end))
}

/// The path for `LOGIN_ROUTES`, which also covers the paths below. None if no visitor signs in at the pages of a kind, or if the
/// kind has several paths.
pub fn route(kind: &str) -> Option<String> {
    let mut path = path_pattern(kind).filter(|path| is_login(path) && !path.contains('*'))?;
    if is_new_session(&path) {
        path.truncate(path.len() - "/new".len());
    }
    Some(path)
}
