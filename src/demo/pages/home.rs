//! `/`: categories and sales.

use askama::Template;
use http::StatusCode;

use super::{Frame, html};
use crate::{
    demo::catalogue::{Category, FlashOffer, ProductCard},
    ports::{error::Error, fetch::Response},
};

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage<'a> {
    frame: Frame<'a>,
    categories: &'a [Category],
    on_sale: &'a [ProductCard],
    flash_sales: &'a [FlashOffer],
}

pub(in crate::demo) fn home(
    site: &str,
    categories: &[Category],
    on_sale: &[ProductCard],
    flash_sales: &[FlashOffer],
) -> Result<Response, Error> {
    let description = "Cookware, towels, lamps and camping gear that last for years and can be repaired.";
    let frame = Frame::public("Everyday goods for home and travel", description, site, "/");
    html(StatusCode::OK, &HomePage { frame, categories, on_sale, flash_sales })
}
