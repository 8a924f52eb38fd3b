//! `/cart`: the cart's page, and the plain forms that change the cart. The shop stores no cart. It answers with an
//! `Edge-Cart` header, and the edge applies the change before it sends the response to the visitor.
//!
//! - `priced`: a cart with names and prices.

mod priced;

use askama::Template;
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::json;

pub(super) use self::priced::PricedCart;
use super::{
    Shop,
    forms::SubmittedForm,
    pages::{self, see_other},
    shopper::Shopper,
};
use crate::{
    ports::{error::Error, fetch::Response},
    schema::ids::ItemId,
};

const EDGE_CART: HeaderName = HeaderName::from_static("edge-cart");

/// The highest quantity of one item: the edge's default limit.
const MAX_QUANTITY: u32 = 999;

#[derive(Template)]
#[template(path = "cart.html")]
struct CartPage<'a> {
    user: Option<&'a str>,
    /// None while Redis is down.
    cart: Option<&'a PricedCart>,
}

pub(super) async fn show(shop: Shop<'_>, shopper: &Shopper) -> Result<Response, Error> {
    match &shopper.cart {
        Some(cart) => page(StatusCode::OK, shopper, Some(&PricedCart::load(&shop.catalogue(), cart).await?)),
        None => page(StatusCode::SERVICE_UNAVAILABLE, shopper, None),
    }
}

/// Changes the cart. The field `op` is `add` or `set` with `id` and `quantity`, or `remove` with `id`.
pub(super) async fn change(shop: Shop<'_>, shopper: &Shopper, form: &SubmittedForm) -> Result<Response, Error> {
    let id = ItemId::parse(form.trimmed("id")).map_err(|_| Error::NotFound("product"))?;
    let op = form.trimmed("op");
    if op == "remove" {
        return Ok(change_response("set", &id, 0));
    }
    if !matches!(op, "add" | "set") {
        return Err(Error::NotFound("operation"));
    }
    let typed = form.trimmed("quantity");
    let catalogue = shop.catalogue();
    match parse_quantity(typed, u32::from(op == "add")) {
        Ok(quantity) if quantity == 0 || catalogue.has_product(&id).await? => Ok(change_response(op, &id, quantity)),
        Ok(_) => Err(Error::NotFound("product")),
        Err(problem) if op == "add" => pages::product_with_problem(&catalogue.product(&id).await?, typed, &problem),
        Err(problem) => {
            let Some(cart) = &shopper.cart else { return show(shop, shopper).await };
            let mut cart = PricedCart::load(&catalogue, cart).await?;
            for line in cart.lines.iter_mut().filter(|line| line.id == id.as_str()) {
                line.rejected = Some((typed.to_owned(), problem.clone()));
            }
            page(StatusCode::UNPROCESSABLE_ENTITY, shopper, Some(&cart))
        }
    }
}

/// The quantity, or an error message for the visitor.
fn parse_quantity(typed: &str, min: u32) -> Result<u32, String> {
    let number = typed.parse().ok().filter(|number| (min..=MAX_QUANTITY).contains(number));
    number.ok_or_else(|| format!("Please enter a whole number from {min} to {MAX_QUANTITY}."))
}

fn page(status: StatusCode, shopper: &Shopper, cart: Option<&PricedCart>) -> Result<Response, Error> {
    pages::private(pages::html(status, &CartPage { user: shopper.user.as_deref(), cart }))
}

/// Redirects to the cart. The edge applies the change in `Edge-Cart` before the visitor follows the redirect.
fn change_response(op: &str, id: &ItemId, quantity: u32) -> Response {
    let change = json!({"op": op, "id": id.as_str(), "quantity": quantity}).to_string();
    let mut response = see_other("/cart");
    response.headers_mut().extend(HeaderValue::try_from(change).map(|change| (EDGE_CART, change)));
    response
}
