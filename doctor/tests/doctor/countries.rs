//! Shops that know the visitor's country.

use serde_json::json;

use super::support::{Asked, Reply, Shop, book_links, kind};

fn book(price: &str) -> Reply {
    Reply::html(format!("<html lang=en><p>{price}</p>{}", book_links(8)))
}

#[test]
fn a_header_with_the_country_selects_the_page() {
    let shop = Shop::start(|asked: &Asked| {
        let price = match asked.header("cf-ipcountry") {
            "AU" => "AUD 9",
            "GB" => "GBP 7",
            _ => "EUR 8",
        };
        book(if asked.path == "/" { "Welcome" } else { price })
    });
    let report = shop.examine(&[]);
    assert_eq!(report["vars"]["HEADERS_VARIED"], "+ cf-ipcountry", "{report:#}");
    assert_eq!(report["vars"]["HEADERS_NORMALIZED"], "+ cf-ipcountry=GB|AU");
    assert_eq!(report["vars"]["ITEM_ROUTES"], "/books/{item}/", "the rules keep the pages apart");
    let before = shop.requests().len();
    let again = shop.examine(&["--var", "HEADERS_VARIED=cf-ipcountry"]);
    assert_eq!(again["vars"].get("HEADERS_NORMALIZED"), None, "{again:#}");
    assert!(shop.requests().len() - before < before, "a known header costs no requests");
}

#[test]
fn a_header_with_too_many_countries_has_no_list() {
    let report =
        Shop::start(|asked: &Asked| book(&format!("We deliver to {}", asked.header("x-country")))).examine(&[]);
    assert_eq!(report["vars"]["HEADERS_VARIED"], "+ x-country", "{report:#}");
    assert_eq!(report["vars"].get("HEADERS_NORMALIZED"), None);
    assert!(report["notes"].to_string().contains("Cloudflare adds CF-IPCountry only"), "{report:#}");
}

#[test]
fn pages_that_differ_by_the_address_are_not_shared() {
    let report = Shop::start(|asked: &Asked| {
        let address = asked.header("x-forwarded-for");
        let price = if address.starts_with("8.") { "USD 10" } else { "EUR 8" };
        let page = book(if asked.path == "/" { "Welcome" } else { price });
        if asked.path == "/books/7/" { page.with("cache-control", "public, s-maxage=60") } else { page }
    })
    .examine(&[]);
    assert_eq!(report["vars"].get("ITEM_ROUTES"), None, "{report:#}");
    assert_eq!(report["vars"]["PATHS_SHARED"], "+ /", "{report:#}");
    assert_eq!(report["vars"]["PATHS_PERSONAL"], "+ /books/*/", "the shop declares one of them public");
    assert_eq!(kind(&report, "/books/*/")["hit_ratio_with_rules"], json!(0.0));
    assert!(report["notes"].to_string().contains("differs by the visitor's address"), "{report:#}");
}

/// The prices depend on the region of the preferred language.
#[test]
fn a_region_of_the_own_language_selects_the_page() {
    let report = Shop::start(|asked: &Asked| {
        let language = asked.header("accept-language").split([',', ';']).next().unwrap_or_default().to_owned();
        book(if language == "en-GB" { "GBP 7" } else { "USD 9" })
    })
    .examine(&[]);
    assert_eq!(report["vars"]["HEADERS_VARIED"], "+ accept-language", "{report:#}");
    assert_eq!(report["vars"]["HEADERS_NORMALIZED"], "+ accept-language=en|en-GB", "{report:#}");
}

#[test]
fn a_country_costs_a_shop_without_one_few_requests() {
    let shop = Shop::start(|_| book("EUR 8"));
    let report = shop.examine(&[]);
    assert_eq!(report["vars"].get("HEADERS_VARIED"), None, "{report:#}");
    let with_country = shop.requests().iter().filter(|asked| !asked.header("cf-ipcountry").is_empty()).count();
    assert!((1..=16).contains(&with_country), "{with_country}");
}

/// A price and some of ten products, which differ at each request.
fn random_book(asked: &Asked, price: &str) -> Reply {
    let product = |at: usize| {
        format!(
            "<li><a href='/books/{at}/'>Product {at}</a><i>{at}.10</i><form><button class='no-{at}'></button></form></li>"
        )
    };
    // SplitMix64 mixes the number of the request.
    let mixed = u64::try_from(asked.number).unwrap().wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 33;
    let mut left: Vec<usize> = (0..10).collect();
    let mut drawn = |range: u64| product(left.remove(usize::try_from(mixed / range).unwrap() % left.len()));
    let ranges = [1, 10, 100, 1_000, 10_000].into_iter().take(usize::try_from(mixed % 4).unwrap() + 2);
    let related = ranges.map(&mut drawn).collect::<Vec<_>>().concat();
    book(&format!("{price}</p><ul>{related}</ul><p>"))
}

/// Random products would seem to depend on the country, the language and the device.
#[test]
fn random_products_depend_on_no_header() {
    let report = Shop::start(|asked: &Asked| random_book(asked, "EUR 8")).examine(&[]);
    assert_eq!(report["vars"].get("HEADERS_VARIED"), None, "{report:#}");
    assert_eq!(report["vars"].get("HEADERS_NORMALIZED"), None, "{report:#}");
}

#[test]
fn a_country_is_found_beside_random_products() {
    let report = Shop::start(|asked: &Asked| {
        random_book(asked, if asked.header("cf-ipcountry") == "CH" { "CHF 9" } else { "EUR 8" })
    })
    .examine(&[]);
    assert_eq!(report["vars"]["HEADERS_VARIED"], "+ cf-ipcountry", "{report:#}");
    // Chance may add countries, which costs hits only.
    assert!(report["vars"]["HEADERS_NORMALIZED"].as_str().is_none_or(|list| list.contains("CH")), "{report:#}");
}
