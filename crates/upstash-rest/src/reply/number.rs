//! Numbers, which Redis writes as integers or as text.
//!
//! Floats are read by `serde_json`, which replaces the parser of the standard library: the tables of that one made a
//! Worker 11 KB larger gzipped.

use super::{FromReply, Reply};
use crate::error::Error;

macro_rules! integer {
    ($($type:ty),*) => {$(
        /// An integer, or a number in a string, as hash values are.
        impl FromReply for $type {
            fn from_reply(reply: Reply) -> Result<Self, Error> {
                match reply {
                    Reply::Integer(number) => number.try_into().map_err(|_| Error::UnexpectedType),
                    reply => String::from_reply(reply)?.parse().map_err(|_| Error::UnexpectedType),
                }
            }
        }
    )*};
}
integer!(i64, i32, u64, u32, usize);

/// An integer, or a number in a string, as scores are.
impl FromReply for f64 {
    fn from_reply(reply: Reply) -> Result<Self, Error> {
        match reply {
            #[expect(clippy::cast_precision_loss, reason = "beyond 2^53 Redis rounds a score itself")]
            Reply::Integer(number) => Ok(number as Self),
            reply => parse_f64(&String::from_reply(reply)?).ok_or(Error::UnexpectedType),
        }
    }
}

/// Reads a float as Redis writes it: as a JSON number, or `inf`. Exact up to 15 digits; beyond, the last bit may
/// differ. None for any other text, and for `nan`.
#[must_use]
pub fn parse_f64(text: &str) -> Option<f64> {
    match text {
        "inf" => Some(f64::INFINITY),
        "-inf" => Some(f64::NEG_INFINITY),
        text => serde_json::from_str(text).ok(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_float_is_read_as_redis_writes_it() {
        for (text, expected) in [
            ("0", Some(0.0)),
            ("-12.5", Some(-12.5)),
            ("1790000000.123", Some(1_790_000_000.123)),
            ("1.0000000000000001e+22", Some(1e22)),
            ("-inf", Some(f64::NEG_INFINITY)),
            ("", None),
            ("12 apples", None),
            ("nan", None),
        ] {
            assert_eq!(parse_f64(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        #[expect(clippy::cast_precision_loss, reason = "13 digits are exact")]
        fn unix_seconds_with_milliseconds_are_exact(millis in 0..10_000_000_000_000_u64) {
            let text = format!("{}.{:03}", millis / 1000, millis % 1000);
            prop_assert_eq!(parse_f64(&text), Some(millis as f64 / 1000.0));
        }
    }
}
