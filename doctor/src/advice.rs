//! The remedy for a page that edgefront does not store: a rule with its risk, or a change of the shop.

use edgefront::{
    config::{
        PageConfig,
        rules::{PathPatterns, Patterns},
    },
    page_cache::Reason,
};
use serde::Serialize;

use super::{
    cookies, kinds, negotiation, parameters,
    personal::{self, has_personal_name},
};

/// One variable with a value to add, and the risk of it in one sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rule {
    pub variable: &'static str,
    pub value: String,
    pub risk: &'static str,
}

/// The variables that say which pages the visitors with a cookie get. `COOKIES_HOLES` wins over all of them but the first.
pub const OF_VISITORS: [&str; 3] = ["COOKIES_PERSONAL", "COOKIES_VARIED", "COOKIES_IGNORED"];

impl Rule {
    /// Returns whether the rule says which pages the visitors with one of these cookies get.
    pub fn is_of_cookie_in(&self, names: &Patterns) -> bool {
        OF_VISITORS.contains(&self.variable) && self.value.split('=').next().is_some_and(|name| names.contains(name))
    }
}

/// The remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advice {
    /// These rules together may change the decision. A trial shows whether they do.
    Rules(Vec<Rule>),
    /// The page belongs to one visitor: the reason, and the rule that keeps it personal.
    Personal(String, Rule),
    /// No rule helps. If the page is the same for all visitors, the shop can declare it shared.
    Declare(String),
    /// No rule helps, or none is safe: what to do instead.
    NoRule(String),
}

/// The comparison of the renders for two visitors without cookies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renders {
    Equal,
    /// They differ in the CSRF token only, and `CSRF_COOKIE` makes them equal.
    EqualWithCsrfCookie,
    /// They differ in CSRF tokens only, which holes may cover.
    DifferentTokens,
    Different,
}

/// The facts about a page that is not stored.
pub struct Refused<'a> {
    pub reason: Reason,
    /// The pattern of its kind, such as `/catalogue/*/`.
    pub kind: &'a str,
    /// The last segment of the path may name an item. A category is none.
    pub may_be_item: bool,
    /// Several pages at the top of the site have one template.
    pub has_siblings_at_top: bool,
    /// The canonical path.
    pub path: &'a str,
    /// The shop says that the page is the same for all visitors.
    pub is_claimed: bool,
    /// See [`Examined::harmless_cookies`](super::examine::Examined::harmless_cookies).
    pub harmless_cookies: &'a [String],
    /// The names of the cookies that the response sets.
    pub set_cookies: &'a [String],
    /// See [`tokens::double_submit_cookie`](super::tokens::double_submit_cookie).
    pub csrf_cookie: Option<&'a str>,
    /// See [`cookies::common`].
    pub common_cookies: &'a [(String, String)],
    pub renders: Renders,
    /// Size of the body.
    pub bytes: usize,
    pub config: &'a PageConfig,
}

/// The risk of `CSRF_COOKIE`.
pub const CSRF_RISK: &str = "edgefront takes the CSRF check over: a browser that sends neither Sec-Fetch-Site, Origin nor \
    Referer cannot submit forms.";
/// The risk of `COOKIES_DROPPED`.
pub const DROP_RISK: &str = "a visitor gets this cookie only with the first page that is not shared; a form or script on \
    these pages that needs the cookie fails for new visitors, unless a hole starts their session first: see \
    docs/holes.md#sessions-of-new-visitors.";
/// The risk of `COOKIES_PERSONAL` for a cookie of pages that then are shared.
pub const PERSONAL_RISK: &str = "visitors with this cookie always get pages of their own, so they cause no hits.";
const ITEM_RISK: &str = "visitors see a page that is up to PAGE_TTL old, 300 s by default: a changed price or stock \
    appears later, unless the shop purges the page. They see the same page in every country: if prices depend on CF-IPCountry, set \
    HEADERS_VARIED. Each value counts as an item of the ranking.";
const TOP_RISK: &str = "each page and file at the top of the site counts as an item. Name further pages of one visitor in PATHS_PERSONAL. \
    Visitors without the shop's cookies see a page that is up to PAGE_TTL old, 300 s by default, and the same page in every country.";
