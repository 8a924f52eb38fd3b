//! The visitors that the doctor stands for.

use edgefront::{
    config::{
        PageConfig,
        presets::Preset,
        rules::{CookieKind, CookieRules, Patterns},
        variables::COOKIES_IGNORED,
    },
    page_cache::{SelectingHeaders, StoredPage, visitor_cookies::VisitorCookies},
    proxy,
};
use http::{HeaderMap, HeaderValue, Uri, header};
use reqwest::cookie::{CookieStore as _, Jar};
use serde::Serialize;
use url::Url;
use xtask::failure::Failure;

use super::shop::Shop;

/// The cookies of nearly every real visitor: Google Analytics and Meta.
const ANALYTICS: &str = "_ga=GA1.1.1093741187.1795000000; _ga_ABCDEF1234=GS2.1.s1795000000$o1$g0; \
    _gid=GA1.1.77.1795; _fbp=fb.1.1795000000.42";

/// A kind of visitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Visitor {
    WithoutCookies,
    WithAnalytics,
    /// Has the cookies that the shop set during the crawl.
    WithOwnCookies,
    SignedIn,
}

impl Visitor {
    /// The visitor as the subject of a sentence.
    pub const fn subject(self) -> &'static str {
        match self {
            Self::WithoutCookies => "visitors without cookies",
            Self::WithAnalytics => "visitors with analytics cookies",
            Self::WithOwnCookies => "visitors with the shop's own cookies",
            Self::SignedIn => "signed-in visitors",
        }
    }

    /// Returns whether the expected hit ratio counts this visitor.
    pub const fn counts_for_hit_ratio(self) -> bool {
        matches!(self, Self::WithoutCookies | Self::WithAnalytics)
    }
}

/// The cookies of all visitors.
pub struct Visitors {
    /// The cookies that the shop set during the crawl.
    pub own: Jar,
    /// The cookies of the first group of each kind: see [`groups`](super::groups).
    pub group_cookies: Vec<String>,
    login: Option<HeaderValue>,
}

impl Visitors {
    /// # Errors
    /// When `--login` is given without cookies, or is no header value.
    pub fn new(login: Option<&str>) -> Result<Self, Failure> {
        let refused = |cause| Failure::new(cause, "copy the value of the header Cookie from a browser");
        let Some(text) = login.map(|text| text.trim().trim_start_matches("Cookie:").trim()) else {
            return Ok(Self { own: Jar::default(), group_cookies: Vec::new(), login: None });
        };
        if text.is_empty() {
            let remedy =
                "copy the value of the header Cookie from a browser, or leave out --login and unset DOCTOR_LOGIN";
            return Err(Failure::new("--login or DOCTOR_LOGIN is empty", remedy));
        }
        if !text.contains('=') {
            return Err(refused("--login has no name=value"));
        }
        let login = HeaderValue::from_str(text).map_err(|_| refused("--login is not a Cookie header"))?;
        Ok(Self { own: Jar::default(), group_cookies: Vec::new(), login: Some(login) })
    }

    /// Replaces the cookies of the crawl by those of a new visitor of these pages.
    pub async fn start_again(&mut self, shop: &Shop, pages: &[Url]) {
        self.own = Jar::default();
        for url in pages {
            if let Ok(page) = shop.get(url, self.own.cookies(url).as_ref()).await {
                self.own.set_cookies(&mut page.headers.get_all(header::SET_COOKIE).iter(), url);
            }
        }
    }

    /// The visitors with cookies, and what they send to `url`. A visitor without cookies for it is left out.
    pub fn with_cookies(&self, url: &Url) -> Vec<(Visitor, HeaderValue)> {
        let analytics =
            self.group_cookies.iter().fold(ANALYTICS.to_owned(), |cookies, group| format!("{cookies}; {group}"));
        let analytics = HeaderValue::try_from(analytics).ok();
        [
            (Visitor::WithAnalytics, analytics),
            (Visitor::WithOwnCookies, self.own.cookies(url)),
            (Visitor::SignedIn, self.login.clone()),
        ]
        .into_iter()
        .filter_map(|(visitor, cookies)| Some((visitor, cookies?)))
        .collect()
    }

    /// The variant of a visitor with only the cookies of the first groups.
    pub fn group_variant(&self, config: &PageConfig) -> SelectingHeaders {
        let cookies = HeaderValue::try_from(self.group_cookies.join("; ")).ok().filter(|cookies| !cookies.is_empty());
        cookies.and_then(|cookies| variant(&cookies, config)).unwrap_or_default()
    }
}

