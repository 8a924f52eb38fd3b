//! The demo shop behind the edge, in workerd with a real D1: its pages, and the API fields that its scripts read.

mod accounts;
mod cart;
pub mod checkout;
mod errors;
mod flash;
mod outage;
pub mod person;
mod sample_visitors;
mod search;
mod weight;

use std::{
    collections::{BTreeSet, VecDeque},
    path::Path,
};

use edgefront::demo::{CATEGORIES, ON_SALE};
use http::{HeaderMap, Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{SERVICE_KEY, Shop, eventually};

const MUG: &str = "enamel-mug-sage";

fn assets() -> &'static Path {
    Path::new("assets")
}

async fn open() -> Shop {
    Shop::workerd(&[("ORIGIN_URL", ""), ("ROWS_TABLE", "inventory"), ("ROW_MEMORY", "0")]).await
}

async fn read(shop: &Shop, path: &str) -> (StatusCode, HeaderMap, String) {
    let answer = shop.visit(path).await;
    let (status, headers) = (answer.status(), answer.headers().clone());
    (status, headers, answer.text().await.expect("text"))
}

async fn read_json(shop: &Shop, path: &str) -> Value {
    let (status, _, text) = read(shop, path).await;
    assert_eq!(status, StatusCode::OK, "{path}: {text}");
    serde_json::from_str(&text).expect("JSON")
}

/// The local URLs that the page links to, without fragments.
fn links(page: &str) -> impl Iterator<Item = String> {
    let named = page.split(" href=\"").chain(page.split(" src=\"")).filter_map(|rest| rest.split(['"', '#']).next());
    named.filter(|link| link.starts_with('/')).map(|link| link.replace("&#38;", "&"))
}

/// Name and tone of each picture on the page.
fn pictures(page: &str) -> impl Iterator<Item = (String, String)> {
    page.split("<svg class=\"picture tone-").skip(1).filter_map(|rest| {
        let (tone, rest) = rest.split_once('"')?;
        let (_, rest) = rest.split_once("<use href=\"")?;
        let (link, _) = rest.split_once('"')?;
        Some((link.split_once('#')?.1.to_owned(), tone.to_owned()))
    })
}

#[tokio::test]
async fn every_link_works_and_every_product_is_reachable_and_has_a_picture() {
    let shop = open().await;
    let mut known = BTreeSet::from(["/".to_owned()]);
    let mut ahead = VecDeque::from(["/".to_owned()]);
    let (mut drawings, mut tones) = (BTreeSet::new(), BTreeSet::new());
    while let Some(path) = ahead.pop_front() {
        let (status, headers, page) = read(&shop, &path).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        assert!(headers.contains_key("cache-control") && !headers.contains_key("set-cookie"), "{path}: {headers:?}");
        if headers["content-type"] == "text/html; charset=utf-8" {
            ahead.extend(links(&page).filter(|link| known.insert(link.clone())));
            let (names, classes): (Vec<_>, Vec<_>) = pictures(&page).unzip();
            assert!(!path.starts_with("/products/") || names.first().is_some_and(|name| name != "parcel"), "{path}");
            drawings.extend(names);
            tones.extend(classes);
        }
    }
    let count = |prefix| known.iter().filter(|path| path.starts_with(prefix) && !path.contains('?')).count();
    assert!(count("/products/") >= 300, "{} products", count("/products/"));
    let categories = CATEGORIES.map(|(id, _)| format!("/categories/{id}"));
    assert!(categories.iter().all(|path| known.contains(path)) && count("/categories/") == categories.len());

    let sprite = assets().join("pictures.svg");
    let sprite = std::fs::read_to_string(sprite).expect("the sprite");
    assert!(drawings.len() > 100, "{drawings:?}");
    for name in &drawings {
        assert!(sprite.contains(&format!("<symbol id=\"{name}\">")), "{name}");
    }
    let style = std::fs::read_to_string(assets().join("shop/pictures.css")).expect("the style");
    for tone in &tones {
        assert!(style.contains(&format!("\n.tone-{tone} {{")), "{tone}");
    }
}

/// The navigation is a constant and the home page reads the database: both list the same categories.
#[tokio::test]
async fn the_header_links_to_every_category() {
    let shop = open().await;
    let page = read(&shop, "/").await.2;
    let tiles: Vec<_> =
        page.split("<li class=\"tile\">").skip(1).map(|tile| tile.split("</li>").next().unwrap()).collect();
    assert_eq!(tiles.len(), CATEGORIES.len());
    for (tile, (id, name)) in tiles.iter().zip(CATEGORIES) {
        let name = name.replace('&', "&#38;");
        assert!(
            tile.contains(&format!("\"/categories/{id}\"")) && tile.contains(&format!("<h3>{name}</h3>")),
            "{tile}"
        );
        assert!(page.contains(&format!("<li><a href=\"/categories/{id}\">{name}</a></li>")), "{id}");
    }
}

#[tokio::test]
async fn a_product_has_two_urls_and_an_unknown_product_is_not_found() {
    let shop = open().await;
    let (status, headers, page) = read(&shop, &format!("/products/{MUG}")).await;
    assert_eq!(status, StatusCode::OK);
    assert!(page.contains("<h1>Enamel Mug, Sage</h1>"), "{page}");
    assert!(headers.keys().all(|name| !name.as_str().starts_with("edge-")), "{headers:?}");
    assert_eq!(read(&shop, &format!("/?item={MUG}")).await.2, page);

    let head = shop.request(Method::HEAD, &format!("/products/{MUG}")).send().await.expect("an answer");
    assert_eq!(head.status(), StatusCode::OK);
    assert_eq!(head.headers()["content-length"], page.len().to_string());

    for path in
        ["/products/no-such-mug", "/?item=no-such-mug", "/?item=", "/categories/no-such", "/categories/desk?page=9"]
    {
        assert_eq!(read(&shop, path).await.0, StatusCode::NOT_FOUND, "{path}");
    }
    eventually("only the view of the product counts", async || {
        let popular = read_json(&shop, "/_edge/v1/popular").await;
        let ids: Vec<_> = popular["items"].as_array().expect("items").iter().map(|item| &item["id"]).collect();
        ids == [MUG]
    })
    .await;
}

