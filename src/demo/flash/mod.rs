//! `/flash/{item}`: a flash sale. The edge decides who gets a reservation (`Edge-Reservation`). The database keeps the
//! sale from selling more pieces than there are.
//!
//! - `checkout`: buys a reserved piece.

mod checkout;

use askama::Template;
use http::{HeaderValue, StatusCode};

pub(super) use self::checkout::{place_order, show_checkout};
use super::{Shop, catalogue::FlashOffer, pages};
use crate::{
    ports::{error::Error, fetch::Response},
    schema::ids::ItemId,
};

#[derive(Template)]
#[template(path = "flash_sale.html")]
struct FlashSalePage<'a> {
    offer: &'a FlashOffer,
}

/// The sale's page, the same for every visitor: a script gets stock and countdown from the edge's API. Sends no
/// `Cache-Control`: the edge chooses the freshness by the item's rank.
pub(super) async fn show(shop: Shop<'_>, id: &ItemId) -> Result<Response, Error> {
    let offer = shop.catalogue().flash_sale(id).await?;
    let mut response = pages::html(StatusCode::OK, &FlashSalePage { offer: &offer })?;
    if let Ok(tags) = HeaderValue::try_from(format!("flash,category-{}", offer.category)) {
        response.headers_mut().insert(pages::EDGE_TAGS, tags);
    }
    Ok(response)
}