/// Returns whether edgefront answers a visitor's request with a stored page. `cookies`: the visitor's; None without
/// any.
pub fn gets(page: &StoredPage, cookies: Option<&HeaderValue>, config: &PageConfig) -> bool {
    let (judged, selecting) = judge(cookies, config);
    page.may_be_served_to(&judged) && selecting.variant(&page.vary).is_some_and(|variant| variant == page.variant)
}

/// The headers and varied cookies that select the variant which a visitor gets instead of the page for everybody, such as a language.
/// None without a varied cookie.
pub fn variant(cookies: &HeaderValue, config: &PageConfig) -> Option<SelectingHeaders> {
    let (judged, selecting) = judge(Some(cookies), config);
    (!judged.varied.is_empty()).then_some(selecting)
}

fn judge(cookies: Option<&HeaderValue>, config: &PageConfig) -> (VisitorCookies, SelectingHeaders) {
    let headers: HeaderMap = cookies.map(|value| (header::COOKIE, value.clone())).into_iter().collect();
    let judged = VisitorCookies::of(&headers, &config.cookies, &config.headers.varied);
    let selecting = SelectingHeaders::of(&headers, &config.headers, &judged);
    (judged, selecting)
}

/// The `Cookie` header that the shop gets behind edgefront: the CSRF cookie has the value of all visitors.
pub fn behind_edgefront(cookies: &HeaderValue, rules: &CookieRules) -> HeaderValue {
    let mut headers = HeaderMap::from_iter([(header::COOKIE, cookies.clone())]);
    if let Some(csrf) = &rules.csrf {
        proxy::protect(&mut headers, csrf, &Uri::default(), true);
    }
    headers.remove(header::COOKIE).unwrap_or_else(|| cookies.clone())
}

/// The cookies without the varied ones. None if none remains.
pub fn without_varied(cookies: &HeaderValue, rules: &CookieRules) -> Option<HeaderValue> {
    without(cookies, |name, value| rules.kind(name, value) == CookieKind::Varied)
}

/// The cookies without some of them. None if none remains.
pub fn without(cookies: &HeaderValue, is_left_out: impl Fn(&str, &str) -> bool) -> Option<HeaderValue> {
    if !pairs(cookies).any(|(name, value)| is_left_out(name, value)) {
        return Some(cookies.clone());
    }
    let others = pairs(cookies).filter(|(name, value)| !is_left_out(name, value));
    let others: Vec<_> = others.map(|(name, value)| format!("{name}={value}")).collect();
    HeaderValue::try_from(others.join("; ")).ok().filter(|header| !header.is_empty())
}

/// The names of the cookies by which the shop could recognize their visitor.
pub fn identifying_cookies(cookies: &HeaderValue, rules: &CookieRules) -> Vec<String> {
    let identifying = pairs(cookies).filter(|(name, value)| rules.kind(name, value) >= CookieKind::Hole);
    identifying.map(|(name, _)| name_in_rules(name)).collect()
}

/// The name of a cookie in rules. `AdonisJS` names a cookie by the UUID of the session, and a pattern covers those of all visitors.
pub fn name_in_rules(name: &str) -> String {
    let is_hex =
        |(group, length): (&str, usize)| group.len() == length && group.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_uuid = name.split('-').count() == 5 && name.split('-').zip([8, 4, 4, 4, 12]).all(is_hex);
    if is_uuid { "*-*-*-*-*".to_owned() } else { name.to_owned() }
}

/// The names of a visitor's cookies if the rules ignore all of them, without the CSRF cookie. None if the rules do not
/// ignore one.
pub fn ignored_cookies(cookies: &HeaderValue, rules: &CookieRules) -> Option<Vec<String>> {
    let are_ignored = pairs(cookies).all(|(name, value)| rules.kind(name, value) == CookieKind::Ignored);
    let names = pairs(cookies).map(|(name, _)| name_in_rules(name));
    are_ignored.then(|| names.filter(|name| rules.csrf.as_deref() != Some(name)).collect())
}

/// Returns whether the doctor may propose `COOKIES_PERSONAL` for a cookie. Nearly all visitors have the cookies that the
/// default list ignores, so such a rule would end the hits. A cookie of holes would no longer get them filled.
pub fn may_be_personal(name: &str, rules: &CookieRules) -> bool {
    let ignored = Preset::DEFAULT.get(COOKIES_IGNORED.name).unwrap_or_default();
    let ignored = Patterns::parse(ignored).unwrap_or_default();
    !rules.holes.contains(name) && !ignored.contains(name)
}

/// The names and values of the cookies.
pub fn pairs(cookies: &HeaderValue) -> impl Iterator<Item = (&str, &str)> {
    let text = cookies.to_str().unwrap_or_default();
    text.split(';').filter_map(|cookie| cookie.trim().split_once('='))
}
