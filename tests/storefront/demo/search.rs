//! Search, filters and lists of the demo shop, in workerd with the FTS5 index of D1.

use http::StatusCode;

use super::{MUG, open, read, read_json};
use crate::support::Shop;

/// The names on the cards of a list, in its order.
async fn names(shop: &Shop, path: &str) -> Vec<String> {
    let (status, _, page) = read(shop, path).await;
    assert_eq!(status, StatusCode::OK, "{path}");
    let cards = page.split("<li class=\"card\">").skip(1);
    let name =
        |card: &str| card.split_once("<span class=\"name\">")?.1.split_once('<').map(|(name, _)| name.to_owned());
    cards.filter_map(name).collect()
}

#[tokio::test]
async fn a_search_finds_prefixes_plurals_and_misspelled_words_and_names_count_most() {
    let shop = open().await;
    assert_eq!(names(&shop, "/search?q=ket").await[0], "Gooseneck Kettle");
    assert_eq!(names(&shop, "/search?q=mugs").await[0], "Enamel Mug");
    assert_eq!(names(&shop, "/search?q=board+chopping").await, ["End-Grain Chopping Board"]);
    let page = read(&shop, "/search?q=taepot").await.2;
    assert!(page.contains("No results for “taepot”. Here are the results for “teapot”."), "{page}");
    assert_eq!(names(&shop, "/search?q=taepot").await.len(), 2);
    assert_eq!(names(&shop, "/search?q=xylophone").await.len(), 0);
    let nothing = read(&shop, "/search?q=xylophone").await.2;
    assert!(nothing.contains("<h1>No results for “xylophone”</h1>") && !nothing.contains("class=\"filters\""));
    for hostile in ["%22", "*", "%22+OR+%22", "NEAR(a+b)", "q%3A%3Bx", "%00", "%F0%9F%94%AA"] {
        assert_eq!(shop.visit(&format!("/search?q={hostile}")).await.status().as_u16() / 100, 3, "{hostile}");
    }
    let answer = read_json(&shop, "/search.json?q=knife+walnut").await;
    let first = answer["products"][0]["id"].as_str().unwrap();
    assert!(first.ends_with("knife-walnut"), "the variant that the search names: {first}");
}

#[tokio::test]
async fn filters_and_orders_select_product_lines() {
    let shop = open().await;
    let all = names(&shop, "/categories/kitchen").await;
    assert_eq!(all.len(), 11, "one card for each product line: {all:?}");
    let page = read(&shop, "/categories/kitchen").await.2;
    assert!(page.contains("From €39.00") && page.contains("3 options, in stock"), "{page}");
    shop.sql("UPDATE inventory SET stock = 0 WHERE id LIKE 'moka-pot-%'").await;
    let page = read(&shop, "/search?q=moka").await.2;
    assert!(page.contains("Sold out</span>") && page.contains("3 options</span>") && page.contains("€"), "{page}");
    assert_eq!(names(&shop, "/categories/coffee-tea?sale=1").await, ["Moka Pot, 6 cups"]);
    let cheap_first = names(&shop, "/categories/kitchen?sort=price-low").await;
    let dear_first = names(&shop, "/categories/kitchen?sort=price-high").await;
    assert_eq!((cheap_first[0].as_str(), dear_first[0].as_str()), ("Olive Wood Spoon", "Cast Iron Casserole"));
    assert_eq!(names(&shop, "/categories/kitchen?price=over-100&stock=1").await.len(), 2);
    assert_eq!(names(&shop, "/categories/kitchen?price=under-20&sale=1").await.len(), 0);
    let pages = [names(&shop, "/search").await, names(&shop, "/search?page=5").await];
    assert_eq!((pages[0].len(), pages[1].len()), (24, 16), "112 product lines");
    assert_eq!(read(&shop, "/search?page=6").await.0, StatusCode::NOT_FOUND);
}

/// Orders count: between equal matches, the one that sold more comes first.
#[tokio::test]
async fn popularity_breaks_ties() {
    let shop = open().await;
    shop.sql("UPDATE products SET sold = 0").await;
    shop.sql("UPDATE products SET sold = 9 WHERE id = 'stoneware-side-plate-clay'").await;
    assert_eq!(names(&shop, "/search?q=plate").await[0], "Stoneware Side Plate");
    shop.sql("UPDATE products SET sold = 10 WHERE id = 'stoneware-dinner-plate-clay'").await;
    assert_eq!(names(&shop, "/search?q=plate&sort=popular").await[0], "Stoneware Dinner Plate");
}