/// The risk of `ITEM_ROUTES` for pages that are stored without it.
pub const STORED_ITEM_RISK: &str = "each view counts in the ranking, which costs Redis commands. Pages at these paths without stated freshness \
    are stored, too.";
const SHARED_RISK: &str = "visitors without the shop's cookies see a page that is up to PAGE_TTL old, 300 s by default, \
    and the same page in every country.";
const FORBIDDEN_RISK: &str = "the shop forbids caches to store these pages, and edgefront then stores them. Visitors \
    without the shop's cookies see a page that is up to PAGE_TTL old, 300 s by default, and the same page in every country.";
const KEPT_RISK: &str = "a visitor can have a page stored for each value of this parameter, until other pages make room in \
    PAGE_TOTAL_BYTES.";
const LISTED_RISK: &str =
    "none beyond that of the other rules: only pages with this value of the parameter are shared.";
/// The risk of `WRITES_PERSONAL`.
pub const WRITE_RISK: &str =
    "a write that changes the page for everybody, such as a review, shows there after PAGE_TTL.";
/// The risk of `HOLES` with the source `token`.
pub const TOKEN_RISK: &str = "a token outside of hidden fields, meta elements, scripts and addresses needs JavaScript. Try each form and \
    button as a new visitor: see docs/holes.md#tokens-of-a-session.";
/// The risk of `COOKIES_HOLES`.
pub const HOLE_COOKIE_RISK: &str = "none beyond that of HOLES: pages without holes come from the shop.";
/// The risk of `PATHS_PERSONAL`.
pub const PATH_RISK: &str = "none for visitors: these pages always come from the shop.";
const SIZE_RISK: &str = "fewer pages fit into PAGE_TOTAL_BYTES.";

/// The remedy for a page.
pub fn advise(page: &Refused) -> Advice {
    let no_rule = |text: &str| Advice::NoRule(text.to_owned());
    match page.reason {
        Reason::SetCookie => cookies::drop(page),
        Reason::NoItem => name_items(page),
        Reason::TooLarge => {
            let value = page.bytes.checked_next_power_of_two().unwrap_or(page.bytes).to_string();
            Advice::Rules(vec![Rule { variable: "PAGE_MAX_BYTES", value, risk: SIZE_RISK }])
        }
        Reason::Path => no_rule("Intended: PATHS_PERSONAL names the path."),
        Reason::Private | Reason::NoStore | Reason::NoCache | Reason::NotFresh => share_path(
            page,
            FORBIDDEN_RISK,
            "The shop lets no cache answer in its place. If these pages are the same for all visitors, let the shop \
             send Cache-Control: public, s-maxage=300.",
        ),
        Reason::Parameters => keep_parameters(page).unwrap_or_else(|| no_rule(
            "Add parameters that do not change the page to QUERY_IGNORED. Risk: if one does change the page, visitors \
             get a page for another value.",
        )),
        Reason::Dynamic => no_rule("The parameter _ asks for a page of one request."),
        Reason::Spelling => {
            no_rule("Visitors get the stored page if another address stores it. Link the canonical address.")
        }
        Reason::Status => no_rule("Only pages with status 200 are stored without stated freshness."),
        Reason::Encoding => {
            no_rule("The shop compresses although it is asked not to: let it obey Accept-Encoding: identity.")
        }
        Reason::Vary | Reason::VaryStar => {
            no_rule("Let the shop send no Vary: *, and name only headers that change the page.")
        }
        Reason::Personal => no_rule(
            "The page is one visitor's: it has an Edge-* header, or contains the id of a session. Let the shop keep such ids \
             in cookies only.",
        ),
        Reason::Unpopular => no_rule(
            "None is needed: the shop names the item with Edge-Item, and its page is stored once it is popular.",
        ),
        _ => no_rule("No rule changes this."),
    }
}

/// The rules as text: `CSRF_COOKIE csrftoken and COOKIES_DROPPED …`.
pub fn names(rules: &[Rule]) -> String {
    rules.iter().map(|rule| format!("{} {}", rule.variable, rule.value)).collect::<Vec<_>>().join(" and ")
}

