//! Scripts and style sheets that set a session's cookie which the rules drop from the pages. Such a file gives the visitor
//! the cookie, so later pages bypass the cache.

use std::rc::Rc;

use edgefront::{
    config::rules::{CookieKind, CookieRules, PathPatterns},
    page_cache::{PageKey, Reason},
};
use url::Url;
use xtask::failure::Failure;

use super::{
    examine::Examined,
    links,
    render::{self, set_cookies},
    robots::Robots,
    settings::Settings,
    shop::Shop,
    tokens,
};

/// Most files of the page that are requested.
const MAX_FILES: usize = 3;

/// A note on the first such file of a page, and the settings with a rule that drops the cookie there, too, if edgefront then stores
/// the file. None if no rule drops a personal cookie, or if no file sets it.
///
/// # Errors
/// When the proposed rules are not valid settings.
pub async fn note(
    shop: &Rc<Shop>,
    robots: &Robots,
    settings: &Settings,
    examined: &[Examined],
) -> Result<Option<(String, Settings)>, Failure> {
    let app = render::edgefront(settings, shop)?;
    let rules = &app.config.page.cookies;
    let is_dropped = |page: &&Examined| !kept_from_page(page, rules).is_empty();
    let Some(page) = examined.iter().find(is_dropped) else { return Ok(None) };
    let Ok(html) = shop.get(&page.url, None).await else { return Ok(None) };
    let kept = kept_from_page(page, rules);
    let allowed = of_page(&html.text(), &page.url).into_iter().filter(|file| robots.allows(file));
    for file in allowed.take(MAX_FILES) {
        let Ok(own) = shop.get(&file, None).await else { continue };
        let Some(name) = set_cookies(&own.headers).into_iter().find(|name| kept.contains(&name)) else { continue };
        let Ok(key) = PageKey::of_url(file.as_str(), &app.config.page.urls) else { continue };
        let Some(shared) = render::for_everybody(&app, &key).await else { continue };
        let Err(why) = shared.stored else { continue };
        let file = file.path();
        let rule = format!("{name}@{}", paths_of_rule(file, examined));
        if let Some(settings) = dropped(shop, settings, &key, &rule).await? {
            let note = format!(
                "{file} sets {name}, too: COOKIES_DROPPED {rule} keeps the cookie out of such files. Otherwise only a visitor's \
                 first page comes from the store. Risk: a file there that is for one visitor must not be declared shared"
            );
            return Ok(Some((note, settings)));
        }
        let note = if why.reason == Reason::TooLarge {
            format!(
                "{file} sets {name} and is too large to be stored, so a visitor's later pages come from the shop: set \
                 PAGE_MAX_BYTES to {}",
                own.body.len().next_power_of_two()
            )
        } else {
            format!(
                "{file} sets {name}, too: only a visitor's first page comes from the store, so the real hit ratio is lower than \
                 expected. Let the shop send its files without cookies, or read docs/holes.md#sessions-of-new-visitors"
            )
        };
        return Ok(Some((note, settings.clone())));
    }
    Ok(None)
}

/// The settings with this rule of `COOKIES_DROPPED`, if edgefront then stores the file.
async fn dropped(
    shop: &Rc<Shop>,
    settings: &Settings,
    file: &PageKey,
    rule: &str,
) -> Result<Option<Settings>, Failure> {
    let settings = settings.with_rule("COOKIES_DROPPED", rule);
    let app = render::edgefront(&settings, shop)?;
    let shared = render::for_everybody(&app, file).await;
    Ok(shared.filter(|shared| shared.stored.is_ok()).map(|_| settings))
}

/// The paths of the rule for a file: its folder. The file alone if it is at the top, or if its folder has an examined page: the rule
/// could store pages that no trial has compared.
fn paths_of_rule(file: &str, examined: &[Examined]) -> String {
    let folder = file.rsplit_once('/').map(|(folder, _)| folder).filter(|folder| !folder.is_empty());
    let pattern = folder.map(|folder| format!("{folder}/*"));
    let has_page = |pattern: &String| {
        let paths = PathPatterns::parse(pattern).unwrap_or_default();
        examined.iter().any(|page| paths.contains(&page.path))
    };
    pattern.filter(|pattern| !has_page(pattern)).unwrap_or_else(|| file.to_owned())
}

/// The personal cookies of a page that the rules drop.
fn kept_from_page<'a>(page: &'a Examined, rules: &CookieRules) -> Vec<&'a String> {
    let is_kept = |name: &&String| rules.is_dropped(name, &page.path) && rules.kind(name, "") == CookieKind::Personal;
    page.set_cookies.iter().filter(is_kept).collect()
}

/// The scripts and style sheets of a page at the same host.
fn of_page(html: &str, page: &Url) -> Vec<Url> {
    let address = |tag| {
        let is_sheet = || tokens::attribute(&tag, "rel").is_some_and(|rel| rel.eq_ignore_ascii_case("stylesheet"));
        match &**tag.name {
            b"script" => tokens::attribute(&tag, "src"),
            b"link" if is_sheet() => tokens::attribute(&tag, "href"),
            _ => None,
        }
    };
    let base = links::base(html, page);
    let files = tokens::start_tags(html).filter_map(address).filter_map(|address| base.join(address.trim()).ok());
    files.filter(|file| file.origin() == page.origin()).collect()
}
