//! A cart with names and prices: the edge knows items and quantities, the catalogue knows the rest.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{
    demo::{
        catalogue::{Catalogue, ProductCard},
        format::Money,
    },
    ports::error::Error,
    schema::hex,
};

/// A cart with current names, prices and stock.
pub(in crate::demo) struct PricedCart {
    pub lines: Vec<PricedLine>,
}

/// One item of a cart.
pub(in crate::demo) struct PricedLine {
    pub id: String,
    pub quantity: u32,
    /// None if the shop no longer sells the item.
    pub card: Option<ProductCard>,
    /// A rejected quantity as typed, and its problem.
    pub rejected: Option<(String, String)>,
}

impl PricedCart {
    /// Loads all items of `cart` in one query.
    pub(in crate::demo) async fn load(catalogue: &Catalogue<'_>, cart: &BTreeMap<String, u32>) -> Result<Self, Error> {
        if cart.is_empty() {
            return Ok(Self { lines: Vec::new() });
        }
        let ids: Vec<_> = cart.keys().cloned().collect();
        let mut cards = catalogue.cards(&ids).await?;
        let line = |(id, quantity): (&String, &u32)| PricedLine {
            id: id.clone(),
            quantity: *quantity,
            card: cards.iter().position(|card| card.id == *id).map(|index| cards.swap_remove(index)),
            rejected: None,
        };
        Ok(Self { lines: cart.iter().map(line).collect() })
    }

    /// The sum of all lines, without items that the shop no longer sells.
    pub(in crate::demo) fn total_cents(&self) -> i64 {
        self.lines.iter().map(PricedLine::cents).sum()
    }

    /// The currency of the first product: all prices of the shop have the same one.
    pub(in crate::demo) fn currency(&self) -> &str {
        self.lines.iter().find_map(|line| Some(line.card.as_ref()?.currency.as_str())).unwrap_or("EUR")
    }

    pub(in crate::demo) fn total(&self) -> Money<'_> {
        Money { cents: self.total_cents(), currency: self.currency() }
    }

    /// True if a line cannot be bought.
    pub(in crate::demo) fn has_problem(&self) -> bool {
        self.lines.iter().any(|line| line.problem().is_some())
    }

    /// Identifies the cart and prices that a page showed: `<total in cents>-<hash of items, quantities and prices>`.
    /// The checkout form sends the quote back, so that no buyer pays a price that the page did not show.
    pub(in crate::demo) fn quote(&self) -> String {
        let mut hash = Sha256::new();
        for PricedLine { id, quantity, card, .. } in &self.lines {
            let cents = card.as_ref().map_or(0, |card| card.price_cents);
            hash.update(format!("{id} {quantity} {cents}\n"));
        }
        let hash = hex(&hash.finalize());
        format!("{}-{}", self.total_cents(), hash.get(..16).unwrap_or_default())
    }

    /// The cart for a script. Amounts are texts as pages show them.
    pub(in crate::demo) fn to_json(&self) -> Value {
        let lines = self.lines.iter().map(|line| {
            let card = line.card.as_ref();
            json!({"id": line.id, "name": line.name(), "quantity": line.quantity, "problem": line.problem(),
                "price": line.price().map(|price| price.to_string()),
                "unit": line.unit_price().map(|price| price.to_string()),
                "picture": card.map(|card| &card.picture), "tone": card.map(|card| &card.tone)})
        });
        let quantity: u32 = self.lines.iter().map(|line| line.quantity).sum();
        json!({"quantity": quantity, "total": self.total().to_string(), "lines": lines.collect::<Vec<_>>()})
    }

    /// The total of an earlier [`quote`](Self::quote); None if `quote` is malformed.
    pub(in crate::demo) fn quoted_total(&self, quote: &str) -> Option<Money<'_>> {
        let cents = quote.split_once('-')?.0.parse().ok()?;
        Some(Money { cents, currency: self.currency() })
    }
}

impl PricedLine {
    /// The product's name, or its id if the shop no longer sells it.
    pub(in crate::demo) fn name(&self) -> &str {
        self.card.as_ref().map_or(&self.id, |card| &card.name)
    }

    fn cents(&self) -> i64 {
        self.card.as_ref().map_or(0, |card| card.price_cents * i64::from(self.quantity))
    }

    /// The price of all pieces of the line; None if the shop no longer sells the item.
    pub(in crate::demo) fn price(&self) -> Option<Money<'_>> {
        self.card.as_ref().map(|card| Money { cents: self.cents(), currency: &card.currency })
    }

    /// The price of one piece; None for a single piece.
    pub(in crate::demo) fn unit_price(&self) -> Option<Money<'_>> {
        let card = self.card.as_ref().filter(|_| self.quantity > 1)?;
        Some(Money { cents: card.price_cents, currency: &card.currency })
    }

    /// The reason why the line cannot be bought, as a message for the visitor.
    pub(in crate::demo) fn problem(&self) -> Option<String> {
        match &self.card {
            None => Some("No longer available. Please remove this item.".to_owned()),
            Some(card) if card.stock <= 0 => Some("Sold out. Please remove this item.".to_owned()),
            Some(card) if card.stock < i64::from(self.quantity) => {
                Some(format!("Only {} left. Please reduce the quantity.", card.stock))
            }
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::catalogue::test_card;

    fn line(id: &str, quantity: u32, price_cents: i64, stock: i64) -> PricedLine {
        let card = ProductCard { id: id.to_owned(), ..test_card(price_cents, price_cents, stock) };
        PricedLine { id: id.to_owned(), quantity, card: Some(card), rejected: None }
    }

    #[test]
    fn a_total_leaves_out_items_that_are_no_longer_sold() {
        let gone = PricedLine { card: None, ..line("gone", 3, 1, 0) };
        let cart = PricedCart { lines: vec![gone, line("mug", 2, 1050, 9), line("pan", 1, 3900, 9)] };
        assert_eq!((cart.total_cents(), cart.total().to_string().as_str()), (6000, "€60.00"));
        assert_eq!(cart.lines[0].name(), "gone");
        assert!(cart.has_problem());
    }

    #[test]
    fn a_quote_changes_with_items_quantities_and_prices() {
        let quote = |lines| PricedCart { lines }.quote();
        let shown = quote(vec![line("mug", 2, 1000, 9), line("pan", 1, 1000, 9)]);
        assert!(shown.starts_with("3000-"), "{shown}");
        assert_eq!(shown, quote(vec![line("mug", 2, 1000, 5), line("pan", 1, 1000, 9)]), "stock is not part of it");
        for other in [
            vec![line("mug", 1, 1000, 9), line("pan", 2, 1000, 9)],
            vec![line("mug", 3, 1000, 9)],
            vec![line("mug", 2, 500, 9), line("pan", 1, 2000, 9)],
            vec![],
        ] {
            assert_ne!(shown, quote(other));
        }
    }

    #[test]
    fn a_line_above_the_stock_says_how_many_are_left() {
        assert_eq!(line("mug", 3, 1, 3).problem(), None);
        assert!(line("mug", 3, 1, 2).problem().unwrap().starts_with("Only 2 left."));
        assert!(line("mug", 3, 1, 0).problem().unwrap().starts_with("Sold out."));
    }
}
