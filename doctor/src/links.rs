//! Links of a page.

use std::collections::HashMap;

use edgefront::page_cache::session_ids;
use html5gum::{DefaultEmitter, StartTag, Token, Tokenizer};
use url::{Origin, Url, form_urlencoded};

use super::{
    negotiation::is_switch,
    tokens::{attribute, post_actions, start_tags},
};

/// Longest address that the doctor follows, bytes.
const MAX_URL: usize = 1_000;

/// Parts of addresses that change something when they are requested. The doctor never follows them.
const UNSAFE: [&str; 43] = [
    "logout",
    "log-out",
    "log_out",
    "logoff",
    "log-off",
    "log_off",
    "signout",
    "sign-out",
    "sign_out",
    "signoff",
    "sign-off",
    "sign_off",
    "end-session",
    "abmelde",
    "auslogg",
    "deconnect",
    "deconnexion",
    "desconect",
    "cerrar-sesion",
    "cerrar_sesion",
    "uitlog",
    "afmeld",
    "logga-ut",
    "wylogu",
    "odhlas",
    "odjav",
    "cart/add",
    "basket/add",
    "add-to-cart",
    "add_to_cart",
    "addtocart",
    "hinzufueg",
    "ajouter",
    "agregar",
    "delete",
    "destroy",
    "remove",
    "loesch",
    "entfern",
    "supprimer",
    "eliminar",
    "unsubscribe",
    "action=",
];

/// Words of addresses that change something. Each must be a whole segment of the path, or a whole name or value of the query, as in
/// `/cart/add/7` and `?do=add`.
const UNSAFE_WORDS: [&str; 22] = [
    "add",
    "cancel",
    "clear",
    "close",
    "confirm",
    "decrease",
    "del",
    "disconnect",
    "empty",
    "exit",
    "increase",
    "like",
    "optout",
    "reorder",
    "sair",
    "salir",
    "slo",
    "subscribe",
    "toggle",
    "undo",
    "update",
    "vote",
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
    let base = base(html, page);
    let targets = tags.filter_map(target).filter_map(|target| base.join(target.trim()).ok());
    let of_site = targets.filter(|url| url.origin() == page.origin());
    of_site.map(|url| without_session(url, &[]).path().to_owned()).collect()
}

/// The addresses of the same site that forms with the method POST send to.
pub fn of_forms(html: &str, page: &Url) -> Vec<Url> {
    let base = base(html, page);
    post_actions(html).iter().filter_map(|action| form_target(action, page, &base)).collect()
}

/// The address to which a form is sent, without the id of a session. None if it is one of another site.
pub fn form_target(action: &str, page: &Url, base: &Url) -> Option<Url> {
    let target = if action.is_empty() { page } else { base }.join(action).ok()?;
    (target.origin() == page.origin()).then(|| without_session(target, &[]))
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

/// The address that the relative addresses of the page begin with: that of its first `base` element with `href`, or the page's own
/// (HTML standard, "document base URL").
pub fn base(html: &str, page: &Url) -> Url {
    let href = |tag: StartTag<()>| if **tag.name == *b"base" { attribute(&tag, "href") } else { None };
    let base = start_tags(html).find_map(href).and_then(|href| page.join(href.trim()).ok());
    base.unwrap_or_else(|| page.clone())
}

/// The addresses of the page's links.
fn targets(html: &str, page: &Url) -> Vec<Url> {
    let base = base(html, page);
    let mut links = Vec::new();
    let mut emitter = DefaultEmitter::<()>::default();
    emitter.naively_switch_states(true);
    for token in Tokenizer::new_with_emitter(html, emitter).flatten() {
        let Token::StartTag(tag) = token else { continue };
        let attribute =
            |name: &[u8]| tag.attributes.get(name).map(|value| String::from_utf8_lossy(value).trim().to_owned());
        let Some(target) = attribute(b"href") else { continue };
        // A link that switches the language or the currency only sets a cookie, and often has `nofollow`.
        let is_nofollow = attribute(b"rel").is_some_and(|rel| rel.contains("nofollow"));
        if **tag.name == *b"a" {
            links.extend(base.join(&target).ok().filter(|url| !is_nofollow || is_switch(url)));
        }
    }
    links
}

/// The address without the id of a session: a parameter that Java, PHP or `ColdFusion` adds for visitors without cookies, or one
/// with the value of a cookie.
pub fn without_session(url: Url, cookies: &[&str]) -> Url {
    // ColdFusion adds two parameters. The Worker knows the one with the secret.
    let is_id = |name: &str, value: &str| name.eq_ignore_ascii_case("cfid") || cookies.contains(&value);
    Url::parse(&session_ids::without(url.as_str(), is_id)).unwrap_or(url)
}

/// The address without its fragment, if it is a page of the same site that may be requested.
pub fn page_of_site(mut url: Url, site: &Url) -> Option<Url> {
    url.set_fragment(None);
    let text = url.as_str().to_ascii_lowercase();
    let path = url.path().to_ascii_lowercase();
    let is_page = url.origin() == site.origin()
        && url.username().is_empty()
        && text.len() <= MAX_URL
        && !may_change(&url)
        && !FILES.iter().any(|file| path.ends_with(file));
    is_page.then_some(url)
}

/// Returns whether a GET of the address may change something for its visitor: a cart, or the session of the account.
fn may_change(url: &Url) -> bool {
    let text = format!("{}&{}", url.path(), url.query().unwrap_or_default());
    // Decodes the path, too.
    let pairs = form_urlencoded::parse(text.as_bytes());
    let text: Vec<_> = pairs
        .map(|(name, value)| if value.is_empty() { name.into_owned() } else { format!("{name}={value}") })
        .collect();
    let text = text.join("&").to_lowercase();
    let mut words = text.split(['/', '.', ';', '&', '=']);
    UNSAFE.iter().any(|part| text.contains(part)) || words.any(|word| UNSAFE_WORDS.contains(&word))
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

    #[test]
    fn no_address_is_followed_that_may_change_something() {
        let site = Url::parse("https://add.example").unwrap();
        let is_followed = |path: &str| page_of_site(site.join(path).unwrap(), &site).is_some();
        for path in [
            "/log%6Fut",
            "/konto/Abmelden",
            "/deconnexion",
            "/account/sign_off",
            "/cart/add/7",
            "/cart/addItem?id=7",
            "/cart?add=7",
            "/cart.php?do=add&id=7",
            "/orders/7/cancel",
            "/wishlist/toggle/7",
            "/merkzettel/entfernen/7",
            "/newsletter/optout",
        ] {
            assert!(!is_followed(path), "{path}");
        }
        for path in [
            "/",
            "/address",
            "/products/add-on",
            "/clearance",
            "/genre/action",
            "/exit-signs",
            "/search?q=additive",
            "/updates",
        ] {
            assert!(is_followed(path), "{path}");
        }
    }

    #[test]
    fn the_first_base_leads_all_relative_addresses() {
        let page = Url::parse("https://shop.example/en/products/mug").unwrap();
        let html = "<base target=_top><base href='/en/'><base href='/de/'><a href=cart>1</a>\
            <form method=post action=cart/add></form><form method=POST></form><form method=post action=//other.example></form>";
        let texts = |urls: Vec<Url>| urls.into_iter().map(String::from).collect::<Vec<_>>();
        assert_eq!(texts(of_page(html, &page)), ["https://shop.example/en/cart"]);
        assert_eq!(texts(of_forms(html, &page)), ["https://shop.example/en/cart/add", page.as_str()]);
        assert_eq!(paths(html, &page), ["/en/cart", "/en/cart/add"]);
    }
}
