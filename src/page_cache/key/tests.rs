use proptest::prelude::*;

use super::*;
use crate::config::rules::{Parameters, PathPatterns};

fn rules() -> UrlRules {
    let kept = Parameters::parse("page, f[], route=a/product|a/list").unwrap();
    UrlRules {
        items: ItemRoutes::parse("/?item={item}, /products/{item}, /a%2Fb/{item}/view, /?sku={item}").unwrap(),
        personal_paths: PathPatterns::parse("/admin/*, /checkout").unwrap(),
        shared_paths: PathPatterns::parse("/, /shoes/*, /admin/*").unwrap(),
        query: QueryRules { kept, ..QueryRules::default() },
        ..UrlRules::default()
    }
}

fn page(url: &str) -> Result<PageKey, Reason> {
    PageKey::of_url(url, &rules())
}

fn canonical(url: &str) -> Result<String, Reason> {
    page(url).map(|page| page.url().to_owned())
}

#[test]
fn spellings_of_one_url_are_one_page() {
    for (url, same) in [
        ("HTTPS://Shop.Example:443/products/mug", "https://shop.example/products/mug"),
        ("https://shop.example/x/../products/./m%75g?", "https://shop.example/products/mug"),
        ("https://shop.example/products/%2e%2e/products/mug#top", "https://shop.example/products/mug"),
        ("https://shop.example/products/mug?utm_source=a&gclid=1", "https://shop.example/products/mug"),
        ("https://shop.example/?fbclid=1&item=m%75g", "https://shop.example/?item=mug"),
        ("https://shop.example/?sku=b&item=a", "https://shop.example/?item=a&sku=b"),
        ("http://shop.example:8080/a%2fb/mug/view", "http://shop.example:8080/a%2Fb/mug/view"),
    ] {
        assert_eq!(canonical(url).as_deref(), Ok(same), "{url}");
    }
}

#[test]
fn a_personal_path_has_no_shared_page_however_it_is_spelled() {
    for path in ["/admin/", "/admin/orders?x=1", "//admin/x", "/a/../admin/x", "/%61dmin%2fx", "/checkout"] {
        assert_eq!(page(&format!("https://shop.example{path}")), Err(Reason::Path), "{path}");
    }
    assert!(page("https://shop.example/administrators").is_ok());
}

// `Aa` and `BB` have the same 32-bit string hash in the book's ports.
#[test]
fn different_pages_have_different_keys() {
    let hash = |url| PageKey::of_url(url, &rules()).unwrap().hash().to_owned();
    let urls = [
        "https://shop.example/?item=Aa",
        "https://shop.example/?item=BB",
        "https://shop.example/products/Aa",
        "http://shop.example/products/Aa",
        "https://shop.example:444/products/Aa",
        "https://other.example/products/Aa",
    ];
    let hashes: std::collections::HashSet<_> = urls.into_iter().map(hash).collect();
    assert_eq!(hashes.len(), urls.len());
    assert!(hashes.iter().all(|hash| hash.len() == 64));
}

#[test]
fn unknown_parameters_keep_popularity_from_admitting_a_page() {
    for (url, reason) in [
        ("https://shop.example/products/mug?x=1", Reason::Parameters),
        ("https://shop.example/products/mug?item=cup", Reason::Parameters),
        ("https://shop.example/?item=mug&sku=a&sku=a", Reason::Parameters),
        ("https://shop.example/?item=mug&item=cup", Reason::NoItem),
        ("https://shop.example/about", Reason::NoItem),
        ("https://shop.example/?item=", Reason::NoItem),
        ("https://shop.example/?route=a/cart&item=mug", Reason::Parameters),
        ("https://shop.example/?route=a/product", Reason::NoItem),
        ("https://shop.example/?item=mug&page=2", Reason::Parameters),
    ] {
        assert_eq!(page(url).unwrap().by_popularity(), Err(reason), "{url}");
    }
    assert_eq!(page("https://shop.example/products/mug?x=1").unwrap().item().unwrap().as_str(), "mug");
    for (url, is_exact) in [
        ("https://shop.example/?route=a/product&item=mug", true),
        ("https://shop.example/?item=mug&route=a/product", true),
        ("https://shop.example/?item=mug&route=a%2fproduct", false),
    ] {
        let key = page(url).unwrap();
        assert_eq!((key.by_popularity(), key.is_exact()), (Ok(()), is_exact), "{url}");
        assert_eq!(key.url(), url.replace("%2f", "%2F"), "the order stays");
    }
}

