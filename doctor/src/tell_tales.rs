//! Recognizes the software of a shop by its traces. The table is data: add a row for each new trace.

use edgefront::proxy::cookie_name;
use http::header;
use url::Url;

use super::shop::Page;

/// A place where software leaves a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trace {
    /// A `Set-Cookie` whose name begins with this text.
    Cookie(&'static str),
    /// A response header whose name begins with this text, in lower case.
    Header(&'static str),
    /// A path of a link that begins with this text.
    Path(&'static str),
    /// A text in the page.
    Html(&'static str),
}

/// The least sum of weights that recognizes a software.
const CERTAIN: u32 = 3;

/// Preset, trace and weight. A trace of 3 proves the software; weaker traces occur elsewhere, too.
///
/// Sources: the presets' sources, and what the installations in `storefronts/` send.
#[rustfmt::skip]
const TELL_TALES: &[(&str, Trace, u32)] = &[
    ("django-oscar", Trace::Cookie("oscar_"), 3),
    ("django-oscar", Trace::Html("/static/oscar/"), 3),
    ("django-oscar", Trace::Html("csrfmiddlewaretoken"), 1),
    ("django-oscar", Trace::Cookie("csrftoken"), 1),
    ("django-oscar", Trace::Path("/catalogue/"), 1),
    ("django-oscar", Trace::Path("/basket/"), 1),
    ("evershop", Trace::Html("var eContext = {\"graphqlResponse\""), 3),
    ("evershop", Trace::Cookie("sid"), 1),
    ("evershop", Trace::Cookie("asid"), 1),
    ("evershop", Trace::Path("/account/login"), 1),
    ("magento", Trace::Header("x-magento-"), 3),
    ("magento", Trace::Cookie("X-Magento-Vary"), 3),
    ("magento", Trace::Cookie("mage-"), 2),
    ("magento", Trace::Cookie("form_key"), 1),
    ("magento", Trace::Html("text/x-magento-init"), 3),
    ("nextjs", Trace::Header("x-nextjs-"), 3),
    ("nextjs", Trace::Html("/_next/static/"), 3),
    ("opencart", Trace::Cookie("OCSESSID"), 3),
    ("opencart", Trace::Html("index.php?route=common/home"), 2),
    ("opencart", Trace::Html("catalog/view/theme"), 1),
    ("prestashop", Trace::Cookie("PrestaShop-"), 3),
    ("prestashop", Trace::Html("var prestashop ="), 3),
    ("prestashop", Trace::Header("powered-by"), 1),
    ("shopware", Trace::Header("sw-"), 3),
    ("shopware", Trace::Cookie("sw-"), 2),
    ("shopware", Trace::Html("/bundles/storefront/"), 2),
    ("spree", Trace::Html("Spree."), 2),
    ("spree", Trace::Cookie("guest_token"), 2),
    ("spree", Trace::Cookie("spree_"), 3),
    ("spree", Trace::Html("authenticity_token"), 1),
    ("woocommerce", Trace::Html("/plugins/woocommerce/"), 6),
    ("woocommerce", Trace::Html("class=\"woocommerce"), 4),
    ("woocommerce", Trace::Cookie("woocommerce_"), 6),
    ("woocommerce", Trace::Cookie("wp_woocommerce_session_"), 6),
    ("woocommerce", Trace::Html("/wp-content/"), 1),
    ("wordpress", Trace::Html("/wp-content/"), 2),
    ("wordpress", Trace::Html("/wp-includes/"), 2),
    ("wordpress", Trace::Html("content=\"WordPress"), 2),
    ("wordpress", Trace::Html("rel=\"https://api.w.org/\""), 2),
    ("wordpress", Trace::Html("rel='https://api.w.org/'"), 2),
    ("wordpress", Trace::Path("/wp-login.php"), 2),
];

/// The traces that were found.
#[derive(Debug, Default)]
pub struct Traces(Vec<usize>);

/// A recognized software.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recognized {
    pub preset: &'static str,
    /// The traces, for people.
    pub traces: Vec<String>,
}

impl Traces {
    /// Looks for traces in a page and its links.
    pub fn look_at(&mut self, page: &Page, links: &[Url]) {
        let text = page.text();
        let cookies: Vec<_> = page.headers.get_all(header::SET_COOKIE).iter().map(cookie_name).collect();
        for (index, (_, trace, _)) in TELL_TALES.iter().enumerate() {
            let is_found = match trace {
                Trace::Cookie(start) => cookies.iter().any(|name| name.starts_with(start)),
                Trace::Header(start) => page.headers.keys().any(|name| name.as_str().starts_with(start)),
                Trace::Path(start) => links.iter().any(|link| link.path().starts_with(start)),
                Trace::Html(part) => text.contains(part),
            };
            if is_found && !self.0.contains(&index) {
                self.0.push(index);
            }
        }
    }

    /// The preset with the strongest traces. None if no trace is certain.
    pub fn recognize(&self) -> Option<Recognized> {
        let found = || self.0.iter().filter_map(|index| TELL_TALES.get(*index));
        let weight =
            |preset: &str| found().filter(|(own, ..)| *own == preset).map(|(_, _, weight)| weight).sum::<u32>();
        let (preset, ..) = found().max_by_key(|(preset, ..)| weight(preset))?;
        let traces = found().filter(|(own, ..)| own == preset).map(|(_, trace, _)| trace.to_string()).collect();
        (weight(preset) >= CERTAIN).then_some(Recognized { preset, traces })
    }
}

impl std::fmt::Display for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Cookie(name) => write!(f, "cookie {name}"),
            Self::Header(name) => write!(f, "header {name}"),
            Self::Path(path) => write!(f, "path {path}"),
            Self::Html(text) => write!(f, "text {text}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use edgefront::config::presets::Preset;
    use http::{HeaderMap, HeaderValue, StatusCode};

    use super::*;

    fn recognize(cookies: &[&'static str], html: &'static str, paths: &[&str]) -> Option<&'static str> {
        let headers: HeaderMap =
            cookies.iter().map(|cookie| (header::SET_COOKIE, HeaderValue::from_static(cookie))).collect();
        let page = Page { status: StatusCode::OK, headers, body: html.into() };
        let site = Url::parse("https://shop.example").unwrap();
        let links: Vec<_> = paths.iter().map(|path| site.join(path).unwrap()).collect();
        let mut traces = Traces::default();
        traces.look_at(&page, &links);
        traces.recognize().map(|recognized| recognized.preset)
    }

    #[test]
    fn every_row_names_a_preset() {
        for (preset, trace, weight) in TELL_TALES {
            assert!(Preset::find(preset).is_some() && *weight > 0, "{preset} {trace}");
        }
    }

    #[test]
    fn the_software_is_recognized_by_its_traces() {
        assert_eq!(recognize(&["oscar_history=1"], "", &[]), Some("django-oscar"));
        assert_eq!(recognize(&["csrftoken=1"], "csrfmiddlewaretoken", &["/catalogue/a_1/"]), Some("django-oscar"));
        assert_eq!(recognize(&["csrftoken=1"], "csrfmiddlewaretoken", &[]), None, "any Django site");
        let wordpress = "<link href=/wp-content/themes/a> <script src=/wp-includes/b>";
        assert_eq!(recognize(&[], wordpress, &[]), Some("wordpress"));
        let woocommerce =
            "<link href=/wp-content/plugins/woocommerce/a> <script src=/wp-includes/b> <a href=/wp-login.php>";
        assert_eq!(recognize(&[], woocommerce, &["/wp-login.php"]), Some("woocommerce"));
        assert_eq!(recognize(&[], "<script src=/_next/static/chunks/a.js>", &[]), Some("nextjs"));
        assert_eq!(recognize(&["session=1"], "<p>A shop</p>", &["/"]), None);
    }
}