/// A rule that names items, for a shop that states no freshness.
fn name_items(page: &Refused) -> Advice {
    if let Some((text, rule)) = keep_personal(page.kind, page.renders) {
        return Advice::Personal(text, rule);
    }
    if let Some(rule) = item_parameter(page) {
        return Advice::Rules(std::iter::once(rule).chain(kept_parameters(page).unwrap_or_default()).collect());
    }
    if let Some(value) = kinds::item_route(page.kind).filter(|_| page.may_be_item) {
        return Advice::Rules(vec![Rule { variable: "ITEM_ROUTES", value, risk: ITEM_RISK }]);
    }
    if let Some(rules) = items_at_top(page) {
        return Advice::Rules(rules);
    }
    share_path(
        page,
        SHARED_RISK,
        "The shop states no freshness, and no rule fits the address. If the page is the same for all visitors, let the \
         shop send Cache-Control: public, s-maxage=60.",
    )
}

/// The rules for many pages at the top of the site, if several have one template, and they set no cookies. Pages with a known name stay personal.
fn items_at_top(page: &Refused) -> Option<Vec<Rule>> {
    let end = page.kind.strip_prefix("/*").filter(|end| ["", "/"].contains(end))?;
    let is_item = page.may_be_item && page.has_siblings_at_top;
    let is_safe = is_item && page.set_cookies.is_empty() && page.renders == Renders::Equal;
    let items = Rule { variable: "ITEM_ROUTES", value: format!("/{{item}}{end}"), risk: TOP_RISK };
    let paths = personal::paths_at_top(&page.config.urls.personal_paths, end);
    let personal = Rule { variable: "PATHS_PERSONAL", value: paths, risk: PATH_RISK };
    is_safe.then(|| std::iter::once(items).chain(Some(personal).filter(|rule| !rule.value.is_empty())).collect())
}

/// A rule that shares the pages of a kind, or `otherwise`. A kind with parameters gets none, except those of lists: visitors
/// could store a page for each value.
fn share_path(page: &Refused, risk: &'static str, otherwise: &str) -> Advice {
    if let Some((text, rule)) = keep_personal(page.kind, page.renders) {
        return Advice::Personal(text, rule);
    }
    let kept = kept_parameters(page).filter(|_| page.renders != Renders::Different);
    match path_pattern(page.kind).zip(kept) {
        Some((value, kept)) => {
            let path = Rule { variable: "PATHS_SHARED", value, risk };
            Advice::Rules(std::iter::once(path).chain(kept).chain(item_parameter(page)).collect())
        }
        None => Advice::Declare(otherwise.to_owned()),
    }
}

/// The rules for pages of items with more parameters than that of the item. None if one of them could have any value.
fn keep_parameters(page: &Refused) -> Option<Advice> {
    let kept = kept_parameters(page).filter(|kept| kept.iter().any(|rule| rule.value.contains('=')));
    kept.filter(|_| page.renders != Renders::Different).map(Advice::Rules)
}

/// The rules for the kind's parameters. None if one of them could have any value.
fn kept_parameters(page: &Refused) -> Option<Vec<Rule>> {
    let kept = parameters::kept(page.kind, &page.config.urls)?;
    let rule = |name: &str| {
        let risk = if name.contains('=') { LISTED_RISK } else { KEPT_RISK };
        Rule { variable: "QUERY_KEPT", value: name.to_owned(), risk }
    };
    Some(kept.into_iter().map(rule).collect())
}

/// The rule for items that a query parameter names.
fn item_parameter(page: &Refused) -> Option<Rule> {
    let value = parameters::item_route(page.kind, &page.config.urls).filter(|_| page.may_be_item)?;
    Some(Rule { variable: "ITEM_ROUTES", value, risk: ITEM_RISK })
}

