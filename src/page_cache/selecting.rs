//! The request headers that select one of several pages under a URL (RFC 9111 §4.1).
//!
//! Only headers that `PAGE_FORWARD_HEADERS`, `HEADERS_VARIED` or `HEADERS_NORMALIZED` names can select a page, because the
//! origin gets no other.

use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::{
    normalized::{combined, joined, listed},
    policy::{Reason, VaryFields},
    visitor_cookies::VisitorCookies,
};
use crate::config::{Forward, HeaderRules, rules::may_select};

/// Largest number of variants of one URL. A further variant replaces one of them.
pub const MAX_VARIANTS: usize = 16;
/// Longest name of a variant, bytes.
const MAX_VARIANT_NAME: usize = 2_048;

/// The field of a variant's name that holds the varied cookies (`COOKIES_VARIED`). No client can send it: see
/// [`is_edge`](crate::ports::header_names::is_edge).
pub const VARIED_COOKIES: &str = "edge-cookies";

/// The headers of one request that may select a page, with normalized values.
#[derive(Debug, Clone, Default)]
pub struct SelectingHeaders {
    /// Each name once. A map would cost more than the search for one of a few names.
    values: Vec<(String, String)>,
    /// Names of headers that the origin does not get with a shared render.
    withheld: Vec<String>,
    /// Every header in `values` is sent.
    all: bool,
    /// The names in `values` that are sent with each shared render: those of `HEADERS_VARIED`, and [`VARIED_COOKIES`].
    varied: Vec<String>,
}

impl SelectingHeaders {
    /// Reads a request. `cookies`: its cookies.
    #[must_use]
    pub fn of(headers: &HeaderMap, rules: &HeaderRules, cookies: &VisitorCookies) -> Self {
        let mut selecting = Self { all: matches!(rules.forward, Forward::All), ..Self::default() };
        if !cookies.varied.is_empty() {
            selecting.values.push((VARIED_COOKIES.to_owned(), cookies.varied.clone()));
            selecting.varied.push(VARIED_COOKIES.to_owned());
        }
        for name in headers.keys() {
            let text = name.as_str();
            let is_varied = rules.varied.contains(name);
            let value = if let Some(rule) = rules.normalized.iter().rfind(|rule| rule.name == *name) {
                // The origin gets a listed value or none, so this header selects no other page.
                let Some(value) = joined(headers, name).and_then(|text| listed(rule, &text)) else { continue };
                Some(value)
            } else {
                let is_forwarded = match &rules.forward {
                    Forward::All => true,
                    Forward::Only(names) => is_varied || names.contains(name),
                };
                let text = (may_select(name) && is_forwarded).then(|| joined(headers, name)).flatten();
                text.map(|text| combined(name, &text))
            };
            match value {
                Some(value) => {
                    selecting.values.push((text.to_owned(), value));
                    selecting.varied.extend(is_varied.then(|| text.to_owned()));
                }
                None if text != "cookie" || cookies.count_for_vary() => selecting.withheld.push(text.to_owned()),
                None => {}
            }
        }
        selecting
    }

    /// The headers for the origin: all that may be sent, or only `fields`. Varied headers and cookies are always sent.
    #[must_use]
    pub fn headers(&self, fields: Option<&VaryFields>) -> HeaderMap {
        let is_sent = |name: &str| self.is_varied(name) || fields.is_none_or(|fields| fields.contains(name));
        let pairs = self.values.iter().filter(|(name, _)| self.all || is_sent(name));
        let header = |(name, value): &(String, String)| {
            let name = if name == VARIED_COOKIES { header::COOKIE } else { name.parse().ok()? };
            Some((name, HeaderValue::try_from(value).ok()?))
        };
        pairs.filter_map(header).collect()
    }

    /// Returns whether the response varies on a header that this request has, that may be sent, and that was not sent.
    #[must_use]
    pub fn lacks(&self, fields: &VaryFields, sent: Option<&VaryFields>) -> bool {
        let was_sent = |name: &str| self.all || self.is_varied(name) || sent.is_none_or(|sent| sent.contains(name));
        fields.iter().any(|field| self.value(field).is_some() && !was_sent(field))
    }

