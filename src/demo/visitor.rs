//! Who asks, as the edge says. It drops what a client says of itself, so these headers are to be believed.

use std::collections::BTreeMap;

use http::{HeaderMap, request::Parts};
use serde::{Deserialize, de::DeserializeOwned};

use crate::{ports::time::Timestamp, schema::ids::ItemId};

/// The sender of a request.
#[derive(Debug, Default)]
pub(super) struct Visitor {
    /// `Edge-User`: who is signed in. None also where Redis does not answer.
    pub user: Option<String>,
    /// `Edge-Cart`: item → quantity, ordered by item. None where Redis does not answer, which is not an empty cart.
    pub cart: Option<BTreeMap<String, u32>>,
    /// `Edge-Reservation`: the piece of a flash sale that is held for them.
    reservation: Option<Held>,
}

/// A piece of a flash sale, as the edge tells it.
#[derive(Debug, Deserialize)]
pub(super) struct Held {
    pub sale: String,
    pub id: String,
    /// Unix seconds.
    until: f64,
}

impl Held {
    pub(super) fn until(&self) -> Timestamp {
        Timestamp::from_score(self.until)
    }
}

impl Visitor {
    pub(super) fn of(head: &Parts) -> Self {
        let user = text(&head.headers, "edge-user").map(str::to_owned);
        Self { user, cart: json(&head.headers, "edge-cart"), reservation: json(&head.headers, "edge-reservation") }
    }

    /// Their piece of the flash sale of `item`, if one is held.
    pub(super) fn held(&self, item: &ItemId) -> Option<&Held> {
        self.reservation.as_ref().filter(|held| held.sale == item.as_str())
    }
}

fn json<T: DeserializeOwned>(headers: &HeaderMap, name: &str) -> Option<T> {
    serde_json::from_str(text(headers, name)?).ok()
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
