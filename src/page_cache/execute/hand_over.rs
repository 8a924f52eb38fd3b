//! The home tier's part of the page cache with two tiers: it hands stored pages over to the edge tier.

use bytes::Bytes;
use http::header;

use crate::{
    page_cache::{cache_status::CacheStatus, key::PageKey, stored_page::StoredPage},
    ports::{fetch::Response, header_names::append_text, time::Timestamp},
    proxy::{Visit, home::PAGE},
};

/// Marks a response that hands a page over.
#[derive(Debug, Clone, Copy)]
pub struct HandedOver;

/// Hands over a stored page without holes to fill, if the edge tier asks for it. None if the page is not a hit or is a
/// fallback. `confirmed`: the time at which Redis confirmed the page.
pub fn hand_over(
    visit: &Visit,
    key: &PageKey,
    page: &StoredPage,
    status: CacheStatus,
    confirmed: Timestamp,
) -> Option<Response> {
    let ask = visit.edge?;
    if !matches!(status, CacheStatus::Hit { detail: None, .. }) {
        return None;
    }
    let is_same = ask.held == Some(page.render_number());
    let [head, body] = page.encode(key);
    let value: Bytes = if is_same { head } else { [head, body].concat().into() };
    let length = value.len();
    let mut response = Response::new(value.into());
    // By its length, the edge tier recognizes a page that is not whole.
    response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    let age = visit.app.clock.now().since(confirmed).as_millis();
    append_text(response.headers_mut(), PAGE, format!("{} {age}", if is_same { "same" } else { "new" }));
    status.append_to(&mut response);
    response.extensions_mut().insert(HandedOver);
    Some(response)
}
