//! The differences between two renders of one page: the kind of each, with a short excerpt.

use std::ops::Range;

use edgefront::page_cache::token_range;
use serde::Serialize;

use super::{
    changes::Changes,
    pieces::{Detail, Pieces},
    tokens,
};

/// Longest excerpt, and longest text on each side of it, characters.
const EXCERPT: usize = 60;
/// So many characters of an excerpt stand before the difference.
const CONTEXT: usize = 30;
/// A shorter cookie value occurs in a page by chance.
const MIN_COOKIE_VALUE: usize = 6;
/// A longer word in an excerpt may be a secret, and is cut.
const MAX_WORD: usize = 16;

/// The kind of content that differs, as far as it can be recognized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DifferenceKind {
    /// A token against cross-site request forgery. A shared one is refused, or protects nobody.
    CsrfToken,
    /// The value of a hidden field that looks like a token, such as one against cross-site request forgery.
    HiddenToken,
    /// A number that must be used once: of a content security policy, or of `WordPress`.
    Nonce,
    /// A token in the address of a form, such as `review_token` of `OpenCart`.
    AddressToken,
    /// The value of a visitor's cookie.
    CookieValue,
    /// The address of a link or form, such as one with the id of a session.
    Address,
    /// Text that a visitor reads: a name, a basket, a time.
    VisibleText,
    /// Any other content, such as an attribute or a script.
    Content,
    Status,
}

/// One difference between two renders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub kind: DifferenceKind,
    /// An excerpt of the first render, with long words cut. Empty: the render has nothing at this place.
    pub one: String,
    /// The same place in the second render.
    pub other: String,
    /// The text before this place, which both renders have.
    pub before: String,
    /// The text after this place.
    pub after: String,
    /// The text before the different word.
    #[serde(skip)]
    place: String,
    /// The pieces of the first render.
    #[serde(skip)]
    pub pieces: Range<usize>,
    /// The values that differ. Not compared for visible text.
    #[serde(skip)]
    pub changes: Changes,
    /// Another render for the same visitor differs here, too.
    #[serde(skip)]
    pub is_changing: bool,
}

impl DifferenceKind {
    /// Returns whether a hole with the source `token` can cover the difference.
    pub const fn is_token(self) -> bool {
        matches!(self, Self::CsrfToken | Self::HiddenToken | Self::AddressToken)
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CsrfToken => "CSRF token",
            Self::HiddenToken => "token in a hidden field",
            Self::Nonce => "nonce",
            Self::AddressToken => "token in the address of a form",
            Self::CookieValue => "value of a cookie",
            Self::Address => "address of a link",
            Self::VisibleText => "visible text",
            Self::Content => "content",
            Self::Status => "status",
        }
    }
}

impl Difference {
    /// Two renders with different statuses.
    pub fn of_status(one: http::StatusCode, other: http::StatusCode) -> Self {
        let text = |status: http::StatusCode| status.as_u16().to_string();
        Self {
            kind: DifferenceKind::Status,
            one: text(one),
            other: text(other),
            before: String::new(),
            after: String::new(),
            place: String::new(),
            pieces: 0..0,
            changes: Changes::default(),
            is_changing: false,
        }
    }

    /// Returns whether this difference explains another one: it has the same kind and place, and covers all pieces and values of
    /// the other one.
    pub fn explains(&self, other: &Self) -> bool {
        let has_its_end = other.pieces.end <= self.pieces.end;
        let after = other.pieces.start.checked_sub(self.pieces.start).filter(|_| has_its_end);
        self.has_place_of(other) && after.is_some_and(|after| self.changes.cover(&other.changes, after))
    }

    /// Returns whether both differences are of the same kind, after the same text. They may belong to different pages.
    pub fn has_place_of(&self, other: &Self) -> bool {
        self.kind == other.kind && self.place == other.place
    }
}

/// The differences of two renders. `cookies`: the values of the visitors' cookies.
pub fn between(one: &Pieces, other: &Pieces, cookies: &[String]) -> Vec<Difference> {
    let changes = one.changes_to(other).into_iter();
    changes.map(|(at_one, at_other)| of_change((one, at_one), (other, at_other), cookies)).collect()
}