    /// Returns whether a response varies on a header of this request that the origin did not get. `sent`: the headers that it
    /// got.
    #[must_use]
    pub fn varies_on_unsent(&self, response: &HeaderMap, sent: Option<&VaryFields>) -> bool {
        VaryFields::of(response).map_or(!self.all, |vary| self.lacks(&vary, sent) || self.variant(&vary).is_none())
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.values.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// Returns whether the request has this cookie, with a value that selects a page.
    #[must_use]
    pub fn has_cookie(&self, name: &str) -> bool {
        let cookies = self.value(VARIED_COOKIES).unwrap_or_default();
        cookies.split("; ").any(|cookie| cookie.split('=').next() == Some(name))
    }

    fn is_varied(&self, name: &str) -> bool {
        self.varied.iter().any(|varied| varied == name)
    }

    /// Returns whether this request's varied headers or cookies may cause a response with this status: a redirect, or an error
    /// of the client. Such a response leaves no note for others.
    #[must_use]
    pub fn may_cause(&self, status: StatusCode) -> bool {
        !self.varied.is_empty() && (status.is_redirection() || status.is_client_error())
    }

    /// `fields`, and the varied headers and cookies of this request.
    #[must_use]
    pub fn with_varied(&self, fields: &VaryFields) -> VaryFields {
        let mut fields = fields.clone();
        self.varied.iter().for_each(|name| fields.insert(name.clone()));
        fields
    }

    /// The name of this request's variant: the values of `fields`. None if the request has one of `fields` that the
    /// origin did not get, so that the response cannot be for it.
    #[must_use]
    pub fn variant(&self, fields: &VaryFields) -> Option<String> {
        let mut name = String::new();
        for field in fields.iter() {
            if self.withheld.iter().any(|name| name == field) {
                return None;
            }
            name.push_str(field);
            if let Some(value) = self.value(field) {
                name.push('=');
                name.push_str(value);
            }
            name.push('\n');
        }
        (name.len() <= MAX_VARIANT_NAME).then_some(name)
    }

    /// Returns whether a response with these headers can be stored for this request, as far as `Vary` says.
    ///
    /// # Errors
    /// [`Reason::VaryStar`], or [`Reason::Vary`] as for [`SelectingHeaders::variant`].
    pub fn check_vary(&self, headers: &HeaderMap) -> Result<(), Reason> {
        let vary = VaryFields::of(headers).ok_or(Reason::VaryStar)?;
        self.variant(&vary).map(drop).ok_or(Reason::Vary)
    }

    /// Name and value of each header, for the script. The script computes [`SelectingHeaders::variant`] in the same
    /// way.
    pub fn pairs(&self) -> impl Iterator<Item = &str> {
        let withheld = self.withheld.iter().flat_map(|name| [name.as_str(), "\n"]);
        self.values.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]).chain(withheld)
    }
}

/// The requests for a page with the same selecting headers, all with personal headers or all without. A note on a class
/// does not affect other requests: they still get the stored page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestClass(String);

