//! `/cart`: the visitor's cart. Each write answers with the whole cart as it is then, so that a page needs no second call.

use http::header;
use serde::Serialize;

use super::{call::Call, reply};
use crate::{
    carts::{self, Cart, CartChange, CartLine, CartWriteOutcome, CartWriteRequest, Quantity},
    ports::{answer::Answer, fetch::Response},
    routes::problem::Problem,
    schema::ids::ItemId,
};

/// The cart; an empty one for a visitor without a session.
pub async fn show(call: Call<'_>) -> Result<Answer, Problem> {
    let found = match call.token() {
        Some(token) => carts::read(&call.app.redis, &token, call.now, &call.app.config.session).await?,
        None => None,
    };
    let cart = found.map(|(_, cart)| cart).unwrap_or_default();
    Ok(reply::unless_known(call.headers(), respond(&cart)).into())
}

/// `{quantity}`: overwrites, and 0 or less removes.
pub async fn set(call: Call<'_>) -> Result<Answer, Problem> {
    let item = ItemId::parse(&call.name)?;
    let mut fields = call.fields()?;
    let quantity = Quantity::parse(&fields.take("quantity")?, &call.app.config.cart)?;
    fields.end()?;
    let token = call.token();
    let change = CartChange::Set(item, quantity);
    let write = carts::change(&call.app.redis, token.as_ref(), &change, call.now, &call.app.config).await?;
    // Else it may only have changed what was in already.
    if write.created {
        call.app.traffic.added(&write.cart, quantity.get());
    }
    written(&call, write)
}

/// `{id, quantity}`: adds to what is there. With an `Idempotency-Key` once, however often it is sent.
pub async fn add(call: Call<'_>) -> Result<Answer, Problem> {
    let mut fields = call.fields()?;
    let item = fields.parse_text("id", ItemId::parse)?;
    let quantity = Quantity::parse(&fields.take("quantity")?, &call.app.config.cart)?;
    fields.end()?;
    let (idempotency_key, token, change) = (call.idempotency_key()?, call.token(), CartChange::Add(item, quantity));
    let request = CartWriteRequest { token: token.as_ref(), change: &change, idempotency_key };
    let write = carts::write(&call.app.redis, &request, call.now, &call.app.config).await?;
    call.app.traffic.added(&write.cart, quantity.get());
    written(&call, write)
}

/// Takes an item out. That it was not in is no error.
pub async fn remove(call: Call<'_>) -> Result<Answer, Problem> {
    let item = ItemId::parse(&call.name)?;
    let Some(token) = call.token() else { return Ok(respond(&Cart::default()).into()) };
    let change = CartChange::Set(item, Quantity::ZERO);
    written(&call, carts::change(&call.app.redis, Some(&token), &change, call.now, &call.app.config).await?)
}

/// Empties the cart.
pub async fn clear(call: Call<'_>) -> Result<Answer, Problem> {
    let Some(token) = call.token() else { return Ok(respond(&Cart::default()).into()) };
    let change = CartChange::Clear;
    written(&call, carts::change(&call.app.redis, Some(&token), &change, call.now, &call.app.config).await?)
}

/// The cart after a write, with the cookie of the guest's session that may have begun with it.
fn written(call: &Call<'_>, write: CartWriteOutcome) -> Result<Answer, Problem> {
    let mut response = respond(&write.cart);
    if let Some(session) = write.session.filter(|_| write.created) {
        response.headers_mut().insert(header::SET_COOKIE, call.app.keyring.set(&session.token)?);
    }
    Ok(response.into())
}

fn respond(cart: &Cart) -> Response {
    let items = cart.lines.iter().map(|CartLine { item, quantity }| Item { id: item.as_str(), quantity: *quantity });
    let document = Document { items: items.collect(), lines: cart.lines.len(), quantity: cart.total_quantity() };
    reply::tagged(reply::json(reply::PERSONAL, &document))
}

/// As it is answered.
#[derive(Serialize)]
struct Document<'a> {
    items: Vec<Item<'a>>,
    lines: usize,
    quantity: u64,
}

#[derive(Serialize)]
struct Item<'a> {
    id: &'a str,
    quantity: u32,
}
