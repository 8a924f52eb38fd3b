//! `/flash/{item}`: a flash sale. The edge decides who gets a reservation (`Edge-Reservation`). The database keeps the
//! sale from selling more pieces than there are.
//!
//! - `checkout`: buys a reserved piece.

mod checkout;

use askama::Template;
use http::{
    HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE},
};

pub(super) use self::checkout::{place_order, show_checkout};
use super::{
    Shop, assets,
    catalogue::FlashOffer,
    format::calendar_time,
    pages::{self, Frame},
};
use crate::{
    ports::{
        error::Error,
        fetch::{Body, Response},
    },
    schema::ids::ItemId,
};

#[derive(Template)]
#[template(path = "flash_sale.html")]
struct FlashSalePage<'a> {
    frame: Frame<'a>,
    offer: &'a FlashOffer,
}

/// The sale's page, the same for every visitor: a script gets stock and countdown from the edge's API. Sends no
/// `Cache-Control`: the edge chooses the freshness by the item's rank.
pub(super) async fn show(shop: Shop<'_>, id: &ItemId) -> Result<Response, Error> {
    let offer = shop.catalogue().flash_sale(id).await?;
    let mut response = {
        let (title, path) = (format!("Flash sale: {}", offer.card.name), format!("/flash/{id}"));
        let mut frame = Frame::public(&title, &offer.description, shop.site, &path);
        frame.category = &offer.category;
        frame.bundle = Some(assets::FLASH);
        pages::html(StatusCode::OK, &FlashSalePage { frame, offer: &offer })?
    };
    if let Ok(tags) = HeaderValue::try_from(format!("flash,category-{}", offer.category)) {
        response.headers_mut().insert(pages::EDGE_TAGS, tags);
    }
    Ok(response)
}

/// The sale as an entry of a calendar (RFC 5545).
pub(super) async fn calendar(shop: Shop<'_>, id: &ItemId) -> Result<Response, Error> {
    let offer = shop.catalogue().flash_sale(id).await?;
    let [starts, ends, stamp] = [offer.starts, offer.ends, shop.now.as_secs()].map(calendar_time);
    // A comma separates values, and names of products have commas.
    let name = offer.card.name.replace(',', "\\,");
    let entry = format!(
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Edgeware//Flash sale//EN\r\nBEGIN:VEVENT\r\nUID:{id}-{starts}@edgeware\r\n\
        DTSTAMP:{stamp}\r\nDTSTART:{starts}\r\nDTEND:{ends}\r\nSUMMARY:Flash sale: {name}\r\nURL:{}/flash/{id}\r\n\
        END:VEVENT\r\nEND:VCALENDAR\r\n",
        shop.site
    );
    let mut response = Response::new(Body::from(entry));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/calendar; charset=utf-8"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, max-age=60"));
    Ok(response)
}
