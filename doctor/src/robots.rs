//! robots.txt (RFC 9309).

use edgefront::config::rules::PathPatterns;
use robotstxt::DefaultMatcher;
use url::Url;
use xtask::failure::Failure;

use super::{
    advice::{PATH_RISK, Rule},
    personal::has_personal_name,
    shop::{self, NoPage, Shop},
};

/// The doctor's name in robots.txt.
pub const AGENT: &str = "edgefront-doctor";
/// Redirects that are followed, to other hosts, too (§2.3.1.2).
const MAX_REDIRECTS: u32 = 5;

/// The rules of the shop.
pub struct Robots(String);

impl Robots {
    /// Reads robots.txt. A client error or more than five redirects mean that there is none, so everything is allowed
    /// (§2.3.1.2, §2.3.1.3).
    ///
    /// # Errors
    /// When the shop cannot be reached, or fails: everything is then forbidden (§2.3.1.4).
    pub async fn read(shop: &Shop, start: &Url) -> Result<Self, Failure> {
        let mut url = start.clone();
        url.set_path("/robots.txt");
        url.set_query(None);
        let mut page = shop.get(&url, None).await.map_err(|error: NoPage| error.failure(start))?;
        for _ in 0..MAX_REDIRECTS {
            let Some(target) = shop::redirect(page.status, &page.headers, &url) else { break };
            page = shop.get(&target, None).await.map_err(|error: NoPage| error.failure(&target))?;
            url = target;
        }
        if shop::is_trouble(page.status) {
            let cause = format!("{url} answers {}, so no page may be requested (RFC 9309)", page.status);
            return Err(Failure::new(cause, "repair robots.txt, or delete it"));
        }
        let rules = if page.status.is_success() { page.text().into_owned() } else { String::new() };
        Ok(Self(rules))
    }

    /// Returns whether the doctor may request the URL.
    pub fn allows(&self, url: &Url) -> bool {
        DefaultMatcher::default().one_agent_allowed_by_robots(&self.0, AGENT, url.as_str())
    }

    /// Rules for the forbidden paths that name pages of one visitor, such as `Disallow: */cart/`, and a note on them. The doctor
    /// requests no such page, and a pattern of a sharing rule could cover it. None if `known` has all of them.
    pub fn personal_paths(&self, known: &PathPatterns) -> Option<(String, Vec<Rule>)> {
        let lines = self.0.lines().filter_map(|line| line.split('#').next()?.split_once(':'));
        let forbidden =
            lines.filter(|(name, _)| name.trim().eq_ignore_ascii_case("disallow")).map(|(_, path)| path.trim());
        let mut paths = Vec::new();
        for path in forbidden.filter(|path| !path.contains('?')).flat_map(patterns) {
            let is_known = known.contains(&path.replace('*', "x")) || paths.contains(&path);
            if has_personal_name(&path) && !is_known && PathPatterns::parse(&path).is_ok() {
                paths.push(path);
            }
        }
        let rule = |value: &String| Rule { variable: "PATHS_PERSONAL", value: value.clone(), risk: PATH_RISK };
        let note = format!(
            "robots.txt forbids pages that seem to belong to one visitor: PATHS_PERSONAL {} keeps them personal, even if \
             another rule covers them",
            paths.join(", ")
        );
        (!paths.is_empty()).then(|| (note, paths.iter().map(rule).collect()))
    }
}

/// The patterns of the paths that a line of robots.txt forbids. The line names the start of the paths.
fn patterns(forbidden: &str) -> Vec<String> {
    let start = forbidden.trim_end_matches(['*', '$']);
    let starts = match start.trim_start_matches('*') {
        any if any.len() < start.len() => vec![format!("/*{any}"), any.to_owned()],
        own => vec![own.to_owned()],
    };
    let below = |start: String| match start.strip_suffix('/') {
        Some(folder) => vec![format!("{folder}/*")],
        None => vec![format!("{start}/*"), start],
    };
    starts.into_iter().filter(|start| start.starts_with('/')).flat_map(below).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_is_read(
            rules in "(?s)((user-agent|disallow|allow|sitemap|.{0,9}) ?[:=]? ?.{0,12}[\n\r ]){0,8}",
            path in ".{0,20}",
        ) {
            let url = Url::parse("https://shop.example").unwrap().join(&path);
            if let Ok(url) = url {
                Robots(rules).allows(&url);
            }
        }
    }

    #[test]
    fn forbidden_pages_of_one_visitor_are_personal() {
        let paths = |rules: &str, known: &str| {
            let found = Robots(rules.to_owned()).personal_paths(&PathPatterns::parse(known).unwrap());
            found.map(|(_, rules)| rules.into_iter().map(|rule| rule.value).collect::<Vec<_>>()).unwrap_or_default()
        };
        let rules = "Disallow: */cart/*\nDisallow: /checkout # all\ndisallow: /*/order/\nDisallow: /media/\nDisallow: /\nDisallow: *\n\
                     Disallow: /login?next\nDisallow: cart/\nAllow: /account/";
        assert_eq!(paths(rules, ""), ["/*/cart/*", "/cart/*", "/checkout/*", "/checkout", "/*/order/*"]);
        assert_eq!(paths(rules, "/cart/*, /*/cart/*, /checkout/*"), ["/*/order/*"]);
        assert_eq!(paths("Disallow: /", ""), [""; 0]);
    }

    #[test]
    fn the_group_of_the_doctor_counts() {
        let allows = |rules: &str, path: &str| {
            Robots(rules.to_owned()).allows(&Url::parse("https://shop.example").unwrap().join(path).unwrap())
        };
        let rules = "User-agent: *\nDisallow: /private/\n\nUser-agent: edgefront-doctor\nDisallow: /slow*\n";
        assert!(allows(rules, "/private/a") && !allows(rules, "/slow-search?q=1"));
        assert!(!allows("User-agent: *\nDisallow: /", "/") && allows("", "/"));
        assert!(allows("\u{feff}user-agent: \u{e9}\u{1f600}\ndisallow: /%e9\u{e9}\n<html>\u{0}", "/é"));
    }
}