/// The rule for a page of one visitor, with the reason. None if no sign says that the page is one, or if the rule would
/// also keep other pages personal.
pub fn keep_personal(kind: &str, renders: Renders) -> Option<(String, Rule)> {
    let path = path_pattern(kind)?;
    let has_name = has_personal_name(&path);
    // A rule for a path with parameters holds for its other pages, too.
    if !has_name && (renders != Renders::Different || path.contains('*') || kind.contains('?')) {
        return None;
    }
    let reason = match renders {
        Renders::Equal => "The path is one of a visitor's own pages",
        Renders::EqualWithCsrfCookie | Renders::DifferentTokens | Renders::Different => {
            "The page differs between visitors"
        }
    };
    let text = format!("{reason}. Add {path} to PATHS_PERSONAL.");
    Some((text, Rule { variable: "PATHS_PERSONAL", value: path, risk: PATH_RISK }))
}

/// The pattern of a kind for `COOKIES_DROPPED`, `PATHS_PERSONAL` and `PATHS_SHARED`. None if it would match every page, also of
/// one language, or is no valid pattern: a path may be too long.
pub fn path_pattern(kind: &str) -> Option<String> {
    let path = kind.split('?').next()?.replace("{item}", "*");
    let before = path.split_once("/*").map(|(before, _)| before);
    let is_all = |before: &str| before.is_empty() || before.strip_prefix('/').is_some_and(negotiation::is_language);
    (!before.is_some_and(is_all) && PathPatterns::parse(&path).is_ok()).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    fn rules(reason: Reason, kind: &str, set_cookies: &[&str]) -> Result<Vec<String>, String> {
        let origin = url::Url::parse("https://shop.example").unwrap();
        let config = Settings::new(&origin, None, &[("COOKIES_HOLES".to_owned(), "cart_id".to_owned())])
            .unwrap()
            .config()
            .unwrap()
            .page;
        let set_cookies: Vec<_> = set_cookies.iter().map(|name| (*name).to_owned()).collect();
        let page = Refused {
            reason,
            kind,
            may_be_item: true,
            has_siblings_at_top: true,
            path: "/books/1/",
            is_claimed: false,
            harmless_cookies: &[],
            set_cookies: &set_cookies,
            csrf_cookie: Some("csrftoken"),
            common_cookies: &[("cart".to_owned(), "e30.x".to_owned()), ("empty".to_owned(), String::new())],
            renders: Renders::Equal,
            bytes: 0,
            config: &config,
        };
        match advise(&page) {
            Advice::Rules(rules) => Ok(rules.iter().map(|rule| format!("{} {}", rule.variable, rule.value)).collect()),
            Advice::Personal(text, _) | Advice::Declare(text) | Advice::NoRule(text) => Err(text),
        }
    }

    #[test]
    fn a_cookie_is_dropped_only_where_it_is_in_the_way() {
        let dropped = rules(Reason::SetCookie, "/books/{item}/", &["csrftoken", "sid", "_ga"]).unwrap();
        let expected = [
            "CSRF_COOKIE csrftoken",
            "COOKIES_DROPPED sid@/books/*/",
            "COOKIES_PERSONAL sid",
            "COOKIES_DROPPED _ga@/books/*/",
        ];
        assert_eq!(dropped, expected);
        let double_submit = rules(Reason::SetCookie, "/books/{item}/", &["shop_csrf"]).unwrap();
        assert_eq!(double_submit, ["COOKIES_DROPPED shop_csrf@/books/*/", "COOKIES_IGNORED shop_csrf"]);
        assert!(rules(Reason::SetCookie, "/*/", &["csrftoken"]).is_ok(), "it has no path");
        let common = rules(Reason::SetCookie, "/books/{item}/", &["cart", "empty", "XSRF-TOKEN"]).unwrap();
        let expected = [
            "COOKIES_DROPPED cart@/books/*/",
            "COOKIES_VARIED cart=e30.x",
            "COOKIES_DROPPED empty@/books/*/",
            "COOKIES_PERSONAL empty",
            "COOKIES_DROPPED XSRF-TOKEN@/books/*/",
            "COOKIES_IGNORED XSRF-TOKEN",
        ];
        assert_eq!(common, expected);
        let of_holes = rules(Reason::SetCookie, "/books/{item}/", &["cart_id"]).unwrap();
        assert_eq!(of_holes, ["COOKIES_DROPPED cart_id@/books/*/"], "a personal rule would empty the holes");
        assert!(rules(Reason::SetCookie, "/*/", &["sid"]).is_err(), "it would hold for all pages");
    }

    #[test]
    fn the_last_segment_names_an_item() {
        assert_eq!(rules(Reason::NoItem, "/books/*/", &[]), Ok(vec!["ITEM_ROUTES /books/{item}/".to_owned()]));
        for kind in ["/", "/a/*/*", "/books/*/reviews/", "/blog/page/*/"] {
            assert_eq!(rules(Reason::NoItem, kind, &[]), Ok(vec![format!("PATHS_SHARED {kind}")]));
        }
        assert!(rules(Reason::NoItem, "/books/*?color", &[]).is_err());
        for kind in ["/*", "/*/"] {
            let top = rules(Reason::NoItem, kind, &[]).unwrap();
            assert_eq!(top[0], format!("ITEM_ROUTES {}", kind.replace('*', "{item}")));
            assert!(top[1].starts_with("PATHS_PERSONAL /") && top[1].contains(&kind.replace('*', "cart")), "{top:?}");
            assert!(rules(Reason::NoItem, kind, &["sid"]).is_err(), "{kind}");
        }
        let route = "ITEM_ROUTES /book?id={item}".to_owned();
        assert_eq!(rules(Reason::NoItem, "/book?id", &[]), Ok(vec![route.clone()]));
        assert_eq!(rules(Reason::NoStore, "/book?id", &[]), Ok(vec!["PATHS_SHARED /book".to_owned(), route]));
        let item = "/i?id&route=book".to_owned();
        let expected = ["ITEM_ROUTES /i?id={item}", "QUERY_KEPT route=book"].map(str::to_owned).to_vec();
        assert_eq!(rules(Reason::NoItem, &item, &[]), Ok(expected));
        let kept = Ok(vec!["QUERY_KEPT route=book".to_owned()]);
        assert_eq!(rules(Reason::Parameters, &item, &[]), kept);
        assert!(rules(Reason::Parameters, "/i?id&route=cart", &[]).is_err());
        let list = rules(Reason::NoItem, "/books?page&sort", &[]).unwrap();
        assert_eq!(list, ["PATHS_SHARED /books", "QUERY_KEPT page", "QUERY_KEPT sort"]);
    }

    #[test]
    fn only_a_single_page_or_one_with_a_known_name_is_kept_personal() {
        use Renders::{Different, Equal, EqualWithCsrfCookie};
        let path = |kind: &str, renders| keep_personal(kind, renders).map(|(_, rule)| rule.value);
        for (kind, renders, expected) in [
            ("/cart", Equal, Some("/cart")),
            ("/Identity/Account/Login", Equal, Some("/Identity/Account/Login")),
            ("/account/*?page", EqualWithCsrfCookie, Some("/account/*")),
            ("/about", Different, Some("/about")),
            ("/about?id", Different, None),
            ("/about", EqualWithCsrfCookie, None),
            ("/books/*", Different, None),
            ("/*", Different, None),
            ("/books/cart-wheel", Equal, None),
        ] {
            assert_eq!(path(kind, renders).as_deref(), expected, "{kind} {renders:?}");
        }
    }

    #[test]
    fn a_pattern_of_a_kind_never_covers_the_site_or_a_language() {
        for (kind, expected) in [("/*", None), ("/en/*", None), ("/de-at/*/", None), ("/dp/*?x", Some("/dp/*"))] {
            assert_eq!(path_pattern(kind).as_deref(), expected, "{kind}");
        }
    }

    #[test]
    fn only_a_path_can_override_what_the_shop_forbids() {
        for reason in [Reason::Path, Reason::VaryStar, Reason::Personal] {
            assert!(rules(reason, "/books/*/", &[]).is_err(), "{reason:?}");
        }
        for reason in [Reason::Private, Reason::NoStore, Reason::NoCache, Reason::NotFresh] {
            assert_eq!(rules(reason, "/books/*/", &[]), Ok(vec!["PATHS_SHARED /books/*/".to_owned()]), "{reason:?}");
            for kind in ["/orders/*", "/books/*?color"] {
                assert!(rules(reason, kind, &[]).is_err(), "{reason:?} {kind}");
            }
        }
    }
}
