//! A cart and its lines.

use serde_json::{Map, Value};
use upstash_rest::Pairs;

use crate::{ports::sort, schema::ids::ItemId};

/// The content of a cart, ordered by item, so that equal carts have equal sequences.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cart {
    pub lines: Vec<CartLine>,
}

/// One item of a cart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CartLine {
    pub item: ItemId,
    /// At least 1.
    pub quantity: u32,
}

impl Cart {
    /// The sum of the quantities of all lines.
    #[must_use]
    pub fn total_quantity(&self) -> u64 {
        self.lines.iter().map(|line| u64::from(line.quantity)).sum()
    }

    /// Item → quantity, in the order of the lines: `{"mug": 2}`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let lines = self.lines.iter().map(|line| (line.item.to_string(), line.quantity.into()));
        Value::Object(lines.collect::<Map<_, _>>())
    }

    /// Reads the pairs of a `cart:` hash: item → quantity.
    ///
    /// Skips pairs that are not valid lines: other code that shares this Redis may have written them.
    pub(crate) fn from_pairs(Pairs(pairs): Pairs<String, String>) -> Self {
        let line = |(item, quantity): (String, String)| CartLine::parse(&item, &quantity);
        let mut lines: Vec<_> = pairs.into_iter().filter_map(line).collect();
        sort_lines(&mut lines);
        Self { lines }
    }
}

impl CartLine {
    /// The line of a field and its value in a `cart:` hash. `None` if the item is not a valid id or the quantity not at
    /// least 1.
    pub(super) fn parse(item: &str, quantity: &str) -> Option<Self> {
        let quantity = quantity.parse().ok().filter(|quantity| *quantity > 0)?;
        Some(Self { item: ItemId::parse(item).ok()?, quantity })
    }
}

pub(super) fn sort_lines(lines: &mut Vec<CartLine>) {
    sort::sort_by(lines, |one, other| one.item.cmp(&other.item));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pairs_that_are_not_valid_lines_are_skipped() {
        let pair = |item: &str, quantity: &str| (item.to_owned(), quantity.to_owned());
        let pairs = vec![
            pair("mug", "2"),
            pair("", "1"),
            pair("a:b", "1"),
            pair("cup", "x"),
            pair("bowl", "-1"),
            pair("pot", "0"),
            pair("a", "3"),
        ];
        let cart = Cart::from_pairs(Pairs(pairs));
        assert_eq!(cart.lines.iter().map(|line| line.item.as_str()).collect::<Vec<_>>(), ["a", "mug"]);
        assert_eq!(cart.total_quantity(), 5);
        assert_eq!(cart.to_json(), json!({"a": 3, "mug": 2}));
    }
}
