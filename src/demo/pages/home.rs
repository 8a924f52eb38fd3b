//! `/`: categories and sales.

use askama::Template;
use http::StatusCode;

use super::html;
use crate::{
    demo::catalogue::{Category, FlashOffer, ProductCard},
    ports::{error::Error, fetch::Response},
};

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage<'a> {
    categories: &'a [Category],
    on_sale: &'a [ProductCard],
    flash_sales: &'a [FlashOffer],
}

pub(in crate::demo) fn home(
    categories: &[Category],
    on_sale: &[ProductCard],
    flash_sales: &[FlashOffer],
) -> Result<Response, Error> {
    html(StatusCode::OK, &HomePage { categories, on_sale, flash_sales })
}
