//! `Vary` (RFC 9110 §12.5.5, RFC 9111 §4.1): one URL, several pages, told apart by headers of the request.
//!
//! A page is told apart only by headers that `PAGE_FORWARD_HEADERS` lets through, since the others do not reach the origin.
//! `Accept-Encoding` tells nothing apart: the origin is always asked for the page as it is, and the platform compresses.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::{
    config::Forward,
    ports::sort,
    proxy::{is_edge, is_hop_by_hop},
};

/// Variants of one URL at the most; beyond, one of them makes room.
pub const MOST_VARIANTS: usize = 16;
/// Bytes that a variant's name may have.
const LONGEST_VARIANT: usize = 2_048;

/// The headers by which an answer is told apart: lower case, sorted, each once, without `accept-encoding`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields(Vec<String>);

impl Fields {
    /// What `Vary` names. None for `*`: no other request gets this answer.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let mut fields = Vec::new();
        for line in headers.get_all(header::VARY) {
            for field in line.to_str().ok()?.split(',').map(str::trim).filter(|field| !field.is_empty()) {
                HeaderName::try_from(field).ok().filter(|_| field != "*")?;
                fields.push(field.to_ascii_lowercase());
            }
        }
        fields.retain(|field| field != "accept-encoding");
        sort::sort_by(&mut fields, Ord::cmp);
        fields.dedup();
        Some(Self(fields))
    }

    /// As [`Fields::to_text`] wrote it.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        Self(text.split(',').filter(|field| !field.is_empty()).map(str::to_owned).collect())
    }

    /// `accept,accept-language`, as the scripts read it.
    #[must_use]
    pub fn to_text(&self) -> String {
        self.0.join(",")
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn contains(&self, name: &str) -> bool {
        self.0.iter().any(|field| field == name)
    }
}

/// The headers of one request by which a page may be told apart, in one spelling each.
#[derive(Debug, Clone, Default)]
pub struct Selecting {
    values: BTreeMap<String, String>,
    /// Headers that the request has, and that do not reach the origin with a cacheable request.
    withheld: Vec<String>,
    all: bool,
}

/// Never sent with a cacheable request, whatever is let through: they are somebody's, or ask for less than the whole page, or
/// are ours to send.
const NEVER: [&str; 18] = [
    "accept-encoding",
    "authorization",
    "cache-control",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "pragma",
    "range",
    "x-forwarded-host",
    "x-forwarded-proto",
];

impl Selecting {
    /// Reads a request. `personal` says that it has cookies of the origin's.
    #[must_use]
    pub fn of(headers: &HeaderMap, forward: &Forward, personal: bool) -> Self {
        let mut selecting = Self { all: matches!(forward, Forward::All), ..Self::default() };
        for name in headers.keys() {
            let text = name.as_str();
            let let_through = !NEVER.contains(&text)
                && !is_edge(name)
                && !is_hop_by_hop(text)
                && match forward {
                    Forward::All => true,
                    Forward::Only(names) => names.contains(name),
                };
            match let_through.then(|| combined(headers, name)).flatten() {
                Some(value) => drop(selecting.values.insert(text.to_owned(), value)),
                None if text != "cookie" || personal => selecting.withheld.push(text.to_owned()),
                None => {}
            }
        }
        selecting
    }

    /// The headers that go to the origin: all that may, or only those of `fields`.
    #[must_use]
    pub fn headers(&self, fields: Option<&Fields>) -> HeaderMap {
        let is_sent = |name: &str| fields.is_none_or(|fields| fields.contains(name));
        let pairs = self.values.iter().filter(|(name, _)| self.all || is_sent(name));
        pairs.filter_map(|(name, value)| Some((name.parse().ok()?, HeaderValue::try_from(value).ok()?))).collect()
    }

    /// Whether an answer that is told apart by `fields` came without one of them that this request has and may send.
    #[must_use]
    pub fn lacked(&self, fields: &Fields, sent: Option<&Fields>) -> bool {
        let was_sent = |name: &str| self.all || sent.is_none_or(|sent| sent.contains(name));
        fields.0.iter().any(|field| self.values.contains_key(field) && !was_sent(field))
    }

    /// This request's name among the variants. None if an answer that is told apart by `fields` can not be for it: it has one
    /// of them that the origin did not see.
    #[must_use]
    pub fn variant(&self, fields: &Fields) -> Option<String> {
        let mut name = String::new();
        for field in &fields.0 {
            if self.withheld.contains(field) {
                return None;
            }
            name.push_str(field);
            if let Some(value) = self.values.get(field) {
                name.push('=');
                name.push_str(value);
            }
            name.push('\n');
        }
        (name.len() <= LONGEST_VARIANT).then_some(name)
    }

