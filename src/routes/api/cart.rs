//! `/cart`: the visitor's cart. Each write answers with the whole cart, so that a page needs no second request.

use std::slice;

use http::header;
use serde::Serialize;

use super::{request::ApiRequest, respond};
use crate::{
    carts::{self, Cart, CartChange, CartLine, CartWriteOutcome, CartWriteRequest, Quantity},
    ports::{answer::Answer, fetch::Response},
    routes::problem::Problem,
    schema::ids::ItemId,
};

/// The cart. It is empty for a visitor without a session.
pub async fn show(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let found = match request.session_token() {
        Some(token) => carts::read(&request.app.redis, &token, request.now, &request.app.config.session).await?,
        None => None,
    };
    let cart = found.map(|(_, cart)| cart).unwrap_or_default();
    Ok(respond::not_modified_if_known(request.headers(), cart_response(&cart)).into())
}

/// `{quantity}`: sets the quantity; 0 or less removes the item.
pub async fn set(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let (app, token) = (request.app, request.session_token());
    let item = ItemId::parse(&request.id)?;
    let mut fields = request.json_fields()?;
    let quantity = Quantity::parse(&fields.take("quantity")?, app.config.cart.max_quantity)?;
    fields.finish()?;
    let change = CartChange::Set(item, quantity);
    write_response(&request, carts::change(&app.redis, token.as_ref(), &change, request.now, &app.config).await?)
}

/// `{id, quantity}`: adds to the quantity. With an `Idempotency-Key`, a repeated request adds once.
pub async fn add(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let (app, token) = (request.app, request.session_token());
    let mut fields = request.json_fields()?;
    let item = fields.take_id("id", ItemId::parse)?;
    let quantity = Quantity::parse(&fields.take("quantity")?, app.config.cart.max_quantity)?;
    fields.finish()?;
    let (idempotency_key, change) = (request.idempotency_key()?, CartChange::Add(item, quantity));
    let write_request = CartWriteRequest { token: token.as_ref(), changes: slice::from_ref(&change), idempotency_key };
    write_response(&request, carts::write(&app.redis, &write_request, request.now, &app.config).await?)
}

/// Removes an item. A missing item is no error.
pub async fn remove(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let (app, item) = (request.app, ItemId::parse(&request.id)?);
    let Some(token) = request.session_token() else { return Ok(cart_response(&Cart::default()).into()) };
    let change = CartChange::Set(item, Quantity::ZERO);
    write_response(&request, carts::change(&app.redis, Some(&token), &change, request.now, &app.config).await?)
}

/// Empties the cart.
pub async fn clear(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let app = request.app;
    let Some(token) = request.session_token() else { return Ok(cart_response(&Cart::default()).into()) };
    let change = CartChange::Clear;
    write_response(&request, carts::change(&app.redis, Some(&token), &change, request.now, &app.config).await?)
}

/// The cart after a write, with the cookie of the guest's session if the write started one. Counts the write.
fn write_response(request: &ApiRequest<'_>, write: CartWriteOutcome) -> Result<Answer, Problem> {
    request.app.traffic.count_cart_write(&write);
    let mut response = cart_response(&write.cart);
    if let Some(session) = write.session.filter(|_| write.created) {
        response.headers_mut().insert(header::SET_COOKIE, request.app.keyring.set(&session.token)?);
    }
    Ok(response.into())
}

fn cart_response(cart: &Cart) -> Response {
    respond::with_etag(respond::json(respond::NO_STORE, &CartJson::of(cart)))
}

/// A cart as JSON.
#[derive(Serialize)]
pub(super) struct CartJson<'a> {
    items: Vec<CartItemJson<'a>>,
    lines: usize,
    quantity: u64,
}

impl<'a> CartJson<'a> {
    pub fn of(cart: &'a Cart) -> Self {
        let items = cart
            .lines
            .iter()
            .map(|CartLine { item, quantity }| CartItemJson { id: item.as_str(), quantity: *quantity });
        Self { items: items.collect(), lines: cart.lines.len(), quantity: cart.total_quantity() }
    }
}

#[derive(Serialize)]
struct CartItemJson<'a> {
    id: &'a str,
    quantity: u32,
}
