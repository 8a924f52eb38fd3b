//! The pages at which visitors sign in or register, by their paths.

use std::collections::BTreeSet;

use edgefront::config::rules::CookieRules;
use url::Url;

use super::{
    advice::path_pattern,
    links,
    shop::{Page, Shop},
    visitor::{self, Visitor, Visitors},
};

/// The risk of `LOGIN_ROUTES`.
pub const RISK: &str = "at most LOGIN_LIMIT attempts in a minute from one network, 20 by default.";

/// Segments of the paths.
pub const SEGMENTS: [&str; 9] =
    ["login", "signin", "sign-in", "sign_in", "register", "signup", "sign-up", "sign_up", "log-in"];

/// Segments in other languages.
const TRANSLATED: [&str; 14] = [
    "anmelden",
    "anmeldung",
    "einloggen",
    "registrieren",
    "registrierung",
    "connexion",
    "inscription",
    "accedi",
    "registrati",
    "iniciar-sesion",
    "inloggen",
    "aanmelden",
    "logowanie",
    "prihlaseni",
];

/// The ends of the paths with Rails' form to sign in. The form is sent to the path before `/new`.
const NEW_SESSIONS: [&str; 2] = ["/session/new", "/sessions/new"];

/// Returns whether visitors sign in or register at the pages of a kind.
pub fn is_login(kind: &str) -> bool {
    let path = kind.split('?').next().unwrap_or_default().to_ascii_lowercase();
    is_new_session(&path) || path.split('/').any(|segment| SEGMENTS.contains(&segment) || TRANSLATED.contains(&segment))
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

/// A note if the page at `url` shows the visitor of `--login` the same links to sign in as a visitor without cookies. A shop
/// can show a basket to a visitor without an account, so a different page does not prove that the visitor is signed in.
pub async fn note_on_links(shop: &Shop, visitors: &Visitors, rules: &CookieRules, url: &Url) -> Option<String> {
    let (_, cookies) = visitors.with_cookies(url).into_iter().find(|(visitor, _)| *visitor == Visitor::SignedIn)?;
    let cookies = visitor::behind_edgefront(&cookies, rules);
    let links = |page: &Page| -> BTreeSet<_> {
        links::paths(&page.text(), url).into_iter().filter(|path| is_login(path)).collect()
    };
    let everybody = links(&shop.get(url, None).await.ok()?);
    let signed_in = links(&shop.get(url, Some(&cookies)).await.ok()?);
    let path = everybody.first().filter(|_| everybody.is_subset(&signed_in))?;
    Some(format!(
        "{url} still links the visitor of --login to {path}, as it does for visitors without an account. If the cookies of --login are \
         not those of a signed-in account, sign in again: the rules do not cover the account's name and links"
    ))
}
