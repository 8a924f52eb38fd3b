//! The cookies of one request, judged by the rules of the storefront.

use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::{
    config::rules::{CookieKind, CookieRules},
    ports::sort,
    sessions::cookie,
};

/// Largest number of cookies that are judged. A browser keeps at most 180 for a site; each one is compared with every
/// rule.
const MAX_COOKIES: usize = 200;

/// The judgement on the cookies of a request, and on the form of the page that it asks for. The default is a visitor without
/// cookies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VisitorCookies {
    /// The strictest kind among the cookies except those of holes; [`CookieKind::Ignored`] without any. After a change or a choice
    /// of the visitor, a cookie of holes counts as [`CookieKind::Unknown`].
    pub strictest: CookieKind,
    /// A cookie changes the holes of pages ([`CookieKind::Hole`]).
    pub in_holes: bool,
    /// The varied cookies by name, `currency=EUR; django_language=de`. Empty without one.
    pub varied: String,
    /// A script asks for a part of the page under the page's URL.
    pub asks_for_part: bool,
    /// `Accept` names neither HTML nor every type.
    pub refuses_html: bool,
}

impl VisitorCookies {
    /// Judges a request. edgefront's own cookies do not count. `varied`: the headers that select a page
    /// (`HEADERS_VARIED`).
    #[must_use]
    pub fn of(headers: &HeaderMap, rules: &CookieRules, varied: &[HeaderName]) -> Self {
        let asks_for_part = headers.iter().any(|(name, value)| asks_for_part(name, value) && !varied.contains(name));
        let mut strictest = CookieKind::Ignored;
        let mut varied: Vec<&str> = Vec::new();
        let mut in_holes = false;
        for (index, cookie) in cookie::of_origin(headers).enumerate() {
            if index == MAX_COOKIES {
                strictest = strictest.max(CookieKind::Unknown);
                break;
            }
            // A cookie that is not UTF-8 matches no rule.
            let pair = std::str::from_utf8(cookie).ok().and_then(|text| Some((text, text.split_once('=')?)));
            let kind = pair.map_or(CookieKind::Unknown, |(_, (name, value))| rules.kind(name, value));
            if kind == CookieKind::Hole {
                in_holes = true;
                continue;
            }
            strictest = strictest.max(kind);
            if let (CookieKind::Varied, Some((text, (name, _)))) = (kind, pair) {
                // The cookie is sent twice, and edgefront cannot know which value the origin reads.
                if varied.iter().any(|other| other.split_once('=').is_some_and(|(other, _)| other == name)) {
                    strictest = strictest.max(CookieKind::Unknown);
                } else {
                    varied.push(text);
                }
            }
        }
        // The next page after a change may have a flash message outside of the holes. After a choice, all pages may differ there.
        if in_holes && (cookie::has_changed(headers) || cookie::has_chosen(headers)) {
            strictest = strictest.max(CookieKind::Unknown);
        }
        sort::sort_by(&mut varied, Ord::cmp);
        Self { strictest, in_holes, varied: varied.join("; "), asks_for_part, refuses_html: refuses_html(headers) }
    }

    /// Returns whether the origin may answer this request differently from one without cookies.
    #[must_use]
    pub fn identify(&self) -> bool {
        self.in_holes || self.asks_for_part || self.count_for_vary()
    }

    /// Returns whether a page that varies on `Cookie` may differ for the visitor. The cookies of holes change only holes,
    /// and they are filled.
    #[must_use]
    pub fn count_for_vary(&self) -> bool {
        self.strictest >= CookieKind::Unknown
    }
}

/// Returns whether a header shows that a script loads a part of a page from the page's own URL. htmx, Next.js, Turbo,
/// Inertia, pjax, Unpoly, and libraries that name `XMLHttpRequest` send such headers. An origin that says nothing about
/// caching may name no such header in `Vary`.
fn asks_for_part(name: &HeaderName, value: &HeaderValue) -> bool {
    match name.as_str() {
        "hx-request" | "rsc" | "turbo-frame" | "x-inertia" | "x-pjax" | "x-up-version" => true,
        // Android's browsers in apps send the app's name at each page.
        "x-requested-with" => value.as_bytes().eq_ignore_ascii_case(b"xmlhttprequest"),
        _ => false,
    }
}

/// Returns whether `Accept` names neither HTML nor all types (RFC 9110 §12.5.1).
fn refuses_html(headers: &HeaderMap) -> bool {
    let mut lines = headers.get_all(header::ACCEPT).iter().filter_map(|line| line.to_str().ok()).peekable();
    let wants = |line: &str| ["html", "*/*", "text/*"].iter().any(|range| line.to_ascii_lowercase().contains(range));
    lines.peek().is_some() && !lines.any(|line| line.trim().is_empty() || wants(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::rules::Patterns;

    fn judge(lines: &[&[u8]]) -> (CookieKind, String) {
        let rules = CookieRules {
            ignored: Patterns::parse("_ga*").unwrap(),
            personal: Patterns::parse("auth").unwrap(),
            holes: Patterns::parse("sid").unwrap(),
            varied: CookieRules::parse_varied("lang, currency=EUR|USD").unwrap(),
            ..CookieRules::default()
        };
        let line = |line: &&[u8]| (header::COOKIE, HeaderValue::from_bytes(line).unwrap());
        let VisitorCookies { strictest, varied, .. } =
            VisitorCookies::of(&lines.iter().map(line).collect(), &rules, &[]);
        (strictest, varied)
    }

    #[test]
    fn the_strictest_cookie_decides() {
        for (lines, kind, varied) in [
            (&[][..], CookieKind::Ignored, ""),
            (&[&b"_ga=1; __Host-session=x"[..]], CookieKind::Ignored, ""),
            (&[b"lang=de; _ga=1; currency=EUR"], CookieKind::Varied, "currency=EUR; lang=de"),
            (&[b"lang=de", b"currency=EUR"], CookieKind::Varied, "currency=EUR; lang=de"),
            (&[b"lang=de; basket=1"], CookieKind::Unknown, "lang=de"),
            (&[b"lang=de; lang=en"], CookieKind::Unknown, "lang=de"),
            (&[b"currency=GBP"], CookieKind::Unknown, ""),
            (&[b"auth=1; basket=1"], CookieKind::Personal, ""),
            (&[b"sid=1; _ga=1"], CookieKind::Ignored, ""),
            (&[b"sid=1; __Host-session-changed=1"], CookieKind::Unknown, ""),
            (&[b"__Host-session-changed=1"], CookieKind::Ignored, ""),
            (&[b"sid=1; __Host-session-choice=1"], CookieKind::Unknown, ""),
            (&[b"__Host-session-choice=1"], CookieKind::Ignored, ""),
            (&[b"flag"], CookieKind::Unknown, ""),
            (&[b"_ga=\xff"], CookieKind::Unknown, ""),
        ] {
            assert_eq!(judge(lines), (kind, varied.to_owned()), "{lines:?}");
        }
    }
}
