//! `/categories/{id}`: the products of a category, page by page.

use askama::Template;
use http::StatusCode;

use super::html;
use crate::{
    demo::catalogue::{Category, CategoryListing, ProductCard},
    ports::{error::Error, fetch::Response},
};

#[derive(Template)]
#[template(path = "category.html")]
struct CategoryPage<'a> {
    category: &'a Category,
    cards: &'a [ProductCard],
    page: u32,
    pages: u32,
}

pub(in crate::demo) fn category(listing: &CategoryListing) -> Result<Response, Error> {
    let CategoryListing { category, cards, page, pages } = listing;
    html(StatusCode::OK, &CategoryPage { category, cards, page: page.get(), pages: *pages })
}
