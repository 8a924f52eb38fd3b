//! Joins kinds with one template whose paths differ in the last segment only: `/categories/books`, `/categories/tools` and
//! `/categories/toys` become `/categories/*`. Few siblings are no kind of [`kinds`](super::kinds), so each would have
//! entries of its own in each rule, and a new category would have none.
//!
//! A rule for the joined kind covers paths that the sample lacks. So it must not be more dangerous than rules for the single
//! paths. Kinds are joined under these conditions only:
//! - Every address under the joined path that the shop links is of these kinds. A link counts also if the doctor does not follow it.
//! - All pages have the same template, the same decision, the same cookies and the same `Vary`.
//! - No page is in danger, differs between visitors beyond CSRF tokens, or has a form of one visitor.
//!
//! If a rule drops the pages' cookies, holes also cover the tokens that only other pages of the shop have. Otherwise a page that the
//! sample lacks could be stored with the token of a session.

use std::collections::{BTreeMap, BTreeSet};

use edgefront::config::rules::PathPatterns;

use super::{danger::Danger, examine::Examined, kinds::is_top, personal::has_personal_name};

/// Fewer pages do not show that a template is the rule.
const MIN_PAGES: usize = 3;

/// The pages of one kind.
#[derive(Default)]
pub struct PagesOfKind {
    /// Indices into the examined pages.
    pub pages: Vec<usize>,
    pub dangers: Vec<Danger>,
    /// Several kinds were joined.
    pub is_joined: bool,
    /// Selectors of the tokens that pages of the shop have, and not all pages of this joined kind.
    pub other_tokens: Vec<String>,
}

/// The facts about the whole site.
pub struct Site<'a> {
    pub examined: &'a [Examined],
    /// The canonical path and the kind of each address that the crawl knows.
    pub addresses: &'a [(String, String)],
    /// The path of each link, also of those that the doctor does not follow.
    pub linked: &'a BTreeSet<String>,
}

/// Joins kinds. The others stay as they are.
pub fn join(mut kinds: BTreeMap<String, PagesOfKind>, site: &Site) -> BTreeMap<String, PagesOfKind> {
    let mut families: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for kind in kinds.keys() {
        if let Some(family) = family(kind) {
            families.entry(family).or_default().push(kind.clone());
        }
    }
    // In the order of the names, so `/c/*` comes before `/c/*?page`.
    let mut joined = BTreeSet::new();
    for (family, members) in families {
        // A rule for the path also holds for its addresses without parameters.
        let is_free = family.split_once('?').is_none_or(|(path, _)| joined.contains(path));
        if is_free && let Some(other_tokens) = site.may_join(&family, &members, &kinds) {
            let pages = members.iter().filter_map(|member| kinds.remove(member)).flat_map(|kind| kind.pages).collect();
            joined.insert(family.clone());
            kinds.insert(family, PagesOfKind { pages, dangers: Vec::new(), is_joined: true, other_tokens });
        }
    }
    kinds
}

/// Returns whether at least [`MIN_PAGES`] pages at the top of the site have one template: then the last segment of the path names an item.
pub fn are_at_top(sample: &[Examined]) -> bool {
    let is_at_top = |page: &&Examined| {
        let name = page.path.trim_matches('/');
        !name.is_empty() && !name.contains('/') && !has_personal_name(&page.path)
    };
    let templates: Vec<_> = sample.iter().filter(is_at_top).filter_map(|page| page.template.as_ref()).collect();
    templates.iter().any(|one| templates.iter().filter(|other| one.is_like(other)).count() >= MIN_PAGES)
}

/// The remark on a joined kind.
pub fn note(kind: &str, pages: &[&Examined]) -> String {
    format!(
        "{} pages of {kind} have the same template, so they share their rules. The rules also cover pages that the sample lacks, \
         such as a new category: if a page there belongs to one visitor, add its path to PATHS_PERSONAL",
        pages.len()
    )
}

/// The kind of the pages whose paths differ in the last segment only: `/categories/*` for `/categories/books`. None at the top of
/// the site, or of its part for one language or country.
fn family(kind: &str) -> Option<String> {
    let (path, parameters) = kind.split_once('?').map_or((kind, None), |(path, names)| (path, Some(names)));
    let (path, slash) = path.strip_suffix('/').map_or((path, ""), |path| (path, "/"));
    let (parent, last) = path.rsplit_once('/')?;
    if is_top(parent) || last.is_empty() || parent.contains('*') || kind.contains("{item}") {
        return None;
    }
    let parameters = parameters.map(|names| format!("?{names}")).unwrap_or_default();
    Some(format!("{parent}/*{slash}{parameters}"))
}