    /// Name and value of each, for the script that makes the same [`Selecting::variant`] of what it finds.
    pub fn pairs(&self) -> impl Iterator<Item = &str> {
        let withheld = self.withheld.iter().flat_map(|name| [name.as_str(), "\n"]);
        self.values.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]).chain(withheld)
    }
}

/// All lines of a header as one, in one spelling: equal values then mean equal requests to the origin.
fn combined(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let lines: Option<Vec<_>> = headers.get_all(name).iter().map(|line| line.to_str().ok()).collect();
    let text = lines?.join(",");
    let mut members: Vec<_> = text.split(',').map(str::trim).filter(|member| !member.is_empty()).collect();
    if *name != header::ACCEPT_LANGUAGE {
        return Some(if text.contains('"') { text.trim().to_owned() } else { members.join(", ") });
    }
    let mut languages: Vec<_> = members.drain(..).map(|member| member.replace(' ', "").to_ascii_lowercase()).collect();
    // The order of equals says nothing (RFC 9110 §12.4.2). Highest weight first; no weight means 1.
    sort::sort_by(&mut languages, |one, other| weight(other).cmp(&weight(one)).then_with(|| one.cmp(other)));
    languages.dedup();
    Some(languages.join(","))
}

/// The weight of `en;q=0.8` in thousandths, of which it has three digits at the most (RFC 9110 §12.4.2).
fn weight(language: &str) -> u32 {
    let Some((_, weight)) = language.split_once(";q=") else { return 1000 };
    let (whole, parts) = weight.split_once('.').unwrap_or((weight, ""));
    let digits = parts.bytes().chain(std::iter::repeat(b'0')).take(3);
    let parts = digits.fold(0, |parts, digit| parts * 10 + u32::from(digit.wrapping_sub(b'0').min(9)));
    if whole == "1" { 1000 } else { parts }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    fn listed() -> Forward {
        Forward::Only(vec![header::ACCEPT_LANGUAGE, "foo".parse().unwrap()])
    }

    fn variant(forward: &Forward, request: &[(&'static str, &'static str)], vary: &'static str) -> Option<String> {
        Selecting::of(&headers(request), forward, true).variant(&Fields::of(&headers(&[("vary", vary)]))?)
    }

    // RFC 9111 §4.1
    #[test]
    fn requests_are_told_apart_by_what_vary_names() {
        let name = |request| variant(&listed(), request, "Foo, Accept-Encoding").unwrap();
        assert_eq!(name(&[("foo", "1"), ("accept-language", "de")]), "foo=1\n");
        assert_eq!(name(&[("foo", "1, 2")]), name(&[("foo", "1"), ("foo", " 2 ")]));
        assert_ne!(name(&[("foo", "")]), name(&[]), "an empty one is not none");
        assert_eq!(variant(&listed(), &[], "accept, *"), None);
        assert_eq!(variant(&listed(), &[], "not a name"), None);
    }

    #[test]
    fn an_answer_that_depends_on_what_the_origin_did_not_see_is_for_nobody() {
        for (vary, value) in [("cookie", "a=b"), ("user-agent", "x"), ("authorization", "y")] {
            let name = |forward: &Forward| Selecting::of(&headers(&[(vary, value)]), forward, true);
            let fields = Fields::of(&headers(&[("vary", vary)])).unwrap();
            assert_eq!(name(&listed()).variant(&fields), None, "{vary}");
            assert_eq!(name(&Forward::All).variant(&fields).is_some(), vary == "user-agent", "{vary}");
            assert_eq!(variant(&listed(), &[], vary), Some(format!("{vary}\n")), "a request without it");
        }
        let nobody = Selecting::of(&headers(&[("cookie", "__Host-session=x")]), &listed(), false);
        assert!(nobody.variant(&Fields::from_text("cookie")).is_some(), "our cookie stays here");
    }

    #[test]
    fn languages_have_one_spelling() {
        let request = |value| variant(&listed(), &[("accept-language", value)], "accept-language").unwrap();
        assert_eq!(request("de, en;q=0.5"), "accept-language=de,en;q=0.5\n");
        for same in ["en;q=0.5,DE", "de,en ; q=0.5", "de,, de,en;q=0.5"] {
            assert_eq!(request(same), request("de, en;q=0.5"), "{same}");
        }
        assert_ne!(request("de"), request("en"));
    }

    #[test]
    fn what_is_sent_is_what_is_let_through() {
        let request = headers(&[("foo", "1"), ("x-forwarded-host", "evil"), ("x-other", "2"), ("range", "bytes=0-1")]);
        let sent = |forward, fields: Option<&str>| {
            let fields = fields.map(Fields::from_text);
            let sent = Selecting::of(&request, &forward, false).headers(fields.as_ref());
            sent.keys().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(sent(listed(), None), "foo");
        assert_eq!(sent(listed(), Some("accept")), "");
        assert_eq!(sent(listed(), Some("foo")), "foo");
        assert_eq!(sent(Forward::All, Some("")), "foo x-other");
    }
}