impl RequestClass {
    /// The class of a request for the page with this hash. `vary`: the fields on which the page is known to vary.
    #[must_use]
    pub fn of(hash: &str, selecting: &SelectingHeaders, vary: &VaryFields, has_personal_headers: bool) -> Self {
        let variant = selecting.variant(&selecting.with_varied(vary));
        let kind = if has_personal_headers { "personal" } else { "plain" };
        Self(format!("{hash} {kind} {}", variant.as_deref().unwrap_or("-")))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::rules::CookieKind;

    fn cookies(strictest: CookieKind) -> VisitorCookies {
        VisitorCookies { strictest, ..VisitorCookies::default() }
    }

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    fn listed() -> HeaderRules {
        Forward::Only(vec![header::ACCEPT_LANGUAGE, "foo".parse().unwrap()]).into()
    }

    fn variant(rules: &HeaderRules, request: &[(&'static str, &'static str)], vary: &'static str) -> Option<String> {
        SelectingHeaders::of(&headers(request), rules, &cookies(CookieKind::Unknown))
            .variant(&VaryFields::of(&headers(&[("vary", vary)]))?)
    }

    // RFC 9111 §4.1
    #[test]
    fn vary_fields_select_the_variant() {
        let name = |request| variant(&listed(), request, "Foo, Accept-Encoding").unwrap();
        assert_eq!(name(&[("foo", "1"), ("accept-language", "de")]), "foo=1\n");
        assert_eq!(name(&[("foo", "1, 2")]), name(&[("foo", "1"), ("foo", " 2 ")]));
        assert_ne!(name(&[("foo", "")]), name(&[]), "an empty one is not none");
        assert_eq!(variant(&listed(), &[], "accept, *"), None);
        assert_eq!(variant(&listed(), &[], "not a name"), None);
    }

    #[test]
    fn a_response_that_varies_on_a_withheld_header_is_for_nobody() {
        for (vary, value) in [("cookie", "a=b"), ("user-agent", "x"), ("authorization", "y")] {
            let name = |rules: &HeaderRules| {
                SelectingHeaders::of(&headers(&[(vary, value)]), rules, &cookies(CookieKind::Unknown))
            };
            let fields = VaryFields::of(&headers(&[("vary", vary)])).unwrap();
            assert_eq!(name(&listed()).variant(&fields), None, "{vary}");
            assert_eq!(name(&Forward::All.into()).variant(&fields).is_some(), vary == "user-agent", "{vary}");
            assert_eq!(variant(&listed(), &[], vary), Some(format!("{vary}\n")), "a request without it");
        }
        let nobody =
            SelectingHeaders::of(&headers(&[("cookie", "__Host-session=x")]), &listed(), &VisitorCookies::default());
        assert!(nobody.variant(&VaryFields::from_text("cookie")).is_some(), "our cookie stays here");
    }

    #[test]
    fn varied_cookies_select_the_variant_and_reach_the_origin() {
        let cookies = VisitorCookies { varied: "lang=de".to_owned(), ..cookies(CookieKind::Varied) };
        let selecting = SelectingHeaders::of(&headers(&[("cookie", "_ga=1; lang=de")]), &listed(), &cookies);
        let fields = VaryFields::from_text("cookie,edge-cookies");
        assert_eq!(selecting.variant(&fields).as_deref(), Some("cookie\nedge-cookies=lang=de\n"));
        let sent = selecting.headers(Some(&VaryFields::default()));
        assert_eq!(sent, headers(&[("cookie", "lang=de")]));
        assert!(!selecting.lacks(&fields, Some(&VaryFields::default())));
    }

    #[test]
    fn varied_headers_select_the_variant_and_always_reach_the_origin() {
        let rules = HeaderRules { varied: vec!["x-country".parse().unwrap()], ..listed() };
        let selecting =
            SelectingHeaders::of(&headers(&[("x-country", "DE"), ("foo", "1")]), &rules, &VisitorCookies::default());
        let fields = selecting.with_varied(&VaryFields::default());
        assert_eq!(selecting.variant(&fields).as_deref(), Some("x-country=DE\n"));
        assert_eq!(selecting.headers(Some(&VaryFields::default())), headers(&[("x-country", "DE")]));
        assert!(!selecting.lacks(&fields, Some(&VaryFields::default())));
        assert!(selecting.may_cause(StatusCode::FOUND) && !selecting.may_cause(StatusCode::OK));
        assert!(!SelectingHeaders::of(&headers(&[]), &rules, &VisitorCookies::default()).may_cause(StatusCode::FOUND));
    }

    #[test]
    fn a_class_has_the_requests_with_the_same_selecting_headers() {
        let class = |hash, value, has_personal_headers| {
            let selecting = SelectingHeaders::of(&headers(&[("foo", value)]), &listed(), &VisitorCookies::default());
            RequestClass::of(hash, &selecting, &VaryFields::from_text("foo"), has_personal_headers)
        };
        let own = class("a", "1", false);
        assert_eq!(own, class("a", "1", false));
        for other in [class("b", "1", false), class("a", "2", false), class("a", "1", true)] {
            assert_ne!(own, other);
        }
    }

    #[test]
    fn equal_language_preferences_have_one_spelling() {
        let request = |value| variant(&listed(), &[("accept-language", value)], "accept-language").unwrap();
        assert_eq!(request("de, en;q=0.5"), "accept-language=de,en;q=0.5\n");
        for same in ["en;q=0.5,DE", "de,en ; q=0.5", "de,, de,en;q=0.5"] {
            assert_eq!(request(same), request("de, en;q=0.5"), "{same}");
        }
        assert_ne!(request("de"), request("en"));
    }

    #[test]
    fn only_forwarded_headers_are_sent() {
        let request = headers(&[
            ("foo", "1"),
            ("x-forwarded-host", "evil"),
            ("x-other", "2"),
            ("range", "bytes=0-1"),
            ("cf-connecting-ipv6", "2001:db8::1"),
        ]);
        let sent = |rules: HeaderRules, fields: Option<&str>| {
            let fields = fields.map(VaryFields::from_text);
            let sent = SelectingHeaders::of(&request, &rules, &VisitorCookies::default()).headers(fields.as_ref());
            sent.keys().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(sent(listed(), None), "foo");
        assert_eq!(sent(listed(), Some("accept")), "");
        assert_eq!(sent(listed(), Some("foo")), "foo");
        assert_eq!(sent(Forward::All.into(), Some("")), "foo x-other");
    }
}
