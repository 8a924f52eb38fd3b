//! The cookies of one request, judged by the rules of the storefront.

use http::{HeaderMap, HeaderName};

use crate::{
    config::rules::{CookieKind, CookieRules},
    ports::sort,
    sessions::cookie,
};

/// Largest number of cookies that are judged. A browser keeps at most 180 for a site; each one is compared with every
/// rule.
const MAX_COOKIES: usize = 200;

/// The judgement on the cookies of a request. A request of a script for a part of the page counts like one with an unknown
/// cookie: it gets a shared page only if the origin declares the page shared. The default is a visitor without cookies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VisitorCookies {
    /// The strictest kind among the cookies except those of holes; [`CookieKind::Ignored`] without any, and
    /// [`CookieKind::Unknown`] at least for a request for a part of the page.
    pub strictest: CookieKind,
    /// A cookie changes the holes of pages ([`CookieKind::Hole`]).
    pub in_holes: bool,
    /// The varied cookies by name, `currency=EUR; django_language=de`. Empty without one.
    pub varied: String,
}

impl VisitorCookies {
    /// Judges the cookies of a request, except edgefront's own. `varied`: the headers that select a page (`HEADERS_VARIED`).
    #[must_use]
    pub fn of(headers: &HeaderMap, rules: &CookieRules, varied: &[HeaderName]) -> Self {
        let mut strictest = if asks_for_part(headers, varied) { CookieKind::Unknown } else { CookieKind::Ignored };
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
        sort::sort_by(&mut varied, Ord::cmp);
        Self { strictest, in_holes, varied: varied.join("; ") }
    }

    /// Returns whether the origin could recognize the visitor by a cookie.
    #[must_use]
    pub fn identify(&self) -> bool {
        self.in_holes || self.count_for_vary()
    }

    /// Returns whether a page that varies on `Cookie` may differ for the visitor. The cookies of holes change only holes,
    /// and they are filled.
    #[must_use]
    pub fn count_for_vary(&self) -> bool {
        self.strictest >= CookieKind::Unknown
    }
}

/// Headers of scripts that load a part of a page from the page's own URL: htmx, Next.js, Inertia, pjax, Turbo, Unpoly.
const PART: [&str; 6] = ["hx-request", "rsc", "turbo-frame", "x-inertia", "x-pjax", "x-up-version"];

/// Returns whether a script asks for a part or another form of the page under its URL. An origin that says nothing about
/// caching possibly names no such header in `Vary`. Headers that select the page do not count.
fn asks_for_part(headers: &HeaderMap, varied: &[HeaderName]) -> bool {
    let header = |name: &str| headers.get(name).filter(|_| !varied.iter().any(|varied| varied == name));
    let text = |name: &str| header(name).map(|value| value.to_str().unwrap_or_default());
    // Android's browsers in apps send `X-Requested-With` with the app's name at each page.
    let is_by_script = text("x-requested-with").is_some_and(|by| by.eq_ignore_ascii_case("xmlhttprequest"));
    let wants_page = |accepted: &str| ["html", "*/*", "text/*"].iter().any(|range| accepted.contains(range));
    is_by_script
        || PART.iter().any(|name| header(name).is_some())
        || text("accept").is_some_and(|accepted| !accepted.is_empty() && !wants_page(accepted))
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, header};

    use super::*;
    use crate::config::rules::Patterns;

    fn judge(lines: &[&[u8]]) -> (CookieKind, String) {
        let rules = CookieRules {
            ignored: Patterns::parse("_ga*").unwrap(),
            personal: Patterns::parse("auth").unwrap(),
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
            (&[b"flag"], CookieKind::Unknown, ""),
            (&[b"_ga=\xff"], CookieKind::Unknown, ""),
        ] {
            assert_eq!(judge(lines), (kind, varied.to_owned()), "{lines:?}");
        }
    }
}
