//! Switchers: links and forms that set a language or a currency which the shop's session keeps. After such a request, a page differs
//! outside of its holes. The doctor tries links and forms sent by GET. It sends no POST, so it judges such forms by their words.

use std::collections::BTreeMap;

use edgefront::config::{Config, rules::Choices};
use html5gum::StartTag;
use http::{HeaderValue, header};
use reqwest::cookie::{CookieStore as _, Jar};
use url::Url;

use super::{
    Finding,
    compare::ComparedPage,
    effects::{Redirects, chosen_cookies, lines_without},
    preference::{Preference, names_preference},
};
use crate::{
    advice::{self, Rule},
    links,
    parameters::names_kind,
    personal::has_personal_name,
    shop::{Page, Shop, is_trouble},
    tokens::{attribute, start_tags},
    visitor,
};

const VARIABLE: &str = "CHOICES";
const RISK: &str = "none: visitors who choose get pages of their own until their session ends.";
/// Most links that are tried for one rule. One is not enough: the link to the page's own language changes nothing.
const MAX_LINKS: usize = 3;
/// Most rules that are tried.
const MAX_RULES: usize = 5;

/// Names of parameters that select an action, in lower case, such as `_action` of Astro. Parameters of [`names_kind`] can select an
/// action, too.
const ACTIONS: [&str; 6] = ["action", "_action", "do", "cmd", "op", "task"];

/// A valid entry of `CHOICES`, such as `/language/*` or `?route=common/language`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct SwitchRule(String);

impl SwitchRule {
    fn new(text: String) -> Option<Self> {
        Choices::parse(&text).is_ok().then_some(Self(text))
    }

    /// The rule of a link that probably sets a preference, such as `/language/*` for `/language/de`, or `?lang` for
    /// `/products/mug?lang=de`.
    fn of_link(link: &Url) -> Option<Self> {
        let path = link.path();
        if names_preference(path) {
            let (parent, last) = path.trim_end_matches('/').rsplit_once('/')?;
            return Self::new(if names_preference(last) { path.to_owned() } else { format!("{parent}/*") });
        }
        match link.query_pairs().find(|(name, _)| names_preference(name)) {
            Some((name, _)) => Self::new(format!("?{name}")),
            None => Self::of_action(link),
        }
    }

    /// The rule of an address with an action in its query, such as `?route=common/language/language`, or `?/currency` of SvelteKit.
    fn of_action(address: &Url) -> Option<Self> {
        let is_action = |name: &str| names_kind(name) || ACTIONS.contains(&name.to_ascii_lowercase().as_str());
        address.query_pairs().find_map(|(name, value)| {
            if value.is_empty() {
                return (name.starts_with('/') && names_preference(&name)).then(|| Self::new(format!("?{name}")))?;
            }
            (is_action(&name) && names_preference(&value)).then(|| Self::new(format!("?{name}={value}")))?
        })
    }

    fn path_and_query(&self) -> (&str, Option<&str>) {
        self.0.split_once('?').map_or((&self.0, None), |(path, query)| (path, Some(query)))
    }
}

/// Addresses that probably set a language or a currency.
#[derive(Default)]
pub struct Switchers {
    /// By rule, one link for each value.
    links: BTreeMap<SwitchRule, BTreeMap<String, Url>>,
    /// The rules of forms, with their preference.
    forms: BTreeMap<SwitchRule, Preference>,
    /// Links that may set a preference, although their names do not say so.
    pub redirects: Redirects,
}

impl Switchers {
    /// Adds a link to a page of the site.
    pub fn add_link(&mut self, link: &Url) {
        if let Some(rule) = SwitchRule::of_link(link)
            && (self.links.contains_key(&rule) || self.links.len() < MAX_RULES)
        {
            self.links.entry(rule).or_default().entry(value_of_link(link)).or_insert_with(|| link.clone());
        }
    }

    /// Adds the forms of a page. A form sent by GET counts as one link for each value that the doctor may request.
    pub fn add_forms(&mut self, html: &str, page: &Url, may_request: impl Fn(&Url) -> bool) {
        let base = links::base(html, page);
        let (mut form, mut select) = (None, None);
        for tag in start_tags(html) {
            let name = attribute(&tag, "name");
            let is_hidden = attribute(&tag, "type").is_some_and(|own| own.eq_ignore_ascii_case("hidden"));
            let field = match &**tag.name {
                b"form" => {
                    form = Form::of(&tag, page, &base);
                    if let Some(rule) = form.as_ref().and_then(Form::rule) {
                        let preference = Preference::named_in(&rule.0);
                        self.forms.insert(rule, preference);
                    }
                    continue;
                }
                b"select" => {
                    select = name;
                    continue;
                }
                b"option" => select.clone(),
                b"button" | b"input" if !is_hidden => name,
                _ => continue,
            };
            if let (Some(form), Some(name), Some(value)) = (&form, field, attribute(&tag, "value"))
                && let Some(preference) = Preference::of(&value)
            {
                let link = form.link(&name, &value);
                if !form.is_post && may_request(&link) {
                    self.add_link(&link);
                } else if form.is_post && names_preference(&name) {
                    let rule = SwitchRule::new(form.target.path().to_owned());
                    self.forms.extend(rule.map(|rule| (rule, preference)));
                }
            }
        }
    }

