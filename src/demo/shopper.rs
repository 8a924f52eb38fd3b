//! The visitor of a request, read from the `Edge-*` request headers. The edge removes such headers from a client's
//! request, so the shop can trust them.

use std::collections::BTreeMap;

use http::{HeaderMap, request::Parts};
use serde::{Deserialize, de::DeserializeOwned};

use super::{catalogue::FlashOffer, checkout::ticket};
use crate::{
    ports::{network::ClientNetwork, time::Timestamp},
    schema::ids::ItemId,
};

/// The visitor who sent a request.
#[derive(Debug, Default)]
pub(super) struct Shopper {
    /// `Edge-User`: the signed-in user, an email for accounts of this shop. None for a guest, and while Redis is down.
    pub user: Option<String>,
    /// `Edge-Session: unknown`: Redis did not answer, so the visitor may be signed in and hold a reservation.
    pub is_unknown: bool,
    /// `Edge-Cart`: item → quantity, ordered by item. None while Redis is down, so an unknown cart differs from an
    /// empty one.
    pub cart: Option<BTreeMap<String, u32>>,
    /// The network of the visitor's address; None off the platform.
    pub network: Option<ClientNetwork>,
    /// The ticket of the checkout in this browser.
    pub ticket: Option<String>,
    /// `Edge-Reservation`: the visitor's reservation in a flash sale.
    reservation: Option<ReservedPiece>,
}

/// One piece of a flash sale that the edge reserves for the visitor.
#[derive(Debug, Deserialize)]
pub(super) struct ReservedPiece {
    /// The item on sale.
    pub sale: String,
    /// The reservation's id: the start of its sale in Unix seconds, a dot, and random bits.
    pub id: String,
    /// When the reservation expires, in Unix seconds.
    until: f64,
}

impl ReservedPiece {
    pub(super) fn expires(&self) -> Timestamp {
        Timestamp::from_score(self.until)
    }

    /// The start of the sale that the piece belongs to, in Unix seconds. None for an invalid id.
    pub(super) fn sale_starts(&self) -> Option<u64> {
        self.id.split_once('.')?.0.parse().ok()
    }
}

impl Shopper {
    pub(super) fn from_headers(head: &Parts) -> Self {
        let user = header_text(&head.headers, "edge-user").map(str::to_owned);
        let is_unknown = header_text(&head.headers, "edge-session") == Some("unknown");
        let (cart, reservation) =
            (header_json(&head.headers, "edge-cart"), header_json(&head.headers, "edge-reservation"));
        let (network, ticket) = (ClientNetwork::of(&head.headers), ticket::of_cookies(&head.headers));
        Self { user, is_unknown, cart, network, ticket, reservation }
    }

    /// The visitor's reservation in a flash sale of `item`; None without one. The sale may be over.
    pub(super) fn reservation_for(&self, item: &ItemId) -> Option<&ReservedPiece> {
        self.reservation.as_ref().filter(|reservation| reservation.sale == item.as_str())
    }

    /// The visitor's reservation in this flash sale; None without one.
    pub(super) fn reservation_in(&self, offer: &FlashOffer) -> Option<&ReservedPiece> {
        let is_in = |reservation: &&ReservedPiece| {
            reservation.sale == offer.card.id && reservation.sale_starts() == Some(offer.starts)
        };
        self.reservation.as_ref().filter(is_in)
    }
}

fn header_json<T: DeserializeOwned>(headers: &HeaderMap, name: &str) -> Option<T> {
    serde_json::from_str(header_text(headers, name)?).ok()
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
