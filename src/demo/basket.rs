//! A visitor's cart with names and prices: the edge knows the items, the catalogue knows the rest.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::{
    catalogue::{Card, Catalogue},
    pages::Money,
};
use crate::{ports::error::Error, schema::hex};

/// A cart with names and prices.
pub(super) struct Basket {
    pub lines: Vec<Line>,
}

/// One item of it.
pub(super) struct Line {
    pub id: String,
    pub quantity: u32,
    /// None if the shop does not sell it any more.
    pub card: Option<Card>,
    /// The rejected input for the quantity, and its error.
    pub typed: Option<(String, String)>,
}

impl Basket {
    /// Looks the items of `cart` up, all in one query.
    pub(super) async fn of(catalogue: &Catalogue<'_>, cart: &BTreeMap<String, u32>) -> Result<Self, Error> {
        if cart.is_empty() {
            return Ok(Self { lines: Vec::new() });
        }
        let ids: Vec<_> = cart.keys().cloned().collect();
        let mut cards = catalogue.cards(&ids).await?;
        let line = |(id, quantity): (&String, &u32)| Line {
            id: id.clone(),
            quantity: *quantity,
            card: cards.iter().position(|card| card.id == *id).map(|place| cards.swap_remove(place)),
            typed: None,
        };
        Ok(Self { lines: cart.iter().map(line).collect() })
    }

    /// The total of the items in stock, in cents.
    pub(super) fn total_cents(&self) -> i64 {
        self.lines.iter().map(Line::cents).sum()
    }

    /// The currency of all prices.
    pub(super) fn currency(&self) -> &str {
        self.lines.iter().find_map(|line| Some(line.card.as_ref()?.currency.as_str())).unwrap_or("EUR")
    }

    pub(super) fn total(&self) -> Money<'_> {
        Money { cents: self.total_cents(), currency: self.currency() }
    }

    /// Returns whether something in it cannot be bought as it is.
    pub(super) fn has_problem(&self) -> bool {
        self.lines.iter().any(|line| line.problem().is_some())
    }

    /// Names what the buyer is shown: `<total in cents>-<hash of items, quantities and prices>`. It comes back with the order, so
    /// that nobody ever pays what they did not see.
    pub(super) fn offer(&self) -> String {
        let mut hash = Sha256::new();
        for Line { id, quantity, card, .. } in &self.lines {
            let cents = card.as_ref().map_or(0, |card| card.price_cents);
            hash.update(format!("{id} {quantity} {cents}\n"));
        }
        let hash = hex(&hash.finalize());
        format!("{}-{}", self.total_cents(), hash.get(..16).unwrap_or_default())
    }

    /// The total of an [`offer`](Self::offer) that was made before; None if it is none.
    pub(super) fn total_of(&self, offer: &str) -> Option<Money<'_>> {
        let cents = offer.split_once('-')?.0.parse().ok()?;
        Some(Money { cents, currency: self.currency() })
    }
}

impl Line {
    pub(super) fn name(&self) -> &str {
        self.card.as_ref().map_or(&self.id, |card| &card.name)
    }

    fn cents(&self) -> i64 {
        self.card.as_ref().map_or(0, |card| card.price_cents * i64::from(self.quantity))
    }

    /// The price of all pieces; None if the shop does not sell the item.
    pub(super) fn price(&self) -> Option<Money<'_>> {
        self.card.as_ref().map(|card| Money { cents: self.cents(), currency: &card.currency })
    }

    /// Why it cannot be bought as it is.
    pub(super) fn problem(&self) -> Option<String> {
        match &self.card {
            None => Some("We do not sell this any more.".to_owned()),
            Some(card) if card.stock <= 0 => Some("This is sold out.".to_owned()),
            Some(card) if card.stock < i64::from(self.quantity) => Some(format!("Only {} left.", card.stock)),
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: &str, quantity: u32, price_cents: i64, stock: i64) -> Line {
        let (name, currency) = (id.to_uppercase(), "EUR".to_owned());
        let (picture, tone) = ("mug".to_owned(), "sage".to_owned());
        let card =
            Card { id: id.to_owned(), name, currency, price_cents, list_cents: price_cents, stock, picture, tone };
        Line { id: id.to_owned(), quantity, card: Some(card), typed: None }
    }

    #[test]
    fn a_total_is_of_what_the_shop_sells() {
        let gone = Line { card: None, ..line("gone", 3, 1, 0) };
        let basket = Basket { lines: vec![gone, line("mug", 2, 1050, 9), line("pan", 1, 3900, 9)] };
        assert_eq!((basket.total_cents(), basket.total().to_string().as_str()), (6000, "€60.00"));
        assert_eq!(basket.lines[0].name(), "gone");
        assert!(basket.has_problem());
    }

    #[test]
    fn an_offer_changes_with_whatever_is_shown() {
        let offer = |lines| Basket { lines }.offer();
        let shown = offer(vec![line("mug", 2, 1000, 9), line("pan", 1, 1000, 9)]);
        assert!(shown.starts_with("3000-"), "{shown}");
        assert_eq!(shown, offer(vec![line("mug", 2, 1000, 5), line("pan", 1, 1000, 9)]), "the stock is not part of it");
        for other in [
            vec![line("mug", 1, 1000, 9), line("pan", 2, 1000, 9)],
            vec![line("mug", 3, 1000, 9)],
            vec![line("mug", 2, 500, 9), line("pan", 1, 2000, 9)],
            vec![],
        ] {
            assert_ne!(shown, offer(other));
        }
    }

    #[test]
    fn a_line_says_how_many_are_left() {
        assert_eq!(line("mug", 3, 1, 3).problem(), None);
        assert_eq!(line("mug", 3, 1, 2).problem().unwrap(), "Only 2 left.");
        assert_eq!(line("mug", 3, 1, 0).problem().unwrap(), "This is sold out.");
    }
}
