//! The quantity of one item.

use serde_json::Value;

use crate::ports::error::Error;

/// The quantity of one item. 0 means none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantity(u32);

impl Quantity {
    pub const ZERO: Self = Self(0);

    /// The quantity as a number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Reads a JSON number. As in the book, a negative number means 0.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is not a whole number, or more than `max`.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be whole and in range")]
    pub fn parse(json: &Value, max: u32) -> Result<Self, Error> {
        let whole = json.as_f64().filter(|number| number.fract() == 0.0);
        let number = whole.ok_or_else(|| Error::invalid("quantity", "must be a whole number"))?;
        if number > f64::from(max) {
            return Err(Error::invalid("quantity", format!("must be at most {max}")));
        }
        Ok(Self(number.max(0.0) as u32))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_quantity_is_a_whole_number_up_to_the_maximum() {
        let parse = |json| Quantity::parse(&json, 999);
        for (json, quantity) in [(json!(1), 1), (json!(999), 999), (json!(2.0), 2), (json!(0), 0), (json!(-3), 0)] {
            assert_eq!(parse(json), Ok(Quantity(quantity)));
        }
        for json in [json!(1.5), json!("2"), json!(null), json!(true), json!([1]), json!({})] {
            assert_eq!(parse(json), Err(Error::invalid("quantity", "must be a whole number")));
        }
        for json in [json!(1000), json!(u64::MAX), json!(1e300)] {
            assert_eq!(parse(json), Err(Error::invalid("quantity", "must be at most 999")));
        }
    }
}