#[tokio::test]
async fn each_variant_has_its_own_url_price_and_stock() {
    let shop = open().await;
    let pan = |size: &str| format!("/products/carbon-steel-frying-pan-{size}-cm");
    shop.sql("UPDATE inventory SET stock = 0 WHERE id = 'carbon-steel-frying-pan-20-cm'").await;
    let large = read(&shop, &pan("28")).await.2;
    let shown = |page: &str, text: &str| assert!(page.contains(text), "{text}: {page}");
    shown(&large, "<span class=\"variant\" aria-current=\"true\">28 cm</span>");
    shown(
        &large,
        &format!("<a class=\"variant gone\" href=\"{}\">20 cm <span class=\"note\">sold out</span></a>", pan("20")),
    );
    shown(&large, &format!("<a class=\"variant\" href=\"{}\">24 cm <span class=\"note\">€", pan("24")));
    let small = read(&shop, &pan("20")).await.2;
    for (page, url, stock) in [(&large, pan("28"), "In stock"), (&small, pan("20"), "Sold out")] {
        shown(page, &format!("<link rel=\"canonical\" href=\"{}{url}\">", shop.url));
        shown(page, &format!("data-stock>{stock}</p>"));
    }
    shown(&small, "data-price>€39.00</span>");
    assert!(!large.contains("data-price>€39.00</span>"), "{large}");
}

#[tokio::test]
async fn product_data_contains_current_sale_prices() {
    let shop = open().await;
    let answer = read_json(&shop, &format!("/products.json?ids={MUG},hammock-sky,no-such,%27%20OR%201%3D1")).await;
    let mut products = answer["products"].as_array().expect("products").clone();
    products.sort_by_key(|product| product["id"].to_string());
    let prices: Vec<_> = products.iter().map(|it| json!([it["id"], it["price_cents"], it["list_cents"]])).collect();
    assert_eq!(prices, [json!([MUG, 1050, 1400]), json!(["hammock-sky", 6400, 6400])]);
}

#[tokio::test]
async fn the_home_page_shows_the_items_of_the_constant_on_sale() {
    let shop = open().await;
    let page = read(&shop, "/").await.2;
    let on_sale: BTreeSet<_> =
        links(&page).filter_map(|link| Some(link.strip_prefix("/products/")?.to_owned())).collect();
    assert_eq!(on_sale, ON_SALE.map(str::to_owned).into());
}

/// `assets/shop/*.js` reads these fields by name.
#[tokio::test]
async fn the_api_has_the_fields_that_the_shops_scripts_read() {
    let shop = open().await;
    let session = read_json(&shop, "/_edge/v1/session").await;
    assert_eq!((&session["user"], &session["cart"]["quantity"]), (&Value::Null, &json!(0)));
    assert_eq!(read_json(&shop, "/_edge/v1/cart").await["items"], json!([]));

    let add = shop.request(Method::POST, "/_edge/v1/cart/items").header("origin", &shop.url);
    let add = add.header("content-type", "application/json").body(json!({"id": MUG, "quantity": 2}).to_string());
    let answer = add.send().await.expect("an answer").bytes().await.expect("a body");
    let cart: Value = serde_json::from_slice(&answer).expect("JSON");
    assert_eq!((&cart["quantity"], &cart["items"]), (&json!(2), &json!([{"id": MUG, "quantity": 2}])));

    let schedule = shop.request(Method::PUT, &format!("/_edge/v1/rows/{MUG}/schedule")).bearer_auth(SERVICE_KEY);
    let schedule = schedule.header("content-type", "application/json").body(json!({"every": 60}).to_string());
    assert!(schedule.send().await.expect("an answer").status().is_success());
    let row = &read_json(&shop, &format!("/_edge/v1/rows?ids={MUG},hammock-sky")).await["rows"][MUG];
    for field in ["stock", "price_cents", "sale_price_cents", "sale_starts_at", "sale_ends_at"] {
        assert!(row[field].is_i64(), "{field}: {row}");
    }
}

#[tokio::test]
async fn a_static_file_has_a_versioned_url_and_is_immutable() {
    let shop = open().await;
    let page = shop.visit("/").await.text().await.unwrap();
    for name in ["shop.css", "shop.js", "pictures.svg", "icon.svg"] {
        let (_, rest) =
            page.split_once(&format!("\"/_edge/assets/{name}?v=")).unwrap_or_else(|| panic!("{name}: {page}"));
        let version = rest.split(['"', '#']).next().unwrap();
        let file = shop.visit(&format!("/_edge/assets/{name}?v={version}")).await;
        assert_eq!(file.status(), 200, "{name}");
        assert_eq!(file.headers()["cache-control"], "public, max-age=31536000, immutable", "{name}");
        assert_eq!(file.headers()["content-security-policy"], "default-src 'none'", "{name}");
    }
    assert_eq!(shop.visit("/_edge/assets/nothing.js").await.status(), 404);
}
