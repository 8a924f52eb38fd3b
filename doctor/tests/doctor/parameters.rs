//! Shops whose addresses name a product by a query parameter, as many shops in PHP and Java do.

use serde_json::json;

use super::support::{Asked, Reply, Shop, hits, kind};

fn page(asked: &Asked) -> Reply {
    let links = (0..8).map(|number| format!("<a href='/book.php?id={number}'>Book</a>")).collect::<Vec<_>>().concat();
    let lists = "<a href='/list.php?category=new'>New</a><a href='/list.php?category=old&amp;page=2'>Old</a>";
    let search = "<a href='/search.php?q=sale'>Sale</a><a href='/invoice.php?order_id=1'>Invoice</a>";
    let form = "<form method=post action='/cart.php'><button>Add</button></form>";
    let form = if asked.path.starts_with("/book.php") { form } else { "" };
    Reply::html(format!("{links}{lists}{search}{form}"))
}

#[test]
fn products_of_a_parameter_are_items() {
    let report = Shop::start(page).examine(&[]);
    let books = kind(&report, "/book.php?id");
    assert_eq!(
        (&books["remedy"], &books["hit_ratio_with_rules"]),
        (&json!("tried, and safe:"), &json!(1.0)),
        "{books:#}"
    );
    let expected = json!({
        "ITEM_ROUTES": "/book.php?id={item}",
        "PATHS_SHARED": "+ /, /list.php",
        "QUERY_KEPT": "+ category, page",
    });
    assert_eq!(report["vars"], expected, "{report:#}");
    let again = Shop::start(page).examine(&["--var", "ITEM_ROUTES=/book.php?id={item}"]);
    let books = kind(&again, "/book.php?id={item}");
    assert_eq!((&books["stored"], hits(books, "without-cookies")), (&books["pages"], 8), "{books:#}");
}

#[test]
fn products_that_the_shop_forbids_to_store_are_shared_with_their_parameter() {
    // As PHP answers after `session_start()`.
    let php = |asked: &Asked| {
        let cookie = format!("PHPSESSID=0a1b2c3d4e5f{:014}; path=/", asked.number);
        page(asked).with("cache-control", "no-store, no-cache, must-revalidate").with("set-cookie", &cookie)
    };
    let report = Shop::start(php).examine(&[]);
    let books = kind(&report, "/book.php?id");
    assert_eq!(books["hit_ratio_with_rules"], json!(1.0), "{books:#}");
    assert_eq!(report["vars"]["ITEM_ROUTES"], "/book.php?id={item}");
    let shared = report["vars"]["PATHS_SHARED"].as_str().unwrap();
    assert!(shared.contains("/book.php") && !shared.contains("search") && !shared.contains("invoice"), "{shared}");
}

#[test]
fn pages_with_one_path_are_told_apart_by_a_parameter() {
    let shop = |asked: &Asked| {
        let links = (0..8)
            .map(|number| format!("<a href='/index.php?main_page=product_info&amp;products_id={number}'>Mug</a>"));
        let lists = "<a href='/index.php?main_page=index&amp;cPath=1'>A</a><a href='/index.php?main_page=index&amp;cPath=2_3'>B</a>";
        let others = "<a href='/index.php?main_page=contact_us'>C</a><a href='/index.php?main_page=search&amp;keyword=mug'>D</a>";
        let personal =
            "<a href='/index.php?main_page=shopping_cart'>Cart</a><a href='/index.php?main_page=login'>Login</a>";
        let cookie = format!("zenid=0a1b2c3d4e5f{:014}; path=/", asked.number);
        Reply::html(format!("{}{lists}{others}{personal}", links.collect::<String>())).with("set-cookie", &cookie)
    };
    let report = Shop::start(shop).examine(&[]);
    let vars = &report["vars"];
    assert_eq!(vars["ITEM_ROUTES"], "/index.php?products_id={item}", "{report:#}");
    assert_eq!(vars["PATHS_SHARED"], "+ /, /index.php", "{report:#}");
    let kept = vars["QUERY_KEPT"].as_str().unwrap();
    assert_eq!(kept, "+ cPath, main_page=index, main_page=contact_us, main_page=product_info", "{report:#}");
    for (kind, expected) in [
        ("/index.php?main_page=product_info&products_id", 1.0),
        ("/index.php?cPath&main_page=index", 1.0),
        ("/index.php?main_page=shopping_cart", 0.0),
        ("/index.php?main_page=login", 0.0),
    ] {
        let kind = super::support::kind(&report, kind);
        assert_eq!(kind["hit_ratio_with_rules"], json!(expected), "{kind:#}");
    }
}
