//! `/flash/{item}`: the page of a flash sale, the same for everybody, and the checkout of a piece that the edge holds for somebody.
//! Who may have one is the edge's to decide, by `Edge-Reservation`; that no more are sold than there are, the database's.

use askama::Template;
use http::{HeaderValue, StatusCode};

use super::{
    Shop,
    catalogue::Offer,
    checkout::{self, Fields, LOOK_BELOW, SEND_AGAIN},
    form::{Form, Input},
    orders::OrderId,
    pages::{self, see_other},
    visitor::{Held, Visitor},
};
use crate::{
    ports::{error::Error, fetch::Response},
    schema::ids::ItemId,
};

#[derive(Template)]
#[template(path = "flash.html")]
struct FlashPage<'a> {
    offer: &'a Offer,
}

#[derive(Template)]
#[template(path = "flash_checkout.html")]
struct CheckoutPage<'a> {
    offer: &'a Offer,
    order: &'a str,
    inputs: &'a [Input],
    /// How long the piece is still held; None if it is not.
    seconds: Option<u64>,
    /// A notice above the page; empty for none.
    notice: &'a str,
}

/// Says nothing of how long it is fresh: the edge decides that by its rank. Stock and countdown come from the edge by a script.
pub(super) async fn show(shop: Shop<'_>, id: &ItemId) -> Result<Response, Error> {
    let offer = shop.catalogue().flash_sale(id).await?;
    let mut response = pages::html(StatusCode::OK, &FlashPage { offer: &offer })?;
    if let Ok(tags) = HeaderValue::try_from(format!("flash,category-{}", offer.category)) {
        response.headers_mut().insert(pages::EDGE_TAGS, tags);
    }
    Ok(response)
}

/// The form, filled in with what the account knows. Without a piece there is nothing to buy: back to the sale.
pub(super) async fn checkout(shop: Shop<'_>, visitor: &Visitor, id: &ItemId) -> Result<Response, Error> {
    let offer = shop.catalogue().flash_sale(id).await?;
    let Some(held) = visitor.held(id) else { return Ok(see_other(&format!("/flash/{id}"))) };
    let fields = Fields::empty().filled_in(shop, visitor).await?;
    page(shop, StatusCode::OK, &offer, Some(held), &OrderId::draw()?, &fields, "")
}

/// Buys the piece: a new order, or the page again with what is in its way and all that was typed.
pub(super) async fn buy(shop: Shop<'_>, visitor: &Visitor, form: &Form, item: &ItemId) -> Result<Response, Error> {
    let (drawn, held) = (OrderId::parse(form.text("order")), visitor.held(item));
    // Before all else: by the time a form comes twice, nothing is held any more.
    if let Some(id) = &drawn
        && let Some(response) = bought(shop, id, item, held).await?
    {
        return Ok(response);
    }
    let offer = shop.catalogue().flash_sale(item).await?;
    let (id, fields) = (drawn.map_or_else(OrderId::draw, Ok)?, Fields::typed(form).checked());
    let again = |status, notice: &str| page(shop, status, &offer, held, &id, &fields, notice);
    let Some(user) = visitor.user.as_deref() else { return again(StatusCode::CONFLICT, NOBODY) };
    if held.is_none() {
        return again(StatusCode::CONFLICT, "No piece is held for you now.");
    }
    if form.text("offer") != offer.sale_cents.to_string() {
        let notice =
            format!("The price has changed since you saw this page. It is {} now. Please look again.", offer.price());
        return again(StatusCode::CONFLICT, &notice);
    }
    let Some(buyer) = fields.buyer(Some(user)) else {
        return again(StatusCode::UNPROCESSABLE_ENTITY, LOOK_BELOW);
    };
    match shop.orders().place_flash(&id, &buyer, &offer).await {
        Ok(true) => {}
        Ok(false) => {
            if let Some(response) = bought(shop, &id, item, held).await? {
                return Ok(response);
            }
            let has_one = shop.orders().has_bought(&offer, user).await?;
            return again(StatusCode::CONFLICT, if has_one { HAS_ONE } else { SOLD_OUT });
        }
        Err(error) => {
            log::error!("flash checkout: {error}");
            return again(StatusCode::SERVICE_UNAVAILABLE, SEND_AGAIN);
        }
    }
    bought(shop, &id, item, held)
        .await?
        .ok_or_else(|| Error::Platform("an order that was placed is not there".to_owned()))
}

/// Signed out meanwhile, or Redis does not say.
const NOBODY: &str =
    "We cannot tell who you are at the moment. Please sign in, in another window, and send this again.";
const HAS_ONE: &str = "You have bought one already, and there is one for each customer.";
const SOLD_OUT: &str = "Sorry: all pieces are sold by now.";

/// The answer to an order that is there already; None if it is not. Only an order of this sale makes the edge count a piece of it: else
/// any other order of the visitor would do.
async fn bought(shop: Shop<'_>, id: &OrderId, item: &ItemId, held: Option<&Held>) -> Result<Option<Response>, Error> {
    let Some((order, lines)) = shop.orders().find(id).await? else { return Ok(None) };
    let is_flash = held.is_some() && shop.orders().is_flash(id, item).await?;
    Ok(Some(checkout::bought(&order, &lines, held.filter(|_| is_flash))))
}

fn page(
    shop: Shop<'_>,
    status: StatusCode,
    offer: &Offer,
    held: Option<&Held>,
    id: &OrderId,
    fields: &Fields,
    notice: &str,
) -> Result<Response, Error> {
    let seconds = held.map(|held| held.until().since(shop.now).as_secs());
    let page = CheckoutPage { offer, order: id.as_str(), inputs: fields.inputs(), seconds, notice };
    pages::private(pages::html(status, &page))
}