    /// The rules for links whose preference the session keeps. `pages`: the home page, which often has no prices, and one of a product.
    pub async fn rules_of_links(&self, shop: &Shop, pages: &[&Url], known: &Choices) -> Vec<Finding> {
        let mut findings = Vec::new();
        let is_known = |links: &[&Url]| links.iter().any(|link| known.contains(link.path(), link.query()));
        let named: Vec<_> = self.links.iter().map(|(rule, links)| (rule.clone(), links.values().collect())).collect();
        let has_name = |links: &[&Url]| links.iter().any(|link| SwitchRule::of_link(link).is_some());
        let others = self.redirects.by_rule().into_iter().filter(|(_, links)| !has_name(links));
        let others = others.filter_map(|(rule, links)| Some((SwitchRule::new(rule)?, links))).take(MAX_RULES);
        let tried: Vec<(SwitchRule, Vec<&Url>)> = named.into_iter().chain(others).collect();
        for (rule, links) in tried.iter().filter(|(_, links)| !is_known(links)) {
            eprintln!("...  trying {} in a session", rule.0);
            let trials = pages.iter().flat_map(|page| {
                links.iter().filter(move |link| **link != *page).take(MAX_LINKS).map(move |link| (*page, *link))
            });
            for (page, link) in trials {
                if is_kept_by_session(shop, page, link).await == Some(true) {
                    findings.push(finding(rule, &format!("the session keeps the choice of {link}")));
                    break;
                }
            }
        }
        findings
    }

    /// The first rule for a preference that the session keeps, or may keep.
    pub fn kept_by_session(&self, config: &Config) -> Option<String> {
        let mut tried = config.page.urls.choices.names().into_iter();
        tried.next().or_else(|| self.untried(config).next().map(|(rule, _)| rule.0.clone()))
    }

    /// The rules of forms that no other rule covers. A form to a visitor's own path does not count.
    fn untried(&self, config: &Config) -> impl Iterator<Item = (&SwitchRule, &Preference)> {
        let is_varied = |preference: &Preference| {
            config.page.cookies.varied.iter().any(|cookie| preference.is_kept_by(&cookie.name, &cookie.values))
        };
        let is_known = |rule: &SwitchRule| {
            let (path, query) = rule.path_and_query();
            config.page.urls.choices.contains(path, query)
                || config.origin.cart_routes.contains(path)
                || has_personal_name(path)
        };
        self.forms.iter().filter(move |(rule, preference)| !is_known(rule) && !is_varied(preference))
    }

    /// The rules for forms that probably set a preference, unless a cookie keeps it. A form to a visitor's own path, such as the cart,
    /// does something else. `pages`: the addresses of the shop's pages.
    pub fn rules_of_forms(&self, pages: &[Url], config: &Config) -> Vec<Finding> {
        let (to_pages, others): (Vec<_>, Vec<_>) =
            self.untried(config).partition(|(rule, _)| pages.iter().any(|page| page.path() == rule.0));
        let cause = |SwitchRule(rule): &SwitchRule, preference: Preference| {
            let noun = preference.noun();
            format!(
                "the form to {rule} probably chooses the {noun}, and the session may keep it. The doctor sends no forms by POST"
            )
        };
        let found = others.into_iter().map(|(rule, preference)| finding(rule, &cause(rule, *preference)));
        let of_page = to_pages.first().map(|(rule, preference)| finding_on_page(&cause(rule, **preference), config));
        found.chain(of_page).collect()
    }
}

/// A form that is sent to the page's site.
struct Form {
    target: Url,
    is_post: bool,
}

impl Form {
    fn of(tag: &StartTag<()>, page: &Url, base: &Url) -> Option<Self> {
        let target = links::form_target(&attribute(tag, "action").unwrap_or_default(), page, base)?;
        let is_post = attribute(tag, "method").is_some_and(|method| method.eq_ignore_ascii_case("post"));
        Some(Self { target, is_post })
    }

    /// The rule of a form whose address says that it sets a preference.
    fn rule(&self) -> Option<SwitchRule> {
        let path = self.target.path();
        match (self.is_post, names_preference(path)) {
            (false, _) => None,
            (true, true) => SwitchRule::new(path.to_owned()),
            (true, false) => SwitchRule::of_action(&self.target),
        }
    }

    /// The address to which the form is sent with one value.
    fn link(&self, name: &str, value: &str) -> Url {
        let mut link = self.target.clone();
        link.query_pairs_mut().clear().append_pair(name, value);
        link
    }
}

/// The language or the currency that a link sets.
fn value_of_link(link: &Url) -> String {
    let set = link.query_pairs().find(|(_, value)| Preference::of(value).is_some());
    let last = || link.path().trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
    set.map_or_else(last, |(_, value)| value.into_owned())
}

