//! Random content of a shop without cookies.

use serde_json::json;

use super::support::{Asked, Reply, Shop, book_links, kind};

/// A page with two of eight products, and a text.
fn page(asked: &Asked, text: &str) -> Reply {
    let product = |at: usize| format!("<li><a href='/books/{at}/'><img src='/{at}.png'><b>Book no. {at}</b></a></li>");
    let related: String = [7, 3].iter().map(|step| product(asked.number * step % 8)).collect();
    Reply::html(format!("{}{text}<h2>For you</h2><ul>{related}</ul><p>End</p>", book_links(8)))
}

#[test]
fn random_products_of_a_shop_without_cookies_are_shared() {
    let report = Shop::start(|asked: &Asked| page(asked, "")).examine(&[]);
    assert_eq!(report["vars"]["ITEM_ROUTES"], "/books/{item}/", "{report:#}");
    assert_eq!(report["vars"]["PATHS_SHARED"], "+ /", "{report:#}");
    assert_eq!((report["vars"].get("PATHS_PERSONAL"), &report["dangers"]), (None, &json!([])), "{report:#}");
    let books = kind(&report, "/books/*/");
    assert_eq!(books["hit_ratio_with_rules"], json!(1.0), "{books:#}");
    assert!(books["warning"].as_str().unwrap().contains("changes at each request"), "{books:#}");
}

/// The list of wishes is part of the random products.
#[test]
fn a_visitor_with_a_cookie_does_not_change_this() {
    let shop = Shop::start(|asked: &Asked| {
        let wish = if asked.cookies.contains("wishes=3") { "<b>On your list</b>" } else { "" };
        page(asked, wish)
    });
    let report = shop.examine(&["--login", "wishes=3"]);
    assert_eq!(report["vars"]["ITEM_ROUTES"], "/books/{item}/", "{report:#}");
    assert_eq!(report["vars"].get("PATHS_PERSONAL"), None, "{report:#}");
}

#[test]
fn a_value_that_no_other_page_has_is_not_shared() {
    for text in ["<p>Your code: X", "<p>You are visitor "] {
        let answer = move |asked: &Asked| page(asked, &format!("{text}{}</p>", asked.number));
        let report = Shop::start(answer).examine(&[]);
        assert_eq!(report["vars"].get("ITEM_ROUTES"), None, "{report:#}");
        let declared = move |asked: &Asked| answer(asked).with("cache-control", "public, s-maxage=60");
        let report = Shop::start(declared).examine(&[]);
        assert_eq!(report["vars"]["PATHS_PERSONAL"], "+ /, /books/*/", "{report:#}");
    }
}

/// The shop knows the visitor by a cookie that the page sets, so a second request of the doctor is another visitor.
#[test]
fn random_products_beside_a_new_session_are_not_shared() {
    let answer = |asked: &Asked| page(asked, "").with("set-cookie", &format!("sid=of-{}; Path=/account", asked.number));
    let report = Shop::start(answer).examine(&[]);
    assert_eq!(report["vars"].get("ITEM_ROUTES"), None, "{report:#}");
}
