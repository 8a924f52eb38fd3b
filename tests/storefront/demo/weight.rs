//! The weight of a first visit: a page and the styles and scripts that it names, gzipped. Fonts, pictures, and scripts
//! that the first use loads are apart.

use std::{collections::BTreeMap, io::Write};

use edgefront::demo::FLASH_SALES;
use flate2::{Compression, write::GzEncoder};
use http::StatusCode;

use super::{MUG, checkout::buy, open, person::Person, read};
use crate::support::Shop;

const MAX_GZIPPED_BYTES: usize = 16_000;
/// Pages of a guest that the sitemap does not list.
const GUEST_PAGES: [&str; 9] = [
    "/search?q=mug",
    "/search?q=steel",
    "/search?q=zebra",
    "/cart",
    "/checkout",
    "/login",
    "/signup",
    "/reset",
    "/nowhere",
];

/// Weighs pages, and each style and script once.
struct Scale<'a> {
    shop: &'a Shop,
    parts: BTreeMap<String, usize>,
    /// Weight and path of the heaviest page so far.
    heaviest: (usize, String),
}

impl<'a> Scale<'a> {
    fn of(shop: &'a Shop) -> Self {
        Self { shop, parts: BTreeMap::new(), heaviest: Default::default() }
    }

    /// Fails if the page with its styles and scripts is too heavy.
    async fn weigh(&mut self, path: &str, page: &str) {
        let mut sizes = vec![gzipped(page)];
        for part in parts(page) {
            if !self.parts.contains_key(part) {
                let (status, _, text) = read(self.shop, part).await;
                assert_eq!(status, StatusCode::OK, "{part}");
                self.parts.insert(part.to_owned(), gzipped(&text));
            }
            sizes.push(self.parts[part]);
        }
        let sum: usize = sizes.iter().sum();
        println!("{path}: {sum} bytes gzipped: {sizes:?}");
        assert!(sizes.len() >= 3 && sum < MAX_GZIPPED_BYTES, "{path}: {sum} bytes gzipped: {sizes:?}");
        self.heaviest = self.heaviest.clone().max((sum, path.to_owned()));
    }
}

/// The level that servers use for static files.
fn gzipped(text: &str) -> usize {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap().len()
}

/// The URLs of the page's styles and scripts.
fn parts(page: &str) -> impl Iterator<Item = &str> {
    let elements = page
        .split('<')
        .filter(|element| element.starts_with("link rel=\"stylesheet\"") || element.starts_with("script src="));
    elements.filter_map(|element| element.split('"').find(|value| value.starts_with('/')))
}

#[tokio::test]
async fn a_first_visit_stays_below_16_kb() {
    let shop = open().await;
    let mut scale = Scale::of(&shop);
    let sitemap = read(&shop, "/sitemap.xml").await.2;
    let listed = sitemap.split("<loc>").skip(1).filter_map(|rest| rest.split("</loc>").next());
    let listed: Vec<_> = listed.map(|url| url.strip_prefix(&shop.url).expect("a URL of the shop")).collect();
    assert!(listed.len() > 300, "{listed:?}");
    let sales = FLASH_SALES.map(|item| format!("/flash/{item}"));
    for path in listed.into_iter().chain(GUEST_PAGES).chain(sales.iter().map(String::as_str)) {
        scale.weigh(path, &read(&shop, path).await.2).await;
    }
    println!("the heaviest: {:?}", scale.heaviest);
}

/// A bookmark, a link in a mail, or a visit with an empty browser cache.
#[tokio::test]
async fn a_first_visit_to_a_page_of_the_visitor_stays_below_16_kb() {
    let shop = open().await;
    let mut scale = Scale::of(&shop);
    let person = Person::at(&shop);
    person.sign_up("ada@example.org").await;
    for item in [MUG, "carbon-steel-frying-pan-20-cm", "hammock-sky"] {
        person.add(item, 2).await;
    }
    let form = person.get("/checkout").await;
    let order = format!("/orders/{}", form.field("order_id"));
    for path in ["/cart", "/checkout", "/account"] {
        scale.weigh(path, &person.get(path).await.text).await;
    }
    let bought = buy(&person, &form).await;
    assert_eq!(bought.location(), order, "{}", bought.text);
    for path in [&*order, "/account", "/cart"] {
        scale.weigh(path, &person.get(path).await.text).await;
    }
}