#[test]
fn a_shared_path_has_only_known_parameters() {
    for (path, expected) in [
        ("/", true),
        ("/?item=mug", true),
        ("/?item=mug&x=1", false),
        ("/shoes/red", true),
        ("/shoes/red?page=2&utm_source=mail", true),
        ("/shoes/red?p%61ge=2", true),
        ("/shoes/red?page=2&sort=price", false),
        ("/shoes/red?f%5B%5D=2&page=1", true),
        ("/?route=a/list&page=2", true),
        ("/?route=a/product&page=2&item=mug", true),
        ("/?route=a%2Flist", true),
        ("/?route=a/list&route=a/list", false),
        ("/?route=a/cart&page=2", false),
        ("/?route=a/list&route=a/cart", false),
        ("/?route=a/list&route[]=a/cart", false),
        ("/?route%3Da/list=a/cart", false),
        ("/shoes", false),
    ] {
        assert_eq!(page(&format!("https://shop.example{path}")).unwrap().is_at_shared_path(), expected, "{path}");
    }
    assert_eq!(page("https://shop.example/admin/"), Err(Reason::Path), "a personal path wins");
}

#[test]
fn the_origin_may_name_the_item_of_any_page() {
    let [mug, pan] = ["mug", "pan"].map(|item| ItemId::parse(item).unwrap());
    for (url, item, by_popularity) in [
        ("https://shop.example/catalogue/enamel-mug_23/", "mug", Ok(())),
        ("https://shop.example/catalogue/enamel-mug_23/?utm_source=mail", "mug", Ok(())),
        ("https://shop.example/catalogue/enamel-mug_23/?x=1", "mug", Err(Reason::Parameters)),
        ("https://shop.example/?item=a&item=b", "mug", Err(Reason::Parameters)),
        ("https://shop.example/products/pan", "mug", Ok(())),
        ("https://shop.example/products/pan?x=1", "mug", Err(Reason::Parameters)),
    ] {
        let key = page(url).unwrap();
        let named = key.naming(Some(&mug));
        assert_eq!((named.item().unwrap().as_str(), named.by_popularity()), (item, by_popularity), "{url}");
        assert_eq!((named.url(), named.hash(), named.is_exact()), (key.url(), key.hash(), key.is_exact()));
        assert_eq!(named.naming(None), key);
    }
    let pan_page = page("https://shop.example/products/pan").unwrap();
    assert_eq!(pan_page.naming(Some(&pan)), pan_page, "the URL's own item");
}

#[test]
fn a_dynamic_or_relative_url_is_no_page() {
    for (url, reason) in [
        ("https://shop.example/?item=mug&_=1", Reason::Dynamic),
        ("https://shop.example/products/mug?_", Reason::Dynamic),
        ("https://shop.example/about?%5F=1", Reason::Dynamic),
        ("/products/mug", Reason::NoPage),
        ("data:mug", Reason::NoPage),
        ("gopher://shop.example?item=mug", Reason::NoPage),
    ] {
        assert_eq!(canonical(url), Err(reason), "{url}");
    }
}

#[test]
fn a_url_without_an_item_keeps_its_parameters() {
    for (url, same, is_exact) in [
        ("https://shop.example/about", "https://shop.example/about", true),
        ("https://shop.example/s?b=2&a=1&b=1", "https://shop.example/s?b=2&a=1&b=1", true),
        ("https://shop.example/s?&q=a+b&&x&", "https://shop.example/s?q=a+b&x", true),
        ("https://shop.example/s?utm_source=m&q=1&gclid=2", "https://shop.example/s?q=1", true),
        ("https://shop.example/s?utm_source=m", "https://shop.example/s", true),
        ("https://shop.example/s?", "https://shop.example/s", true),
        ("https://shop.example/s?%75tm_x=1&q=%2f%61", "https://shop.example/s?q=%2Fa", false),
        ("https://shop.example/a%2fb", "https://shop.example/a%2Fb", false),
        ("https://shop.example/x/../y", "https://shop.example/y", false),
    ] {
        let page = page(url).unwrap();
        assert_eq!((page.url(), page.is_exact()), (same, is_exact), "{url}");
    }
}

proptest! {
    #[test]
    fn the_canonical_form_of_a_canonical_url_is_itself(
        path in "/(products|a%2[fF]b|x|\\.\\.)?/?([a-z%/.0-9]|%[0-9a-fA-F]{2}){0,8}(/view)?",
        query in "((item|sku|q|utm_x|gclid)=([a-z%+]|%[0-9a-f]{2}){0,4}&?){0,3}",
    ) {
        if let Ok(once) = page(&format!("https://shop.example{path}?{query}")) {
            let again = page(once.url()).unwrap();
            prop_assert_eq!((again.url(), again.item(), again.is_exact()), (once.url(), once.item(), true));
        }
    }

    #[test]
    fn any_path_is_normalized_once(path in "([a-zA-Z0-9%/~]|%[0-9a-fA-F]{2}){0,20}") {
        let once = normalized(&path);
        prop_assert_eq!(normalized(&once), once);
    }
}
