//! Rules for the cookies that a page sets for new visitors.

use edgefront::{config::rules::CookieRules, proxy::SetCookie};
use http::{HeaderMap, header};

use super::{
    advice::{Advice, CSRF_RISK, DROP_RISK, PERSONAL_RISK, Refused, Rule, path_pattern},
    chance::looks_same,
    examine::Examined,
    negotiation::is_language,
    render::set_cookie_pairs,
    tokens,
    visitor::{self, Visitor},
};

/// The risk of `COOKIES_IGNORED` for the cookie of a CSRF token.
pub const TOKEN_COOKIE_RISK: &str = "the shop must keep nothing but a CSRF token in this cookie.";
const COMMON_RISK: &str =
    "visitors with another value of this cookie, such as a session with a cart, get pages of their own.";

/// Name and value of each cookie to which the shop gives the same value in two responses, unless it deletes the cookie.
pub fn equal_values(one: &HeaderMap, other: &HeaderMap) -> Vec<(String, String)> {
    let of_other = set_cookie_pairs(other);
    let lines = one.get_all(header::SET_COOKIE).iter();
    let deleted: Vec<_> = lines.map(SetCookie::of).filter(SetCookie::is_deletion).map(|cookie| cookie.name()).collect();
    let pairs = set_cookie_pairs(one).into_iter();
    pairs.filter(|pair| of_other.contains(pair) && !deleted.contains(&pair.0)).collect()
}

/// Name and value of each cookie that all new visitors get, on every page of the sample that sets it, such as an empty session or
/// the default currency. A visitor with this value sees what a visitor without cookies sees. A language is none: new visitors with
/// another language get another value.
pub fn common(sample: &[Examined]) -> Vec<(String, String)> {
    let is_common = |pair: &&(String, String)| {
        !is_language(&pair.1)
            && sample.iter().all(|page| page.equal_cookies.contains(pair) || !page.set_cookies.contains(&pair.0))
    };
    let sees_the_same = |page: &Examined| {
        let mut own = page.visits.iter().filter(|visit| visit.visitor == Visitor::WithOwnCookies);
        own.all(|visit| looks_same(&visit.differences))
    };
    if !sample.iter().all(sees_the_same) {
        return Vec::new();
    }
    let mut common: Vec<_> = sample.iter().flat_map(|page| &page.equal_cookies).filter(is_common).cloned().collect();
    common.sort();
    common.dedup();
    common
}

/// Returns whether a cookie's name suggests a session or a cart.
pub fn names_session(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["sess", "sid", "auth", "token", "cart", "basket"].iter().any(|part| name.contains(part))
}

/// Rules for the cookies that a page sets. If the shop is silent about sharing, such a cookie counts as personal.
///
/// A visitor with an unknown cookie gets the pages that the shop declares public. On such a page, only a cookie that suggests a
/// session counts as personal: the doctor's own sessions are empty, so its trial does not show a full cart. `--login` shows it.
pub fn drop(page: &Refused) -> Advice {
    let rules = &page.config.cookies;
    let kept = page.set_cookies.iter().filter(|name| !rules.is_dropped(name, page.path));
    let mut proposed = Vec::new();
    for name in kept {
        if page.csrf_cookie == Some(name) && rules.csrf.is_none() {
            proposed.push(Rule { variable: "CSRF_COOKIE", value: name.clone(), risk: CSRF_RISK });
            continue;
        }
        let Some(path) = path_pattern(page.kind) else {
            let text = "A rule in COOKIES_DROPPED for this path would hold for all pages of the shop, which is not \
                safe. Let the shop set the cookie only where it needs it.";
            return Advice::NoRule(text.to_owned());
        };
        proposed.push(Rule { variable: "COOKIES_DROPPED", value: format!("{name}@{path}"), risk: DROP_RISK });
        let may_show_cart =
            || names_session(name) && !tokens::is_csrf_cookie(name) && !page.harmless_cookies.contains(name);
        if !page.is_claimed || may_show_cart() {
            proposed.extend(of_visitors(name, page.common_cookies, rules));
        }
    }
    Advice::Rules(proposed)
}

/// The rule for visitors with this cookie. None if there is a rule already.
fn of_visitors(name: &str, common: &[(String, String)], rules: &CookieRules) -> Option<Rule> {
    let has_rule = rules.is_varied(name) || rules.personal.contains(name) || rules.ignored.contains(name);
    if has_rule || !visitor::may_be_personal(name, rules) {
        return None;
    }
    if tokens::is_csrf_cookie(name) {
        return Some(Rule { variable: "COOKIES_IGNORED", value: name.to_owned(), risk: TOKEN_COOKIE_RISK });
    }
    let value = common.iter().find(|(own, _)| own == name).map(|(_, value)| format!("{name}={value}"));
    let value = value.filter(|rule| !rule.contains([',', '|']) && CookieRules::parse_varied(rule).is_ok());
    let value = value.filter(|rule| !rule.ends_with('='));
    Some(match value {
        Some(value) => Rule { variable: "COOKIES_VARIED", value, risk: COMMON_RISK },
        None => Rule { variable: "COOKIES_PERSONAL", value: name.to_owned(), risk: PERSONAL_RISK },
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_deleted_cookie_has_no_value() {
        let headers = |lines: &[&'static str]| {
            lines.iter().map(|line| (header::SET_COOKIE, HeaderValue::from_static(line))).collect::<HeaderMap>()
        };
        let one = headers(&["session=e30.x; Path=/", "id=1", "flash=deleted; Max-Age=0"]);
        let other = headers(&["session=e30.x; Path=/", "id=2", "flash=deleted; Max-Age=0"]);
        assert_eq!(equal_values(&one, &other), [("session".to_owned(), "e30.x".to_owned())]);
    }
}
