//! Links of a page.

use std::collections::HashMap;

use html5gum::{DefaultEmitter, Token, Tokenizer};
use url::{Origin, Url};

use super::tokens::{attribute, start_tags};

/// Longest address that the doctor follows, bytes.
const MAX_URL: usize = 1_000;

/// Parts of addresses that change something when they are requested. The doctor never follows them.
const UNSAFE: [&str; 16] = [
    "logout",
    "log-out",
    "log_out",
    "logoff",
    "signout",
    "sign-out",
    "sign_out",
    "add-to-cart",
    "add_to_cart",
    "cart/add",
    "basket/add",
    "addtocart",
    "delete",
    "remove",
    "unsubscribe",
    "action=",
];

/// Names at the end of a path that are no pages.
const FILES: [&str; 24] = [
    ".jpg",
    ".jpeg",
    ".png",
    ".gif",
    ".webp",
    ".avif",
    ".svg",
    ".ico",
    ".css",
    ".js",
    ".json",
    ".xml",
    ".txt",
    ".pdf",
    ".zip",
    ".mp4",
    ".webm",
    ".woff",
    ".woff2",
    ".csv",
    ".rss",
    ".atom",
    ".map",
    ".webmanifest",
];

/// Fewer links to another site are probably links to social networks.
const MIN_LINKS: usize = 3;

/// The addresses of other pages of the same site, in the order of the page.
pub fn of_page(html: &str, page: &Url) -> Vec<Url> {
    targets(html, page).into_iter().filter_map(|url| page_of_site(url, page)).collect()
}

/// The paths of the site that the page names in links and forms, also those that the doctor does not follow.
pub fn paths(html: &str, page: &Url) -> Vec<String> {
    let target = |tag| attribute(&tag, if **tag.name == *b"form" { "action" } else { "href" });
    let tags = start_tags(html).filter(|tag| [&b"a"[..], b"area", b"form"].contains(&&**tag.name));
    let targets = tags.filter_map(target).filter_map(|target| page.join(target.trim()).ok());
    targets.filter(|url| url.origin() == page.origin()).map(|url| url.path().to_owned()).collect()
}

/// The other site with the most links, and their number. None if each has fewer than [`MIN_LINKS`].
pub fn other_site(html: &str, page: &Url) -> Option<(String, usize)> {
    let mut counts: HashMap<Origin, usize> = HashMap::new();
    let sites = targets(html, page).into_iter().map(|url| url.origin());
    for site in sites.filter(|site| site.is_tuple() && *site != page.origin()) {
        *counts.entry(site).or_default() += 1;
    }
    let (site, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    (count >= MIN_LINKS).then(|| (site.ascii_serialization(), count))
}

/// The addresses of the page's links.
fn targets(html: &str, page: &Url) -> Vec<Url> {
    let mut base = page.clone();
    let mut links = Vec::new();
    let mut emitter = DefaultEmitter::<()>::default();
    emitter.naively_switch_states(true);
    for token in Tokenizer::new_with_emitter(html, emitter).flatten() {
        let Token::StartTag(tag) = token else { continue };
        let attribute =
            |name: &[u8]| tag.attributes.get(name).map(|value| String::from_utf8_lossy(value).trim().to_owned());
        let Some(target) = attribute(b"href") else { continue };
        match &**tag.name {
            b"base" => base = base.join(&target).unwrap_or(base),
            b"a" if !attribute(b"rel").is_some_and(|rel| rel.contains("nofollow")) => {
                links.extend(base.join(&target).ok());
            }
            _ => {}
        }
    }
    links
}

/// The address without its fragment, if it is a page of the same site that may be requested.
pub fn page_of_site(mut url: Url, site: &Url) -> Option<Url> {
    url.set_fragment(None);
    let text = url.as_str().to_ascii_lowercase();
    let path = url.path().to_ascii_lowercase();
    let is_page = url.origin() == site.origin()
        && url.username().is_empty()
        && text.len() <= MAX_URL
        && !UNSAFE.iter().any(|part| text.contains(part))
        && !FILES.iter().any(|file| path.ends_with(file));
    is_page.then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_the_site_are_followed() {
        let page = Url::parse("https://shop.example/a/b").unwrap();
        let html = r#"<base href="/c/"><a href="d?x=1&amp;y=2#top">1</a> <A HREF=/e>2</A> 
            <a href="https://other.example/">3</a>
            <a href="/logout/">4</a> <a rel="ugc nofollow" href="/f">5</a> <a href="mailto:me@shop.example">6</a>
            <a href="/photo.JPG">7</a> <script>"<a href='/g'>"</script> <link href="/style">
            <a href="http://shop.example/h">8</a>
            <a href="/?add-to-cart=7">9</a> <a href="https://Müller.example/">10</a>"#;
        let links: Vec<_> = of_page(html, &page).into_iter().map(String::from).collect();
        assert_eq!(links, ["https://shop.example/c/d?x=1&y=2", "https://shop.example/e"]);
    }
}
