//! Paths whose pages belong to one visitor, by their names.

use edgefront::config::rules::PathPatterns;

use super::login;

/// Segments of paths whose pages belong to one visitor in nearly every shop.
const PERSONAL_SEGMENTS: [&str; 19] = [
    "account",
    "accounts",
    "admin",
    "basket",
    "cart",
    "checkout",
    "compare",
    "favorites",
    "logout",
    "my-account",
    "order",
    "orders",
    "password",
    "password-reset",
    "reset-password",
    "forgot-password",
    "lost-password",
    "profile",
    "wishlist",
];

/// Returns whether a path names pages of one visitor in nearly every shop, or a login. Paths such as `/Cart` of ASP.NET count, too.
pub fn has_personal_name(path: &str) -> bool {
    let is_personal = |segment: &str| PERSONAL_SEGMENTS.iter().any(|own| own.eq_ignore_ascii_case(segment));
    login::is_login(path) || path.split('/').any(is_personal)
}

/// The paths with such names at the top of the site that `known` lacks, as one list. `end`: a slash, if the paths of the shop end with one.
pub fn paths_at_top(known: &PathPatterns, end: &str) -> String {
    let paths = PERSONAL_SEGMENTS.iter().chain(&login::SEGMENTS).map(|segment| format!("/{segment}{end}"));
    paths.filter(|path| !known.contains(path)).collect::<Vec<_>>().join(", ")
}
