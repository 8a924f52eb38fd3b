//! `/cart`: the cart's page, and the plain forms that change the cart. The shop stores no cart. It answers with an
//! `Edge-Cart` header, and the edge applies the change before it sends the response to the visitor.
//!
//! - `priced`: a cart with names and prices.

mod priced;

use std::ops::RangeInclusive;

use askama::Template;
use http::{
    HeaderName, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE},
};
use serde_json::{Value, json};

pub(super) use self::priced::PricedCart;
use super::{
    Shop, assets,
    forms::SubmittedForm,
    pages::{self, Frame, see_other},
    shopper::Shopper,
};
use crate::{
    ports::{
        error::Error,
        fetch::{Body, Response},
    },
    schema::ids::ItemId,
};

const EDGE_CART: HeaderName = HeaderName::from_static("edge-cart");

#[derive(Template)]
#[template(path = "cart.html")]
struct CartPage<'a> {
    frame: Frame<'a>,
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

/// A change that a form asks for.
struct CartChange {
    id: ItemId,
    is_add: bool,
    /// The quantity to add, or the new quantity.
    quantity: u32,
}

/// Changes the cart. The field `op` is `add` or `set` with `id` and `quantity`, or `remove` with `id`. A script that asks
/// for JSON gets the changed cart, and a form is redirected to the cart. Refuses more pieces than there are in stock.
pub(super) async fn change(
    shop: Shop<'_>,
    shopper: &Shopper,
    form: &SubmittedForm,
    wants_json: bool,
) -> Result<Response, Error> {
    let id = ItemId::parse(form.trimmed("id")).map_err(|_| Error::NotFound("product"))?;
    let op = form.trimmed("op");
    let typed = form.trimmed("quantity");
    let quantity = match op {
        "remove" => Ok(0),
        "add" | "set" => parse_quantity(typed, u32::from(op == "add")..=shop.max_quantity),
        _ => return Err(Error::NotFound("operation")),
    };
    let is_add = op == "add";
    let problem = match quantity {
        Ok(quantity) => {
            let change = CartChange { id: id.clone(), is_add, quantity };
            match check_stock(shop, shopper, &change).await? {
                None if wants_json => return changed_cart(shop, shopper, &change).await,
                None => return Ok(change.redirect()),
                Some(problem) => problem,
            }
        }
        Err(problem) => problem,
    };
    if wants_json {
        return Ok(problem_json(&problem));
    }
    let catalogue = shop.catalogue();
    if is_add {
        return pages::product_with_problem(shopper, &catalogue.product(&id).await?, typed, &problem);
    }
    let Some(cart) = &shopper.cart else { return show(shop, shopper).await };
    let mut cart = PricedCart::load(&catalogue, cart).await?;
    for line in cart.lines.iter_mut().filter(|line| line.id == id.as_str()) {
        line.rejected = Some((typed.to_owned(), problem.clone()));
    }
    page(StatusCode::UNPROCESSABLE_ENTITY, shopper, Some(&cart))
}

/// The reason why the stock or the limit of a cart does not allow the change, as a message for the visitor.
///
/// # Errors
/// [`Error::NotFound`] if the shop does not sell the product. Such an item can be removed.
async fn check_stock(shop: Shop<'_>, shopper: &Shopper, change: &CartChange) -> Result<Option<String>, Error> {
    if change.quantity == 0 {
        return Ok(None);
    }
    let card = shop.catalogue().cards(&[change.id.to_string()]).await?.pop().ok_or(Error::NotFound("product"))?;
    let held = shopper.cart.as_ref().and_then(|cart| cart.get(change.id.as_str())).copied().unwrap_or_default();
    let wanted = i64::from(change.quantity) + if change.is_add { i64::from(held) } else { 0 };
    let most = i64::from(shop.max_quantity);
    if wanted > most && most < card.stock {
        return Ok(Some(format!("At most {most} of an item fit into a cart, and yours has {held}.")));
    }
    Ok((wanted > card.stock).then(|| match (card.stock, held) {
        (0, _) => "Sold out.".to_owned(),
        (stock, 1..) if change.is_add => format!("Only {stock} in stock, and your cart has {held}."),
        (stock, _) => format!("Only {stock} in stock. Please reduce the quantity."),
    }))
}

/// The cart after `change`, for a script: lines with names, prices and problems, and the total. The edge applies the
/// change before it sends the response.
async fn changed_cart(shop: Shop<'_>, shopper: &Shopper, change: &CartChange) -> Result<Response, Error> {
    let Some(mut cart) = shopper.cart.clone() else { return Err(Error::Platform("the cart is unknown".to_owned())) };
    let quantity = cart.entry(change.id.to_string()).or_default();
    *quantity = if change.is_add { *quantity + change.quantity } else { change.quantity };
    cart.retain(|_, quantity| *quantity > 0);
    let priced = PricedCart::load(&shop.catalogue(), &cart).await?;
    let mut response = json_response(StatusCode::OK, &priced.to_json());
    response.headers_mut().extend(change.header());
    Ok(response)
}

/// A problem document (RFC 9457).
fn problem_json(problem: &str) -> Response {
    json_response(
        StatusCode::UNPROCESSABLE_ENTITY,
        &json!({"type": "urn:edgeware:quantity", "status": 422, "detail": problem}),
    )
}

fn json_response(status: StatusCode, answer: &Value) -> Response {
    let mut response = Response::new(Body::from(answer.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The quantity, or an error message for the visitor.
fn parse_quantity(typed: &str, allowed: RangeInclusive<u32>) -> Result<u32, String> {
    let number = typed.parse().ok().filter(|number| allowed.contains(number));
    number.ok_or_else(|| format!("Please enter a whole number from {} to {}.", allowed.start(), allowed.end()))
}

fn page(status: StatusCode, shopper: &Shopper, cart: Option<&PricedCart>) -> Result<Response, Error> {
    let frame = Frame { bundle: Some(assets::CART), ..Frame::private("Cart", shopper) };
    pages::private(pages::html(status, &CartPage { frame, user: shopper.user.as_deref(), cart }))
}

impl CartChange {
    /// `Edge-Cart`: the edge applies the change before the visitor sees the answer.
    fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        let op = if self.is_add { "add" } else { "set" };
        let change = json!({"op": op, "id": self.id.as_str(), "quantity": self.quantity}).to_string();
        Some((EDGE_CART, HeaderValue::try_from(change).ok()?))
    }

    /// Redirects to the line in the cart.
    fn redirect(&self) -> Response {
        let line = if self.quantity > 0 { format!("/cart#line-{}", self.id) } else { "/cart".to_owned() };
        let mut response = see_other(&line);
        response.headers_mut().extend(self.header());
        response
    }
}