/// Names one change of [`Pieces::changes_to`].
pub fn of_change(
    (one, at_one): (&Pieces, Range<usize>),
    (other, at_other): (&Pieces, Range<usize>),
    cookies: &[String],
) -> Difference {
    let texts = |detail| (one.text(at_one.clone(), detail), other.text(at_other.clone(), detail));
    let (all_of_one, all_of_other) = texts(Detail::All);
    let before: String = all_of_one.chars().take(same_start(&all_of_one, &all_of_other)).collect();
    // A visitor reads texts, not tags; and a clock says nothing about a visitor.
    let shown = [Detail::SteadyText, Detail::Text].map(texts).into_iter().find(|(one, other)| one != other);
    let (text_of_one, text_of_other) = shown.unwrap_or_else(|| (all_of_one.clone(), all_of_other.clone()));
    let same = same_start(&text_of_one, &text_of_other);
    let excerpt = |text: &str| {
        let start = same.saturating_sub(CONTEXT);
        let text: String = text.chars().skip(start).take(EXCERPT).collect();
        without_secrets(&from_difference(&text, same - start))
    };
    let (visible_of_one, visible_of_other) = texts(Detail::VisibleText);
    // Tags beside the text, such as a form with a token, say less than the text.
    let kind = if visible_of_one == visible_of_other {
        kind(&all_of_one, &all_of_other, &before, cookies)
    } else {
        DifferenceKind::VisibleText
    };
    let texts = |pieces: &Pieces, at: &Range<usize>| pieces.texts().get(at.clone()).unwrap_or_default().to_vec();
    let is_visible = kind == DifferenceKind::VisibleText;
    let changes =
        if is_visible { Changes::default() } else { Changes::between(&texts(one, &at_one), &texts(other, &at_other)) };
    Difference {
        kind,
        changes,
        one: excerpt(&text_of_one),
        other: excerpt(&text_of_other),
        before: without_secrets(&one.text_before(at_one.start, EXCERPT)),
        after: without_secrets(&one.text_after(at_one.end, EXCERPT)),
        // A random word may begin with the same characters by chance.
        place: before.trim_end_matches(is_of_word).to_owned(),
        is_changing: other.is_changing(at_other),
        pieces: at_one,
    }
}

/// Number of characters that both texts begin with.
fn same_start(one: &str, other: &str) -> usize {
    one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count()
}

/// A text whose difference begins after `same` characters. A long word that begins before the difference loses its start, so that the
/// excerpt shows the difference. A time stays whole.
fn from_difference(text: &str, same: usize) -> String {
    let (before, after) = text.split_at(text.char_indices().nth(same).map_or(text.len(), |(index, _)| index));
    let kept = before.trim_end_matches(is_of_word);
    let start = before.get(kept.len()..).unwrap_or_default();
    let end: String = after.chars().take_while(|character| is_of_word(*character)).collect();
    if start.chars().count() < MAX_WORD / 2 || is_time(&format!("{start}{end}")) {
        return text.to_owned();
    }
    format!("{kept}…{after}")
}

/// The kind of a difference in tags and scripts.
fn kind(one: &str, other: &str, before: &str, cookies: &[String]) -> DifferenceKind {
    let all = one.to_ascii_lowercase();
    let near: String = {
        let start = before.chars().count().saturating_sub(2 * CONTEXT);
        before.chars().skip(start).collect::<String>().to_ascii_lowercase()
    };
    let has_cookie = |text: &str| cookies.iter().any(|value| value.len() >= MIN_COOKIE_VALUE && text.contains(value));
    let has_value = has_cookie(one) || has_cookie(other);
    if near.contains("nonce") {
        DifferenceKind::Nonce
    } else if is_address(before) {
        if has_value {
            DifferenceKind::CookieValue
        } else if is_address_token(one, other) {
            DifferenceKind::AddressToken
        } else {
            DifferenceKind::Address
        }
    } else if is_csrf_name(&near) || (all.starts_with('<') && is_csrf_name(&all)) {
        // Also if a cookie has the same value, as in a double-submit protection.
        DifferenceKind::CsrfToken
    } else if has_value {
        DifferenceKind::CookieValue
    } else if [one, other].into_iter().all(tokens::are_hidden_tokens) {
        DifferenceKind::HiddenToken
    } else {
        DifferenceKind::Content
    }
}

