//! `/cart`: what is in it, and plain forms that change it. The shop keeps no cart: it answers with `Edge-Cart`, and the edge does
//! what that says before the visitor gets the answer.

use askama::Template;
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::json;

use super::{
    Shop,
    basket::Basket,
    form::Form,
    pages::{self, see_other},
    visitor::Visitor,
};
use crate::{
    ports::{error::Error, fetch::Response},
    schema::ids::ItemId,
};

const EDGE_CART: HeaderName = HeaderName::from_static("edge-cart");

/// Pieces of one item at most, as the edge has it by default.
const MAX_QUANTITY: u32 = 999;

#[derive(Template)]
#[template(path = "cart.html")]
struct CartPage<'a> {
    user: Option<&'a str>,
    /// None: the cart cannot be reached.
    basket: Option<&'a Basket>,
}

pub(super) async fn show(shop: Shop<'_>, visitor: &Visitor) -> Result<Response, Error> {
    match &visitor.cart {
        Some(cart) => page(StatusCode::OK, visitor, Some(&Basket::of(&shop.catalogue(), cart).await?)),
        None => page(StatusCode::SERVICE_UNAVAILABLE, visitor, None),
    }
}

/// `op`: `add` or `set` with `id` and `quantity`, or `remove` with `id`.
pub(super) async fn change(shop: Shop<'_>, visitor: &Visitor, form: &Form) -> Result<Response, Error> {
    let id = ItemId::parse(form.text("id")).map_err(|_| Error::NotFound("product"))?;
    let op = form.text("op");
    if op == "remove" {
        return Ok(changed("set", &id, 0));
    }
    if !matches!(op, "add" | "set") {
        return Err(Error::NotFound("operation"));
    }
    let typed = form.text("quantity");
    let catalogue = shop.catalogue();
    match quantity(typed, u32::from(op == "add")) {
        Ok(quantity) if quantity == 0 || catalogue.sells(&id).await? => Ok(changed(op, &id, quantity)),
        Ok(_) => Err(Error::NotFound("product")),
        Err(problem) if op == "add" => pages::product_again(&catalogue.product(&id).await?, typed, &problem),
        Err(problem) => {
            let Some(cart) = &visitor.cart else { return show(shop, visitor).await };
            let mut basket = Basket::of(&catalogue, cart).await?;
            for line in basket.lines.iter_mut().filter(|line| line.id == id.as_str()) {
                line.typed = Some((typed.to_owned(), problem.clone()));
            }
            page(StatusCode::UNPROCESSABLE_ENTITY, visitor, Some(&basket))
        }
    }
}

fn quantity(typed: &str, least: u32) -> Result<u32, String> {
    let number = typed.parse().ok().filter(|number| (least..=MAX_QUANTITY).contains(number));
    number.ok_or_else(|| format!("A whole number from {least} to {MAX_QUANTITY}, please."))
}

fn page(status: StatusCode, visitor: &Visitor, basket: Option<&Basket>) -> Result<Response, Error> {
    pages::private(pages::html(status, &CartPage { user: visitor.user.as_deref(), basket }))
}

/// 303 to the cart, which the edge has changed by then.
fn changed(op: &str, id: &ItemId, quantity: u32) -> Response {
    let change = json!({"op": op, "id": id.as_str(), "quantity": quantity}).to_string();
    let mut response = see_other("/cart");
    response.headers_mut().extend(HeaderValue::try_from(change).map(|change| (EDGE_CART, change)));
    response
}
