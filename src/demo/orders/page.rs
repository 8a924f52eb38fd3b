//! `/orders/{id}`: the order confirmation.

use askama::Template;
use http::StatusCode;

use super::{DemoOrder, DemoOrderId, DemoOrderLine};
use crate::{
    demo::{
        Shop,
        pages::{self, Frame},
        shopper::Shopper,
    },
    ports::{error::Error, fetch::Response},
};

#[derive(Template)]
#[template(path = "order.html")]
struct OrderPage<'a> {
    frame: Frame<'a>,
    order: &'a DemoOrder,
    lines: &'a [DemoOrderLine],
    status: &'a str,
}

/// # Errors
/// [`Error::NotFound`] if there is no such order, or the visitor may not see it.
pub(in crate::demo) async fn show(shop: Shop<'_>, shopper: &Shopper, id: &DemoOrderId) -> Result<Response, Error> {
    let (order, lines) = shop.orders().find(id).await?.ok_or(Error::NotFound("order"))?;
    if !order.is_visible_to(shopper.user.as_deref(), shop.now) {
        return if shopper.is_unknown { Ok(pages::unavailable()) } else { Err(Error::NotFound("order")) };
    }
    let title = format!("Order {}", order.number());
    let frame = Frame::private(&title, shopper);
    pages::private(pages::html(
        StatusCode::OK,
        &OrderPage { frame, order: &order, lines: &lines, status: order.status(shop.now) },
    ))
}