/// Returns whether a text ends within the address of a link or form, before its fragment.
fn is_address(text: &str) -> bool {
    let Some((attributes, value)) = text.rsplit_once("=\"") else { return false };
    let tag = attributes.rsplit('<').next().unwrap_or_default();
    let names = (tag.split(' ').next(), tag.rsplit(' ').next());
    let is_link = matches!(names, (Some("a" | "area"), Some("href")) | (Some("form"), Some("action")));
    is_link && !value.contains(['"', '#'])
}

/// Returns whether two start tags of a form differ in a token of their addresses only. The id of a session is no token for edgefront.
fn is_address_token(one: &str, other: &str) -> bool {
    let without = |tag: &str| {
        let Range { start, end } = token_range(tag.as_bytes()).filter(|_| tag.starts_with("<form "))?;
        Some([tag.get(..start)?, tag.get(end..)?].map(str::to_owned))
    };
    without(one).is_some_and(|of_one| without(other) == Some(of_one))
}

/// Returns whether a text, in lower case, contains the name of a CSRF token.
pub fn is_csrf_name(text: &str) -> bool {
    const NAMES: [&str; 6] = ["csrf", "xsrf", "authenticity_token", "form_key", "_token", "requestverification"];
    NAMES.iter().any(|name| text.contains(name))
}

/// Returns whether a token could contain the character.
fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '-' | '+' | '.')
}

/// Returns whether a word is a time, in seconds or milliseconds.
pub fn is_time(word: &str) -> bool {
    word.len() <= 20 && word.bytes().all(|byte| byte == b'.' || byte.is_ascii_digit())
}

