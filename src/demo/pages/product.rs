//! `/products/{id}`: a product, its variants, and the form that adds it to the cart.

use askama::Template;
use http::{HeaderValue, StatusCode};
use serde_json::{Value, json};

use super::{EDGE_TAGS, Frame, html, private};
use crate::{
    demo::{
        catalogue::{Choice, Product, ProductCard, choices},
        shopper::Shopper,
    },
    ports::{error::Error, fetch::Response},
};

#[derive(Template)]
#[template(path = "product.html")]
struct ProductPage<'a> {
    frame: Frame<'a>,
    product: &'a Product,
    choices: Vec<Choice<'a>>,
    /// A rejected quantity as typed, and its problem.
    rejected: Option<(&'a str, &'a str)>,
}

/// A product, and all variants of its product line.
type ProductAndVariants = (Product, Vec<ProductCard>);

/// Sends no `Cache-Control`: the edge chooses the freshness by the item's rank.
pub(in crate::demo) fn product(site: &str, (product, variants): &ProductAndVariants) -> Result<Response, Error> {
    let path = format!("/products/{}", product.card.id);
    let mut frame = Frame::public(&product.card.name, &product.description, site, &path);
    frame.category = &product.category;
    frame.data = Some(search_data(site, product));
    let choices = choices(&product.card, variants);
    let mut response = html(StatusCode::OK, &ProductPage { frame, product, choices, rejected: None })?;
    if let Ok(tags) = HeaderValue::try_from(format!("product,category-{}", product.category)) {
        response.headers_mut().insert(EDGE_TAGS, tags);
    }
    Ok(response)
}

/// The page after a rejected quantity: shows the quantity as `typed`, and its `problem`.
pub(in crate::demo) fn product_with_problem(
    shopper: &Shopper,
    (product, variants): &ProductAndVariants,
    typed: &str,
    problem: &str,
) -> Result<Response, Error> {
    let frame = Frame::private(&product.card.name, shopper);
    let choices = choices(&product.card, variants);
    let page = ProductPage { frame, product, choices, rejected: Some((typed, problem)) };
    private(html(StatusCode::UNPROCESSABLE_ENTITY, &page))
}

/// The product and its place in the shop in the vocabulary of schema.org.
fn search_data(site: &str, product: &Product) -> Value {
    let ProductCard { id, name, line, currency, price_cents, stock, .. } = &product.card;
    let url = format!("{site}/products/{id}");
    let availability = if *stock > 0 { "https://schema.org/InStock" } else { "https://schema.org/OutOfStock" };
    let price = format!("{}.{:02}", price_cents / 100, price_cents % 100);
    let category = format!("{site}/categories/{}", product.category);
    json!([
        {"@context": "https://schema.org", "@type": "Product", "name": name, "description": product.description,
            "sku": id, "inProductGroupWithID": line, "url": url, "category": product.category_name,
            "image": format!("{site}{}", crate::demo::assets::CARD),
            "offers": {"@type": "Offer", "url": url, "price": price, "priceCurrency": currency, "availability": availability}},
        {"@context": "https://schema.org", "@type": "BreadcrumbList", "itemListElement": [
            {"@type": "ListItem", "position": 1, "name": "Home", "item": format!("{site}/")},
            {"@type": "ListItem", "position": 2, "name": product.category_name, "item": category},
            {"@type": "ListItem", "position": 3, "name": name}]},
    ])
}

#[cfg(test)]
pub(super) mod tests {
    use http::header::CACHE_CONTROL;
    use serde_json::json;

    use super::*;
    use crate::demo::{catalogue::test_card, pages::tests::text};

    pub fn mug_page(card: &ProductCard, variants: Vec<ProductCard>) -> Response {
        let mut row = json!({"category": "tableware", "category_name": "Tableware", "description": "<script>alert(1)</script>",
            "details": r#"{"Zest": "first", "Age": "<b>second</b>"}"#});
        row.as_object_mut().unwrap().extend(json!(card).as_object().unwrap().clone());
        product("https://shop.example", &(serde_json::from_value(row).unwrap(), variants)).unwrap()
    }

    #[test]
    fn catalogue_texts_are_escaped() {
        let page = text(mug_page(&test_card(1400, 1400, 3), vec![test_card(1400, 1400, 3)]));
        assert!(!page.contains("<script>alert") && !page.contains("<b>") && !page.contains("<Sage>"), "{page}");
        assert!(page.contains("&#60;script&#62;alert(1)"), "{page}");
        let product = serde_json::from_value(
            json!({"category": "", "category_name": "", "description": "", "details": "{}",
            "id": "mug", "line": "mug", "name": "", "currency": "EUR", "price_cents": 1, "list_cents": 1, "stock": 1, "picture": "", "tone": ""}),
        );
        let page = product_with_problem(
            &Shopper::default(),
            &(product.unwrap(), vec![]),
            "\"><script>alert(1)</script>",
            "<i>",
        );
        let page = text(page.unwrap());
        assert!(!page.contains("<script>alert") && !page.contains("\"\">") && !page.contains("<i>"), "{page}");
    }

    #[test]
    fn details_keep_the_order_of_the_catalogue() {
        let page = text(mug_page(&test_card(1400, 1400, 3), vec![]));
        assert!(page.find("Zest").unwrap() < page.find("Age").unwrap());
    }

    #[test]
    fn a_reduced_product_shows_both_prices_and_a_product_without_stock_is_sold_out() {
        let page = text(mug_page(&test_card(1400, 1050, 3), vec![]));
        assert!(
            page.contains("€10.50") && page.contains("<s data-list-price>€14.00</s>") && page.contains("In stock"),
            "{page}"
        );
        let page = text(mug_page(&test_card(1400, 1400, 0), vec![]));
        assert!(
            page.contains("€14.00") && page.contains("<s data-list-price></s>") && page.contains("Sold out"),
            "{page}"
        );
    }

    #[test]
    fn a_product_page_is_tagged_and_leaves_its_freshness_to_the_edge() {
        let page = mug_page(&test_card(1400, 1400, 3), vec![]);
        assert_eq!(page.headers().get("edge-tags").unwrap(), "product,category-tableware");
        assert_eq!(page.headers().get(CACHE_CONTROL), None);
    }
}