/// A rule for the path would also hold for all visits to the page. Visitors with a session would get pages in the wrong language, so
/// they get none of the shared ones.
fn finding_on_page(cause: &str, config: &Config) -> Finding {
    let names: Vec<_> = config.page.cookies.holes.names().collect();
    let note = format!(
        "{cause}. No rule covers a choice that is sent to the address of a page, so COOKIES_PERSONAL {} gives visitors with a session \
         pages of their own. To share pages with them, send the form to another address, or keep the choice in a cookie. If the form \
         chooses nothing, ignore this rule",
        names.join(", ")
    );
    let rule = |value| Rule { variable: "COOKIES_PERSONAL", value, risk: advice::PERSONAL_RISK };
    Finding { note, rules: names.into_iter().map(rule).collect() }
}

fn finding(SwitchRule(rule): &SwitchRule, cause: &str) -> Finding {
    Finding {
        note: format!("{cause}. With {VARIABLE} {rule}, visitors who choose get pages of their own"),
        rules: vec![Rule { variable: VARIABLE, value: rule.clone(), risk: RISK }],
    }
}

/// Returns whether the link changes the page for the same visitor, although no cookie keeps the preference. None if the shop does not
/// answer.
async fn is_kept_by_session(shop: &Shop, page: &Url, link: &Url) -> Option<bool> {
    let jar = Jar::default();
    visit(shop, page, &jar).await?;
    let sent = cookies(&jar, page);
    let sent = sent.as_ref().map_or(Some(""), |cookies| cookies.to_str().ok())?;
    let mut before = ComparedPage::new(shop, page, header::COOKIE, sent).await?;
    before.learn_seconds().await?;
    let answer = shop.get(link, cookies(&jar, link).as_ref()).await.ok().filter(|answer| !is_trouble(answer.status))?;
    // A cookie with the chosen value is no session.
    let chosen = chosen_cookies(link, &answer, page);
    jar.set_cookies(&mut lines_without(&answer.headers, &chosen), link);
    if cookies(&jar, page).is_none() {
        return Some(false);
    }
    // The first page after the switch may have a message.
    visit(shop, page, &jar).await?;
    Some(!before.is_like(&visit(shop, page, &jar).await?))
}

/// Requests an address with the visitor's cookies, and keeps those that it sets.
async fn visit(shop: &Shop, url: &Url, jar: &Jar) -> Option<Page> {
    let page = shop.get(url, cookies(jar, url).as_ref()).await.ok()?;
    jar.set_cookies(&mut page.headers.get_all(header::SET_COOKIE).iter(), url);
    (!is_trouble(page.status)).then_some(page)
}

/// The visitor's cookies without those that keep a preference. None without any.
fn cookies(jar: &Jar, url: &Url) -> Option<HeaderValue> {
    visitor::without(&jar.cookies(url)?, |name, value| names_preference(name) || Preference::of(value).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_of_a_link_covers_all_its_values() {
        let link = |address: &str| Url::parse("https://shop.example").unwrap().join(address).unwrap();
        let rule = |address: &str| SwitchRule::of_link(&link(address)).map(|SwitchRule(rule)| rule);
        for (address, expected) in [
            ("/language/de", "/language/*"),
            ("/changecurrency/6?returnurl=/", "/changecurrency/*"),
            ("/setLocale?code=de", "/setLocale"),
            ("/products/mug?id=1&lang=de", "?lang"),
            ("/en/currency/USD/", "/en/currency/*"),
        ] {
            assert_eq!(rule(address).as_deref(), Some(expected), "{address}");
        }
        let opencart = rule("/index.php?route=common/language/language&code=de");
        assert_eq!(opencart.as_deref(), Some("?route=common/language/language"));
        assert_eq!(rule("/products/mug?id=1&next=/language"), None);
    }

    #[test]
    fn switchers_are_known_by_their_words() {
        let page = Url::parse("https://shop.example/p/1?x=1").unwrap();
        let html = "<form action=/set-currency method=post></form><form action=/choose method=post><select name=lang>\
            <option value=de></select></form><form><button name=locale value=en><input name=q value=de></form>\
            <form action=/search method=post><input type=hidden name=lang value=de></form>\
            <form action=/language><select name=code><option value=de>Deutsch<option> fr </select></form>\
            <form action=//other.example/lang method=post></form>\
            <form action='/index.php?route=common/currency' method=post></form>\
            <form action='/set-locale;jsessionid=0A1B' method=post></form><form action='/langarm' method=post></form>";
        let mut switchers = Switchers::default();
        switchers.add_forms(html, &page, |_| true);
        let forms: Vec<_> =
            switchers.forms.iter().map(|(rule, preference)| (rule.0.as_str(), preference.noun())).collect();
        let expected = [
            ("/choose", "language"),
            ("/set-currency", "currency"),
            ("/set-locale", "language"),
            ("?route=common/currency", "currency"),
        ];
        assert_eq!(forms, expected);
        let links: Vec<_> = switchers
            .links
            .values()
            .flat_map(BTreeMap::values)
            .map(|link| &link[url::Position::BeforePath..])
            .collect();
        assert_eq!(links, ["/language?code=de", "/language?code=fr", "/p/1?locale=en"]);
    }
}