/// Text in one line. Long words lose their end, because they may be tokens. A time, which has at most 20 digits, is none.
fn without_secrets(text: &str) -> String {
    let mut safe = String::new();
    let words = text.split_inclusive(|character| !is_of_word(character));
    for word in words {
        let own = word.trim_end_matches(|character| !is_of_word(character));
        if is_time(own) || own.chars().count() <= MAX_WORD / 2 {
            safe.push_str(word);
        } else {
            safe.extend(own.chars().take(MAX_WORD / 2));
            safe.push('…');
            safe.push_str(word.get(own.len()..).unwrap_or_default());
        }
    }
    safe.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::CsrfTokens;

    fn differences(one: &str, other: &str, csrf_tokens: CsrfTokens) -> Vec<Difference> {
        let cookies = ["s3cr3t-session".to_owned()];
        between(&Pieces::of(one, csrf_tokens), &Pieces::of(other, csrf_tokens), &cookies)
    }

    fn kinds(one: &str, other: &str, csrf_tokens: CsrfTokens) -> Vec<DifferenceKind> {
        let differences = differences(one, other, csrf_tokens);
        differences.into_iter().map(|difference| difference.kind).collect()
    }

    #[test]
    fn each_difference_is_named() {
        use DifferenceKind::{Address, AddressToken, Content, CookieValue, CsrfToken, HiddenToken, Nonce, VisibleText};
        for (one, other, expected) in [
            ("<p>a</p>", "<p>a</p>", &[][..]),
            ("<b>Hello Ann</b>", "<b>Hello Ben</b>", &[VisibleText]),
            ("<b class=a>", "<b class=b>", &[Content]),
            ("Sign in", "Hello ada <a href=\"/out?s3cr3t-session\">Sign out</a>", &[VisibleText]),
            ("<script nonce=\"r4nd0m\">", "<script nonce=\"0th3r\">", &[Nonce]),
            ("<script>var wp = {\"nonce\":\"1a\"}</script>", "<script>var wp = {\"nonce\":\"2b\"}</script>", &[Nonce]),
            ("<input name=authenticity_token value=1>", "<input name=authenticity_token value=2>", &[CsrfToken]),
            (
                "<input type=hidden name=SEC value=b1946ac92492d234>",
                "<input type=hidden name=SEC value=591785b794601e21>",
                &[HiddenToken],
            ),
            (
                "<input type=hidden name=time value=1795726406.12345>",
                "<input type=hidden name=time value=1795726407.12345>",
                &[Content],
            ),
            ("<input name=SEC value=b1946ac92492d234>", "<input name=SEC value=591785b794601e21>", &[Content]),
            ("<a href=\"/?id=s3cr3t-session\">", "<a href=\"/?id=none\">", &[CookieValue]),
            ("<a class=p href=/a;jsessionid=1>", "<a class=p href=/a;jsessionid=2>", &[Address]),
            (
                "<form action=/a;id=1><input name=csrf value=1></form>",
                "<form action=/a;id=2><input name=csrf value=2></form>",
                &[Address],
            ),
            (
                "<form method=post action='/a?id=1&amp;my_token=b1946ac92492d234'>",
                "<form method=post action='/a?id=1&amp;my_token=591785b794601e21'>",
                &[AddressToken],
            ),
            (
                "<form method=post action='/a?my_token=b1946ac92492d234&sid=1'>",
                "<form method=post action='/a?my_token=591785b794601e21&sid=2'>",
                &[Address],
            ),
            (
                "<form method=post action='/a?CFTOKEN=b1946ac92492d234'>",
                "<form method=post action='/a?CFTOKEN=591785b794601e21'>",
                &[Address],
            ),
            ("<a href=/mail#1>", "<a href=/mail#2>", &[Content]),
            ("<a href=/a class=1>", "<a href=/a class=2>", &[Content]),
            ("<link href=/a?v=1>", "<link href=/a?v=2>", &[Content]),
            ("<i>1</i><p>same</p><i>2</i>", "<i>3</i><p>same</p><i>4</i>", &[VisibleText, VisibleText]),
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
        let [difference] = &differences(
            "<p>token: abcdefghijklmnopqrstuvwxyz</p>",
            "<p>token: zyxwvutsrqponmlkjihgfedcba</p>",
            CsrfTokens::Personal,
        )[..] else {
            panic!("one difference")
        };
        assert_eq!((difference.one.as_str(), difference.other.as_str()), ("token: abcdefgh…", "token: zyxwvuts…"));
    }

    #[test]
    fn an_excerpt_shows_the_difference_of_long_words() {
        let between = |one: &str, other: &str| {
            let link = |version: &str| format!("<link href=/theme.css?version={version}>");
            let found = differences(&link(one), &link(other), CsrfTokens::Personal).remove(0);
            [found.one, found.other].map(|text| text.rsplit('=').next().unwrap_or_default().to_owned())
        };
        assert_eq!(between("c534d21b5f04-111", "c534d21b5f04-222"), ["…111\">", "…222\">"]);
        assert_eq!(between("1795726406.1", "1795726406.2"), ["1795726406.1\">", "1795726406.2\">"]);
    }

    #[test]
    fn white_space_is_no_difference() {
        assert_eq!(kinds("<p> a</p>\n\n<i>b</i>", "<p>a\n</p><i>b</i>  ", CsrfTokens::Personal), []);
    }

    #[test]
    fn an_excerpt_is_short_and_has_the_text_around_it() {
        let words = "word ".repeat(50);
        let page = |name: &str| format!("<p>{words}</p><b>{name} {words}</b><style>p {{}}</style><p>After it</p>");
        let found = differences(&page("Ann"), &page("Ben"), CsrfTokens::Personal);
        let [Difference { one, other, before, after, .. }] = &found[..] else { panic!("one difference") };
        assert!(one.starts_with("Ann word") && other.starts_with("Ben word") && before.ends_with("word word"));
        assert_eq!(after, "After it");
        assert!([one, other, before].iter().all(|text| (55..=60).contains(&text.len())), "{found:#?}");
    }

    #[test]
    fn a_changing_number_does_not_hide_another_difference() {
        let clock = &differences("<i>1</i><b>Sign in</b>", "<i>2</i><b>Sign in</b>", CsrfTokens::Personal);
        let all = differences("<i>1</i><b>Sign in</b>", "<i>3</i><b>Ann</b>", CsrfTokens::Personal);
        let left: Vec<_> = all.iter().filter(|found| !clock.iter().any(|noise| noise.explains(found))).collect();
        assert_eq!(left.iter().map(|found| found.other.as_str()).collect::<Vec<_>>(), ["Ann"]);
    }
}
