//! Ids that may become part of a Redis key. Their only constructors check them: an id has no separator, so it cannot
//! reach another key, and it is not empty, because `viewed:` with an empty token is the ranking.

use std::{borrow::Cow, fmt};

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::ports::error::Error;

/// The text of an id in JSON: a string as it is, an integer in decimal digits. Many shops number their items and
/// orders. The caller checks the text.
///
/// # Errors
/// [`Error::Invalid`] with the name `field` for anything else. JSON readers disagree about fractions and about integers
/// of more than 64 bits, so two of them could name two ids.
pub fn id_text<'a>(field: &'static str, value: &'a Value) -> Result<Cow<'a, str>, Error> {
    match value {
        Value::String(text) => Ok(text.into()),
        Value::Number(number) if !number.is_f64() => Ok(number.to_string().into()),
        _ => Err(Error::invalid(field, "must be a string or an integer of at most 64 bits")),
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $field:literal, $max:literal, $allowed:expr, $rule:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// The greatest length, in bytes.
            pub const MAX: usize = $max;

            /// Checks `text`.
            ///
            /// # Errors
            /// [`Error::Invalid`] with the rule.
            pub fn parse(text: &str) -> Result<Self, Error> {
                let allowed: fn(u8) -> bool = $allowed;
                // `.` and `..` are steps in the path of a URL.
                if matches!(text, "" | "." | "..") || text.len() > $max || !text.bytes().all(allowed) {
                    return Err(Error::invalid($field, $rule));
                }
                Ok(Self(text.to_owned()))
            }

            /// The id as text, for keys and URLs.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

/// Unreserved characters of a URL (RFC 3986 §2.3), so that an id is the same in a path, a query and a key.
fn unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

id!(
    /// An item of the shop, as its page's URL names it.
    ItemId, "item", 64, unreserved, "must be 1 to 64 characters of A-Z a-z 0-9 - . _ ~, and not . or .."
);
id!(
    /// A database row that Redis has a copy of.
    RowId, "row", 64, unreserved, "must be 1 to 64 characters of A-Z a-z 0-9 - . _ ~, and not . or .."
);
/// An item of a flash sale has the id of its row.
impl From<ItemId> for RowId {
    fn from(item: ItemId) -> Self {
        Self(item.0)
    }
}
id!(
    /// A user, as the storefront names them: an account number or an email address.
    UserId, "user", 128,
    |byte| byte.is_ascii_graphic() && !matches!(byte, b'{' | b'}' | b',' | b'"' | b'\\'),
    "must be 1 to 128 visible ASCII characters other than { } , \" \\, and not . or .."
);
id!(
    /// An order, as the storefront numbers it.
    OrderId, "order_id", 64, unreserved, "must be 1 to 64 characters of A-Z a-z 0-9 - . _ ~, and not . or .."
);
id!(
    /// A tag that the origin gives to pages (`Edge-Tags`), so that one purge voids all of them.
    Tag, "tag", 64, |byte| byte.is_ascii_graphic() && byte != b',',
    "must be 1 to 64 visible ASCII characters other than a comma, and not . or .."
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_is_an_id_in_decimal_digits() {
        let text = |json| id_text("id", &serde_json::from_str(json).unwrap()).map(Cow::into_owned);
        for (json, expected) in [
            ("42", "42"),
            ("0", "0"),
            ("-7", "-7"),
            ("18446744073709551615", "18446744073709551615"),
            ("-9223372036854775808", "-9223372036854775808"),
            (r#""007""#, "007"),
        ] {
            assert_eq!(text(json).as_deref(), Ok(expected));
        }
        for json in ["1.0", "1e2", "18446744073709551616", "-9223372036854775809", "null", "true", "[1]", "{}"] {
            let error = text(json).unwrap_err().to_string();
            assert_eq!(error, "id must be a string or an integer of at most 64 bits", "{json}");
        }
    }

    #[test]
    fn an_id_cannot_leave_its_key() {
        for text in ["", ".", "..", "a:b", "a/b", "a\0", "ü", "a b", "{a}", &"a".repeat(65)] {
            assert!(ItemId::parse(text).is_err(), "{text}");
        }
        assert_eq!(ItemId::parse("enamel-mug_1.5~x").unwrap().as_str(), "enamel-mug_1.5~x");
        assert!(UserId::parse("ada@example.org").is_ok());
    }
}
