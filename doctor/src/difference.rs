//! How two renders of one page differ. The kind of each difference is named, with a short excerpt.

use std::time::{Duration, Instant};

use serde::Serialize;
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use super::tokens::{self, CsrfTokens};

/// Most differences that are named for one page.
const MAX_NAMED: usize = 20;
/// Longest excerpt, characters.
const EXCERPT: usize = 70;
/// So many characters of an excerpt stand before the difference.
const CONTEXT: usize = 30;
/// Longest time for one comparison. What is not compared by then counts as different.
const TIMEOUT: Duration = Duration::from_secs(2);
/// A shorter cookie value occurs in a page by chance.
const MIN_COOKIE_VALUE: usize = 6;
/// A longer word in an excerpt may be a secret, and is cut.
const MAX_WORD: usize = 16;

/// What differs, as far as it can be recognized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DifferenceKind {
    /// A token against cross-site request forgery. A shared one is refused, or protects nobody.
    CsrfToken,
    /// A number that must be used once: of a content security policy, or of `WordPress`.
    Nonce,
    /// The value of a visitor's cookie.
    CookieValue,
    /// Any other text: a name, a basket, a time, an advertisement.
    Content,
    Status,
}

/// One difference between two renders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub kind: DifferenceKind,
    /// An excerpt of the first render, with long words cut.
    pub one: String,
    /// The same place in the second render.
    pub other: String,
    /// The text before the different word.
    #[serde(skip)]
    place: String,
}

impl DifferenceKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CsrfToken => "CSRF token",
            Self::Nonce => "nonce",
            Self::CookieValue => "value of a cookie",
            Self::Content => "content",
            Self::Status => "status",
        }
    }
}

impl Difference {
    /// Two renders with different statuses.
    pub fn of_status(one: http::StatusCode, other: http::StatusCode) -> Self {
        let text = |status: http::StatusCode| status.as_u16().to_string();
        Self { kind: DifferenceKind::Status, one: text(one), other: text(other), place: String::new() }
    }

    /// Returns whether both differences are at the same place of a page.
    pub fn is_at_the_place_of(&self, other: &Self) -> bool {
        self.kind == other.kind && self.place == other.place
    }
}

/// The differences of two renders, at most 20. `cookies`: the values of the visitors' cookies.
pub fn between(one: &str, other: &str, csrf_tokens: CsrfTokens, cookies: &[String]) -> Vec<Difference> {
    if one == other {
        return Vec::new();
    }
    let (one, other) = (tokens::split(one, csrf_tokens), tokens::split(other, csrf_tokens));
    let deadline = Instant::now() + TIMEOUT;
    let changes = capture_diff_slices_deadline(Algorithm::Myers, &one, &other, Some(deadline));
    let text = |pieces: &[String], range| pieces.get::<std::ops::Range<usize>>(range).unwrap_or_default().concat();
    let changes = changes.into_iter().filter(|change| !matches!(change, DiffOp::Equal { .. }));
    let pairs = changes.map(|change| (text(&one, change.old_range()), text(&other, change.new_range())));
    pairs.take(MAX_NAMED).map(|(one, other)| name(&one, &other, cookies)).collect()
}

fn name(one: &str, other: &str, cookies: &[String]) -> Difference {
    let same = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    let before: String = one.chars().take(same).collect();
    let excerpt = |text: &str| {
        let text: String = text.chars().skip(same.saturating_sub(CONTEXT)).take(EXCERPT).collect();
        without_secrets(&text)
    };
    let kind = kind(one, other, &before, cookies);
    // A random word may begin with the same characters by chance.
    let place = before.trim_end_matches(is_of_word).to_owned();
    Difference { kind, one: excerpt(one), other: excerpt(other), place }
}

fn kind(one: &str, other: &str, before: &str, cookies: &[String]) -> DifferenceKind {
    const CSRF: [&str; 6] = ["csrf", "xsrf", "authenticity_token", "form_key", "_token", "requestverification"];
    let all = one.to_ascii_lowercase();
    let near: String = {
        let start = before.chars().count().saturating_sub(2 * CONTEXT);
        before.chars().skip(start).collect::<String>().to_ascii_lowercase()
    };
    let has_cookie = |text: &str| cookies.iter().any(|value| value.len() >= MIN_COOKIE_VALUE && text.contains(value));
    if near.contains("nonce") {
        DifferenceKind::Nonce
    } else if CSRF.iter().any(|name| near.contains(name) || (all.starts_with('<') && all.contains(name))) {
        DifferenceKind::CsrfToken
    } else if has_cookie(one) || has_cookie(other) {
        DifferenceKind::CookieValue
    } else {
        DifferenceKind::Content
    }
}

/// Returns whether a token could contain the character.
fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '-' | '+' | '.')
}

/// Text in one line. Long words lose their end, because they may be tokens.
fn without_secrets(text: &str) -> String {
    let mut safe = String::new();
    let mut length = 0;
    for character in text.chars() {
        length = if is_of_word(character) { length + 1 } else { 0 };
        match length {
            length if length <= MAX_WORD / 2 => safe.push(if character.is_whitespace() { ' ' } else { character }),
            length if length == MAX_WORD / 2 + 1 => safe.push('…'),
            _ => {}
        }
    }
    safe.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(one: &str, other: &str, csrf_tokens: CsrfTokens) -> Vec<DifferenceKind> {
        let differences = between(one, other, csrf_tokens, &["s3cr3t-session".to_owned()]);
        differences.into_iter().map(|difference| difference.kind).collect()
    }

    #[test]
    fn each_difference_is_named() {
        use DifferenceKind::{Content, CookieValue, CsrfToken, Nonce};
        for (one, other, expected) in [
            ("<p>a</p>", "<p>a</p>", &[][..]),
            ("<b>Hello Ann</b>", "<b>Hello Ben</b>", &[Content]),
            ("<script nonce=\"r4nd0m\">", "<script nonce=\"0th3r\">", &[Nonce]),
            ("<script>var wp = {\"nonce\":\"1a\"}</script>", "<script>var wp = {\"nonce\":\"2b\"}</script>", &[Nonce]),
            ("<input name=authenticity_token value=1>", "<input name=authenticity_token value=2>", &[CsrfToken]),
            ("<a href=\"/?id=s3cr3t-session\">", "<a href=\"/?id=none\">", &[CookieValue]),
            ("<i>1</i><p>same</p><i>2</i>", "<i>3</i><p>same</p><i>4</i>", &[Content, Content]),
        ] {
            assert_eq!(kinds(one, other, CsrfTokens::Personal), expected, "{one}");
        }
    }

    #[test]
    fn a_masked_token_of_django_is_harmless_if_edgefront_covers_it() {
        let form = |token: &str| format!("<form><input type=hidden name=csrfmiddlewaretoken value={token}></form>");
        assert_eq!(kinds(&form("a"), &form("b"), CsrfTokens::Personal), [DifferenceKind::CsrfToken]);
        assert_eq!(kinds(&form("a"), &form("b"), CsrfTokens::Covered), []);
    }

    #[test]
    fn an_excerpt_shows_no_secret() {
        let [difference] = &between(
            "<p>token: abcdefghijklmnopqrstuvwxyz</p>",
            "<p>token: zyxwvutsrqponmlkjihgfedcba</p>",
            CsrfTokens::Personal,
            &[],
        )[..] else {
            panic!("one difference")
        };
        assert_eq!((difference.one.as_str(), difference.other.as_str()), ("token: abcdefgh…", "token: zyxwvuts…"));
    }
}
