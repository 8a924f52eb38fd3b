//! Orders of the demo shop.
//!
//! - `store`: reads and writes them in D1.
//! - `page`: the order confirmation.

mod page;
mod store;

use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

pub(super) use self::{page::show, store::OrderStore};
use super::{
    format::{Money, date},
    shopper::ReservedPiece,
};
use crate::{
    ports::{error::Error, random, time::Timestamp},
    schema::hex,
};

/// An order's id: 128 random bits as 32 hexadecimal digits, generated with the checkout form. It cannot be guessed, so
/// it is also the key to a guest's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DemoOrderId(String);

/// The person who places an order.
pub(super) struct Customer<'a> {
    /// None for a guest.
    pub user: Option<&'a str>,
    pub email: &'a str,
    pub name: &'a str,
    /// Street, postal code, city and country, each on a line of its own.
    pub address: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct DemoOrder {
    pub id: String,
    /// None for a guest's order.
    pub user: Option<String>,
    pub email: String,
    pub name: String,
    pub address: String,
    pub total_cents: i64,
    pub currency: String,
    /// Unix seconds.
    pub placed_at: u64,
    /// 1 for an order of a flash sale: its piece was not in the cart.
    pub is_flash: u8,
}

#[derive(Debug, Deserialize)]
pub(super) struct DemoOrderLine {
    pub item: String,
    pub name: String,
    pub quantity: u32,
    /// The price of one piece.
    pub price_cents: i64,
    pub picture: String,
    pub tone: String,
}

impl DemoOrderId {
    /// # Errors
    /// [`Error::Platform`] if the platform has no random bits.
    pub(super) fn generate() -> Result<Self, Error> {
        Ok(Self(hex(&random::bytes::<16>()?)))
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        (text.len() == 32 && is_hex).then(|| Self(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Time for which the order's id alone opens a user's order, in seconds. The buyer sees the confirmation even if Redis
/// fails right after the purchase and the session is unknown.
const CONFIRMATION_WINDOW: u64 = 900;
/// Time for which the link of a guest's order works, in seconds: 30 days.
const GUEST_WINDOW: u64 = 30 * 86400;

impl DemoOrder {
    /// True if the visitor may see the order. The id alone opens a guest's order within the [`GUEST_WINDOW`],
    /// and a user's order within the [`CONFIRMATION_WINDOW`]. After that only the user may see it.
    pub(super) fn is_visible_to(&self, user: Option<&str>, now: Timestamp) -> bool {
        match self.user.as_deref() {
            None => now.as_secs() < self.placed_at + GUEST_WINDOW,
            Some(owner) => user == Some(owner) || now.as_secs() < self.placed_at + CONFIRMATION_WINDOW,
        }
    }

    pub(super) fn total(&self) -> Money<'_> {
        Money { cents: self.total_cents, currency: &self.currency }
    }

    /// `21 Nov 2026`.
    pub(super) fn date(&self) -> String {
        date(self.placed_at)
    }

    /// The order number that pages show. A hash of the id: the number does not reveal a part of the order's address.
    pub(super) fn number(&self) -> String {
        hex(&Sha256::digest(&self.id)).get(..8).unwrap_or_default().to_uppercase()
    }

    /// The state of the order. The demo shop sends nothing, so the order's age decides.
    pub(super) fn status(&self, now: Timestamp) -> &'static str {
        match now.as_secs().saturating_sub(self.placed_at) / 86400 {
            0 => "Received",
            1..4 => "Shipped",
            _ => "Delivered",
        }
    }

    /// The value of `Edge-Order`: `{"order_id", "items": [{"id", "quantity"}]}`; with `"in_cart": false` for an order of a
    /// flash sale, and with `"reservation": {"sale", "id"}` for a reserved piece.
    pub(super) fn edge_order(&self, lines: &[DemoOrderLine], reservation: Option<&ReservedPiece>) -> Value {
        let items: Vec<_> = lines.iter().map(|line| json!({"id": line.item, "quantity": line.quantity})).collect();
        let in_cart = self.is_flash == 0;
        let mut order = json!({"order_id": self.id, "items": items, "in_cart": in_cart});
        if let (Some(ReservedPiece { sale, id, .. }), Some(fields)) = (reservation, order.as_object_mut()) {
            fields.insert("reservation".to_owned(), json!({"sale": sale, "id": id}));
        }
        order
    }
}

impl DemoOrderLine {
    /// The price of one piece.
    pub(super) fn unit_price<'a>(&self, order: &'a DemoOrder) -> Money<'a> {
        Money { cents: self.price_cents, currency: &order.currency }
    }

    /// The price of all pieces of the line.
    pub(super) fn price<'a>(&self, order: &'a DemoOrder) -> Money<'a> {
        Money { cents: self.price_cents * i64::from(self.quantity), currency: &order.currency }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(user: Option<&str>) -> DemoOrder {
        let text = str::to_owned;
        DemoOrder {
            id: "0".repeat(32),
            user: user.map(text),
            email: text("ada@example.org"),
            name: text("Ada"),
            address: text("Here"),
            total_cents: 2100,
            currency: text("EUR"),
            placed_at: 1_795_284_725,
            is_flash: 0,
        }
    }

    #[test]
    fn a_users_order_is_private_after_the_confirmation_window() {
        let (now, later) = (Timestamp::from_millis(1_795_284_726_000), Timestamp::from_millis(1_795_286_000_000));
        for user in [None, Some("eve"), Some("ada")] {
            assert!(order(None).is_visible_to(user, later), "the id is the key to a guest's order");
            let expired = Timestamp::from_millis((1_795_284_725 + 30 * 86400) * 1000);
            assert!(!order(None).is_visible_to(user, expired), "for 30 days");
            assert!(order(Some("ada")).is_visible_to(user, now), "right after the purchase");
            assert_eq!(order(Some("ada")).is_visible_to(user, later), user == Some("ada"));
        }
    }

    #[test]
    fn the_edge_learns_what_was_bought() {
        let line = |item: &str, quantity| {
            serde_json::from_value::<DemoOrderLine>(json!({"item": item, "name": "", "quantity": quantity,
                "price_cents": 1, "picture": "mug", "tone": "sage"}))
            .unwrap()
        };
        let reported = order(None).edge_order(&[line("mug", 2), line("pan", 1)], None);
        let items = json!([{"id": "mug", "quantity": 2}, {"id": "pan", "quantity": 1}]);
        assert_eq!(reported, json!({"order_id": "0".repeat(32), "items": items, "in_cart": true}));
        let flash = DemoOrder { is_flash: 1, ..order(None) };
        assert_eq!(flash.edge_order(&[], None)["in_cart"], false);
        assert_eq!(order(None).date(), "21 Nov 2026");
    }

    #[test]
    fn an_order_id_is_unique_and_survives_a_round_trip() {
        let id = DemoOrderId::generate().unwrap();
        assert_eq!(DemoOrderId::parse(id.as_str()), Some(id.clone()));
        assert_ne!(DemoOrderId::generate().unwrap(), id);
        for text in ["", "1", &"A".repeat(32), &"g".repeat(32), &"0".repeat(33), "../../../../../../../../../../.."] {
            assert_eq!(DemoOrderId::parse(text), None, "{text}");
        }
    }
}