#[tokio::test]
async fn equal_searches_share_one_stored_page_and_few_searches_are_stored() {
    let shop = open().await;
    for (typed, canonical) in [
        ("/search?q=+Mug", "/search?q=mug"),
        ("/search?sort=&price=&q=MUG", "/search?q=mug"),
        ("/categories/kitchen?sort=new&sale=1&price=", "/categories/kitchen?sale=1&sort=new"),
    ] {
        let answer = shop.visit(typed).await;
        assert_eq!(
            (answer.status(), answer.headers()["location"].to_str().unwrap()),
            (StatusCode::SEE_OTHER, canonical)
        );
    }
    let is_stored = async |path: &str| {
        shop.visit(path).await;
        shop.settled().await;
        let answer = shop.visit(path).await;
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        assert!(!answer.headers().contains_key("set-cookie"));
        answer.headers()["cache-status"].to_str().unwrap().contains("hit")
    };
    for path in ["/search?q=mug", "/search", "/categories/kitchen", "/categories/kitchen?sale=1&sort=new"] {
        assert!(is_stored(path).await, "{path}");
    }
    // Words that the catalogue does not have, several words and filters have no end.
    for path in [
        "/search?q=mu",
        "/search?q=xylophone",
        "/search?q=enamel+mug",
        "/search?q=mug&stock=1",
        "/categories/kitchen?x=1",
    ] {
        assert!(!is_stored(path).await, "{path}");
    }
}

/// The page's data for search engines.
fn structured_data(page: &str) -> serde_json::Value {
    let (_, rest) = page.split_once("<script type=\"application/ld+json\">").expect("data");
    serde_json::from_str(rest.split_once("</script>").expect("its end").0).expect("JSON")
}

#[tokio::test]
async fn search_engines_get_a_description_of_each_page() {
    let shop = open().await;
    let (_, _, page) = read(&shop, "/products/enamel-mug-sage").await;
    let url = format!("{}/products/enamel-mug-sage", shop.url);
    for text in [
        "<title>Enamel Mug, Sage · Edgeware</title>",
        "<meta name=\"description\" content=\"",
        &format!("<link rel=\"canonical\" href=\"{url}\">"),
        "<meta property=\"og:image\" content=\"",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    let data = structured_data(&page);
    let offer = &data[0]["offers"];
    assert_eq!((&data[0]["@type"], &data[0]["url"], &data[0]["sku"]), (&"Product".into(), &url.into(), &MUG.into()));
    assert_eq!((&offer["price"], &offer["priceCurrency"]), (&"10.50".into(), &"EUR".into()));
    assert_eq!(offer["availability"], "https://schema.org/InStock");
    assert_eq!(data[1]["itemListElement"].as_array().map(Vec::len), Some(3));
    let picture = data[0]["image"].as_str().unwrap();
    assert!(page.contains(&format!("<meta property=\"og:image\" content=\"{picture}\">")), "{page}");
    let picture = shop.visit(picture.strip_prefix(&shop.url).expect("a picture of the shop")).await;
    assert_eq!((picture.status(), &picture.headers()["content-type"]), (StatusCode::OK, &"image/png".parse().unwrap()));
    let category = read(&shop, "/categories/kitchen").await.2;
    assert_eq!(structured_data(&category)["@type"], "BreadcrumbList");
    assert!(category.contains("href=\"/categories/kitchen\" aria-current=\"page\">Kitchen</a>"), "{category}");

    let (_, headers, sitemap) = read(&shop, "/sitemap.xml").await;
    assert_eq!(headers["content-type"], "application/xml; charset=utf-8");
    assert_eq!(sitemap.matches("<loc>").count(), 327 + 12);
    assert!(read(&shop, "/robots.txt").await.2.contains("Sitemap: "));
    let icon = shop.visit("/favicon.ico").await;
    assert_eq!(icon.status(), StatusCode::SEE_OTHER);
    let icon = shop.visit(icon.headers()["location"].to_str().unwrap()).await;
    assert_eq!((icon.status(), &icon.headers()["content-type"]), (StatusCode::OK, &"image/svg+xml".parse().unwrap()));
    for path in ["/cart", "/login", "/nowhere", "/search?q=xylophone", "/search?q=mug&price=over-100"] {
        assert!(read(&shop, path).await.2.contains("<meta name=\"robots\" content=\"noindex\">"), "{path}");
    }
}

#[tokio::test]
async fn search_engines_list_a_search_with_results_once() {
    let shop = open().await;
    for (path, canonical) in [
        ("/search?q=mug", "/search?q=mug"),
        ("/search?q=mug&stock=1&sort=new", "/search?q=mug"),
        ("/search?q=taepot", "/search?q=teapot"),
        ("/search?page=2", "/search"),
    ] {
        let (status, _, page) = read(&shop, path).await;
        let link = format!("<link rel=\"canonical\" href=\"{}{canonical}\">", shop.url);
        assert!(status == StatusCode::OK && page.contains(&link) && !page.contains("noindex"), "{path}: {page}");
        assert!(page.contains("<meta name=\"description\" content=\""), "{path}");
    }
    let robots = read(&shop, "/robots.txt").await.2;
    assert!(!robots.contains("/search") && robots.contains("Disallow: /cart\n"), "{robots}");
}
