//! `/products/{id}`: a product, its variants, and the form that adds it to the cart.

use askama::Template;
use http::{HeaderValue, StatusCode};

use super::{EDGE_TAGS, html, private};
use crate::{
    demo::catalogue::{Product, ProductCard},
    ports::{error::Error, fetch::Response},
};

#[derive(Template)]
#[template(path = "product.html")]
struct ProductPage<'a> {
    product: &'a Product,
    /// The other variants of the product line.
    variants: &'a [ProductCard],
    /// A rejected quantity as typed, and its problem.
    rejected: Option<(&'a str, &'a str)>,
}

/// Sends no `Cache-Control`: the edge chooses the freshness by the item's rank.
pub(in crate::demo) fn product((product, variants): &(Product, Vec<ProductCard>)) -> Result<Response, Error> {
    let mut response = html(StatusCode::OK, &ProductPage { product, variants, rejected: None })?;
    if let Ok(tags) = HeaderValue::try_from(format!("product,category-{}", product.category)) {
        response.headers_mut().insert(EDGE_TAGS, tags);
    }
    Ok(response)
}

/// The page after a rejected quantity: shows the quantity as `typed`, and its `problem`.
pub(in crate::demo) fn product_with_problem(
    (product, variants): &(Product, Vec<ProductCard>),
    typed: &str,
    problem: &str,
) -> Result<Response, Error> {
    let page = ProductPage { product, variants, rejected: Some((typed, problem)) };
    private(html(StatusCode::UNPROCESSABLE_ENTITY, &page))
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
        product(&(serde_json::from_value(row).unwrap(), variants)).unwrap()
    }

    #[test]
    fn catalogue_texts_are_escaped() {
        let page = text(mug_page(&test_card(1400, 1400, 3), vec![test_card(1400, 1400, 3)]));
        assert!(!page.contains("<script>alert") && !page.contains("<b>") && !page.contains("<Sage>"), "{page}");
        assert!(page.contains("&#60;script&#62;alert(1)"), "{page}");
        let product = serde_json::from_value(
            json!({"category": "", "category_name": "", "description": "", "details": "{}",
            "id": "mug", "name": "", "currency": "EUR", "price_cents": 1, "list_cents": 1, "stock": 1, "picture": "", "tone": ""}),
        );
        let page = product_with_problem(&(product.unwrap(), vec![]), "\"><script>alert(1)</script>", "<i>");
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
