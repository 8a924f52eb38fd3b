//! Matches the paths of `LOGIN_ROUTES`.

use percent_encoding::percent_decode_str;

/// Returns whether a path is `route` or below it, in any spelling that some origin accepts, so that no spelling evades
/// the limit.
pub(super) fn is_at(route: &str, path: &str) -> bool {
    let (route, path) = (segments(route), segments(path));
    path.starts_with(&route) || resolved(path).starts_with(&route)
}

/// The segments of a path, without parts that some origins ignore.
fn segments(path: &str) -> Vec<String> {
    let path = percent_decode_str(path).decode_utf8_lossy().to_ascii_lowercase();
    let segments = path.split(['/', '\\']).map(|name| name.split(';').next().unwrap_or_default().to_owned());
    segments.filter(|name| !matches!(name.as_str(), "" | ".")).collect()
}

/// Resolves `..` for an origin that decodes `%2f` first; the platform leaves it encoded.
fn resolved(segments: Vec<String>) -> Vec<String> {
    segments.into_iter().fold(Vec::new(), |mut resolved, name| {
        if name == ".." {
            resolved.pop();
        } else {
            resolved.push(name);
        }
        resolved
    })
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