impl Site<'_> {
    /// Decides whether the kinds `members` are joined to the kind `family`, and returns its
    /// [`other_tokens`](PagesOfKind::other_tokens). None: they stay apart.
    fn may_join(&self, family: &str, members: &[String], kinds: &BTreeMap<String, PagesOfKind>) -> Option<Vec<String>> {
        let of_family: Vec<_> = members.iter().filter_map(|member| kinds.get(member)).collect();
        let pages = of_family.iter().flat_map(|kind| &kind.pages).filter_map(|index| self.examined.get(*index));
        let pages: Vec<_> = pages.collect();
        let paths: BTreeSet<_> = pages.iter().map(|page| page.path.as_str()).collect();
        let (first, others) = pages.split_first()?;
        let may_join = members.len() > 1
            && paths.len() >= MIN_PAGES
            && of_family.iter().all(|kind| kind.dangers.is_empty())
            && pages.iter().all(|page| is_for_everybody(page))
            && others.iter().all(|page| is_like(first, page))
            && self.covers_nothing_else(family, members);
        if may_join { self.other_tokens(&pages) } else { None }
    }

    /// Returns whether the joined path covers only addresses of the kinds `members`.
    fn covers_nothing_else(&self, family: &str, members: &[String]) -> bool {
        let path = family.split('?').next().unwrap_or_default();
        let Ok(pattern) = PathPatterns::parse(path) else { return false };
        let is_of_member = |kind: &str| members.iter().any(|member| member == kind);
        let of_members = self.addresses.iter().filter(|(_, kind)| is_of_member(kind));
        let of_members: BTreeSet<_> = of_members.map(|(path, _)| path.trim_end_matches('/')).collect();
        // `/categories/*` also names `/categories`. A trial compares this page if it was examined.
        let parent = path.trim_end_matches('/').trim_end_matches("/*");
        let is_parent =
            |path: &str| path == parent && self.examined.iter().any(|page| page.path.trim_end_matches('/') == parent);
        let known = self.addresses.iter().map(|(path, _)| path).chain(self.linked);
        let mut known = known.map(|path| path.trim_end_matches('/')).filter(|path| pattern.contains(path));
        known.all(|path| of_members.contains(path) || is_parent(path))
    }

    /// See [`PagesOfKind::other_tokens`]. None if no selector can name one of them. Without cookies to drop, no page with the token
    /// of a session is stored. Django's cookie is never dropped for a path.
    fn other_tokens(&self, pages: &[&Examined]) -> Option<Vec<String>> {
        let sets_others =
            |page: &&Examined| page.set_cookies.iter().any(|name| page.csrf_cookie.as_ref() != Some(name));
        if !pages.iter().any(sets_others) {
            return Some(Vec::new());
        }
        let tokens =
            |page: &Examined| page.template.as_ref().map(|template| template.tokens.clone()).unwrap_or_default();
        let of_shop: BTreeSet<_> = self.examined.iter().flat_map(tokens).collect();
        of_shop.into_iter().filter(|token| !pages.iter().all(|page| tokens(page).contains(token))).collect()
    }
}

/// Returns whether nothing suggests that the page belongs to one visitor.
fn is_for_everybody(page: &Examined) -> bool {
    !has_personal_name(&page.path)
        && page.template.as_ref().is_some_and(|template| !template.has_personal_form)
        && page.lasting_differences().all(|found| found.kind.is_token())
}

/// Returns whether two pages have the same template, and edgefront treats them in the same way.
fn is_like(one: &Examined, other: &Examined) -> bool {
    let reason = |page: &Examined| page.verdict.as_ref().err().map(|why| why.reason);
    let cookies = |page: &Examined| page.set_cookies.iter().cloned().collect::<BTreeSet<_>>();
    let has_template = match (&one.template, &other.template) {
        (Some(template), Some(of_other)) => template.is_like(of_other),
        _ => false,
    };
    has_template
        && reason(one) == reason(other)
        && cookies(one) == cookies(other)
        && one.vary == other.vary
        && one.is_declared_shared == other.is_declared_shared
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siblings_differ_in_the_last_segment() {
        for (kind, expected) in [
            ("/categories/books", Some("/categories/*")),
            ("/categories/books/", Some("/categories/*/")),
            ("/categories/*", Some("/categories/*")),
            ("/en/categories/books?page&sort", Some("/en/categories/*?page&sort")),
            ("/about", None),
            ("/", None),
            ("/search?q", None),
            ("/en/books", None),
            ("/pt-br/books/", None),
            ("/products/{item}", None),
            ("/categories/show?id={item}", None),
            ("/shoes/*/red", None),
        ] {
            assert_eq!(family(kind).as_deref(), expected, "{kind}");
        }
    }
}
