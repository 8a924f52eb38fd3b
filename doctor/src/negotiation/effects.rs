//! Links that set a preference, known by their effect: the shop redirects to another page, and then the pages of the session or of a
//! cookie differ. Their names say nothing, as in `/branch/5`.

use std::collections::BTreeMap;

use edgefront::proxy::cookie_name;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use url::Url;

use super::preference_cookies::PreferenceCookie;
use crate::{
    personal::has_personal_name,
    render::set_cookie_pairs,
    shop::{Page, redirect},
};

/// Most links that are kept for trials.
const MAX_LINKS: usize = 40;

/// The links that the shop answered with a temporary redirect to a page which they do not name.
#[derive(Default)]
pub struct Redirects(Vec<Url>);

impl Redirects {
    pub fn add(&mut self, link: &Url, page: &Page, home: &Url) {
        if self.0.len() < MAX_LINKS && may_set_preference(link, page, home) {
            self.0.push(link.clone());
        }
    }

    pub fn links(&self) -> impl Iterator<Item = &Url> {
        self.0.iter()
    }

    /// The links by the text of a rule: `/branch/*` for several links, `/branch/5` for one, `/branch` for `/branch?id=5`, and `?branch`
    /// for `/?branch=5`.
    pub fn by_rule(&self) -> BTreeMap<String, Vec<&Url>> {
        let mut groups: BTreeMap<String, Vec<&Url>> = BTreeMap::new();
        for link in &self.0 {
            groups.entry(family(link)).or_default().push(link);
        }
        let single = |family: &str, links: &[&Url]| match links {
            [link] if family.ends_with("/*") => Some(link.path().to_owned()),
            _ => None,
        };
        groups.into_iter().map(|(family, links)| (single(&family, &links).unwrap_or(family), links)).collect()
    }
}

fn family(link: &Url) -> String {
    let path = link.path().trim_end_matches('/');
    if let Some((name, _)) = link.query_pairs().next() {
        return if path.is_empty() { format!("?{name}") } else { path.to_owned() };
    }
    match path.rsplit_once('/') {
        Some((parent, _)) if !parent.is_empty() => format!("{parent}/*"),
        _ => path.to_owned(),
    }
}

/// Returns whether the response leads back to the home page, or to a page that the link names in a parameter. Without `Referer`, a shop
/// does not know the page of the link. Other redirects lead to a login, or to the page's own address.
fn may_set_preference(link: &Url, page: &Page, home: &Url) -> bool {
    const TEMPORARY: [StatusCode; 3] = [StatusCode::FOUND, StatusCode::SEE_OTHER, StatusCode::TEMPORARY_REDIRECT];
    let Some(target) = redirect(page.status, &page.headers, link) else { return false };
    let path = |url: &Url| url.path().trim_end_matches('/').to_owned();
    let is_home = path(&target) == path(home) || path(&target).is_empty();
    let is_named = || link.query_pairs().any(|(_, value)| value.trim_end_matches('/') == path(&target));
    TEMPORARY.contains(&page.status)
        && target.origin() == link.origin()
        && (is_home || is_named())
        && (path(&target) != path(link) || link.query().is_some())
        && !has_personal_name(link.path())
}

/// The cookies that such a response sets to a value of the link, as `/branch/5` sets `branch=5`.
pub fn chosen_cookies(link: &Url, page: &Page, home: &Url) -> Vec<PreferenceCookie> {
    if !may_set_preference(link, page, home) {
        return Vec::new();
    }
    let last = link.path_segments().and_then(|segments| segments.rev().find(|segment| !segment.is_empty()));
    let is_chosen = |value: &str| Some(value) == last || link.query_pairs().any(|(_, own)| own == value);
    let pairs = set_cookie_pairs(&page.headers).into_iter();
    pairs.filter(|(_, value)| is_chosen(value)).map(|(name, value)| PreferenceCookie::chosen(name, value)).collect()
}

/// The `Set-Cookie` lines without those of chosen cookies.
pub fn lines_without<'a>(headers: &'a HeaderMap, chosen: &[PreferenceCookie]) -> impl Iterator<Item = &'a HeaderValue> {
    let is_chosen = |line: &HeaderValue| chosen.iter().any(|cookie| cookie.name() == cookie_name(line));
    headers.get_all(header::SET_COOKIE).iter().filter(move |line| !is_chosen(line))
}
