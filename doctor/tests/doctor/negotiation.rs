//! Shops that vary their pages by language and device.

use serde_json::Value;

use super::support::{Asked, Reply, Shop, book_links};

/// A shop in English, German and Brazilian Portuguese, which announces its languages as Django does.
fn multilingual(asked: &Asked) -> Reply {
    let language = match asked.header("accept-language").to_ascii_lowercase().split(['-', ',']).next() {
        Some("de") => "de",
        Some("pt") => "pt-br",
        _ => "en",
    };
    let page = Reply::html(format!("<html lang='{language}'><p>Hello in {language}</p>{}</html>", book_links(3)));
    page.with("vary", "Accept-Language, User-Agent").with("cache-control", "public, s-maxage=60")
}

/// A shop with pages for phones, each with the time.
fn adaptive(asked: &Asked) -> Reply {
    let device = if asked.header("user-agent").contains("Mobile") { "phone" } else { "computer" };
    let page = Reply::html(format!("<p>For a {device}</p><p>Request {}</p>{}", asked.number, book_links(3)));
    page.with("vary", "User-Agent").with("cache-control", "public, s-maxage=60")
}

fn notes(report: &Value, header: &str) -> Vec<String> {
    let notes = report["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap().to_owned());
    notes.filter(|note| note.contains(&format!("vary by {header}"))).collect()
}

#[test]
fn the_languages_of_a_shop_are_found_and_a_header_without_effect_is_named() {
    let report = Shop::start(multilingual).examine(&[]);
    assert_eq!(report["vars"]["HEADERS_NORMALIZED"], "+ accept-language=en|de|pt, user-agent=");
    assert!(notes(&report, "accept-language")[0].contains("Risk: "), "{report:#}");
    assert_eq!(notes(&report, "user-agent").len(), 1);
}

#[test]
fn pages_that_differ_although_no_vary_says_so_are_kept_apart() {
    let report = Shop::start(|asked: &Asked| {
        let language = if asked.header("accept-language").starts_with("de") { "de" } else { "en" };
        // The first page is the same in all languages.
        let text = if asked.path == "/" { "Hello" } else { language };
        let page = Reply::html(format!("<html lang='{language}'><p>{text}</p>{}</html>", book_links(8)));
        page.with("cache-control", "no-store")
    })
    .examine(&[]);
    assert_eq!(report["vars"]["HEADERS_NORMALIZED"], "+ accept-language=en|de", "{report:#}");
    assert_eq!(report["vars"]["HEADERS_VARIED"], "+ accept-language");
    assert_eq!(report["vars"]["PATHS_SHARED"], "+ /, /books/*/");
    assert!(report["notes"].to_string().contains("no Vary names it"), "{report:#}");
}

#[test]
fn pages_for_phones_are_found() {
    let report = Shop::start(adaptive).examine(&[]);
    assert_eq!(report["vars"]["HEADERS_NORMALIZED"], "+ user-agent=Mobile", "{report:#}");
}

#[test]
fn a_header_with_a_rule_is_not_examined_again() {
    let shop = Shop::start(multilingual);
    let rule = "HEADERS_NORMALIZED=accept-language=en|de, user-agent=";
    let report = shop.examine(&["--var", rule]);
    assert_eq!(report["vars"]["HEADERS_NORMALIZED"], "accept-language=en|de, user-agent=");
    assert!(notes(&report, "accept-language").is_empty() && notes(&report, "user-agent").is_empty());
    assert!(shop.requests().iter().all(|asked| asked.header("accept-language").is_empty()));
}

#[test]
fn pages_that_differ_by_no_known_value_have_no_rule() {
    let report = Shop::start(|asked: &Asked| {
        let page = Reply::html(format!("<p>{}</p>{}", asked.header("user-agent"), book_links(3)));
        page.with("vary", "User-Agent").with("cache-control", "public, s-maxage=60")
    })
    .examine(&[]);
    assert_eq!(report["vars"].get("HEADERS_NORMALIZED"), None);
    assert!(notes(&report, "user-agent")[0].contains("list the values"), "{report:#}");
}
