//! Matches the paths of `LOGIN_ROUTES`.

use crate::config::rules::paths::{resolved, segments};

/// Returns whether a path is `route` or below it, in any spelling that some origin accepts, so that no spelling evades
/// the limit.
pub(super) fn is_at(route: &str, path: &str) -> bool {
    let (route, path) = (segments(route), segments(path));
    path.starts_with(&route) || resolved(path).starts_with(&route)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_spelling_of_a_path_evades_its_limit() {
        for path in [
            "/login",
            "/login/",
            "//login",
            "/Login",
            "/%6cogin",
            "/login;a=b",
            "/login%2f",
            "/login/again",
            "/a/..%2flogin",
            "/a%5c..%5clogin",
            "/.%2flogin",
            "/login/..%2fa",
        ] {
            assert!(is_at("/login", path), "{path}");
        }
        for path in ["/", "/logins", "/a/login", "/a%2f..", "/a/..%2fb/login"] {
            assert!(!is_at("/login", path), "{path}");
        }
        assert!(is_at("/", "/anything"));
    }
}
