//! What Redis answered, and the types that it is read as.
//!
//! RESP2 has five shapes; scores are strings, hashes and WITHSCORES are flat lists. Strings come base64-encoded, so that any
//! bytes survive JSON; the status `OK` alone comes as it is (it can not be mistaken: no base64 text has two characters).

use std::{fmt, vec::IntoIter};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;

use super::error::Error;

/// A reply of Redis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    Nil,
    Integer(i64),
    /// A bulk string, or the status `OK`.
    Bytes(Bytes),
    List(Vec<Reply>),
}

/// What stands in an answer for one command: `{"result": …}` or `{"error": …}`. An error is one, whatever stands beside it.
pub(super) struct Item(pub Result<Reply, Error>);

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(field_identifier, rename_all = "lowercase")]
        enum Name {
            Result,
            Error,
            #[serde(other)]
            Other,
        }
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Item;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a result or an error")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Item, A::Error> {
                let (mut result, mut error) = (Err(Error::UnexpectedType), Value::Null);
                while let Some(name) = map.next_key()? {
                    match name {
                        Name::Result => result = map.next_value::<Told>()?.0,
                        Name::Error => error = map.next_value()?,
                        Name::Other => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(Item(match error {
                    Value::Null => result,
                    Value::String(message) => Err(Error::from_message(&message)),
                    _ => Err(Error::UnexpectedType),
                }))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// A result, whose strings are base64; an error if it has none of the shapes of a reply.
struct Told(Result<Reply, Error>);

impl<'de> Deserialize<'de> for Told {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Result<Reply, Error>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a reply")
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Ok(Reply::Nil))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
                Ok(Ok(Reply::Integer(number)))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
                Ok(i64::try_from(number).map(Reply::Integer).map_err(|_| Error::UnexpectedType))
            }

            fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
                Ok(Err(Error::UnexpectedType))
            }

            fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                Ok(Err(Error::UnexpectedType))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                if text == "OK" {
                    return Ok(Ok(Reply::Bytes(Bytes::from_static(b"OK"))));
                }
                Ok(STANDARD.decode(text).map(|bytes| Reply::Bytes(bytes.into())).map_err(|_| Error::UnexpectedType))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut replies = Vec::new();
                while let Some(Told(reply)) = list.next_element()? {
                    replies.push(reply);
                }
                Ok(replies.into_iter().collect::<Result<_, _>>().map(Reply::List))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Err(Error::UnexpectedType))
            }
        }
        deserializer.deserialize_any(Reader).map(Self)
    }
}

/// A type that a reply can be read as.
pub trait FromReply: Sized {
    /// Reads `reply`.
    ///
    /// # Errors
    /// [`Error::UnexpectedType`] if it is of another type.
    fn from_reply(reply: Reply) -> Result<Self, Error>;
}

impl FromReply for Reply {
    fn from_reply(reply: Reply) -> Result<Self, Error> {
        Ok(reply)
    }
}

/// Any reply; for writes whose reply says nothing.
impl FromReply for () {
    fn from_reply(_: Reply) -> Result<Self, Error> {
        Ok(())
    }
}

impl FromReply for Bytes {
    fn from_reply(reply: Reply) -> Result<Self, Error> {
        match reply {
            Reply::Bytes(bytes) => Ok(bytes),
            _ => Err(Error::UnexpectedType),
        }
    }
}

impl FromReply for String {
    fn from_reply(reply: Reply) -> Result<Self, Error> {
        String::from_utf8(Bytes::from_reply(reply)?.into()).map_err(|_| Error::UnexpectedType)
    }
}

macro_rules! number {
    ($($type:ty),*) => {$(
        /// An integer, or a number in a string, as scores and hash values are.
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
number!(i64, u64, u32);

/// An integer, or a number in a string.
impl FromReply for f64 {
    fn from_reply(reply: Reply) -> Result<Self, Error> {
        match reply {
            #[expect(clippy::cast_precision_loss, reason = "no score of ours is beyond 2^53")]
            Reply::Integer(number) => Ok(number as Self),
            reply => number(&String::from_reply(reply)?).ok_or(Error::UnexpectedType),
        }
    }
}

/// A number as Redis writes it. It is read as one of JSON, exact up to 15 digits, which all of our scores have at the most: what the standard
/// library does about the others is 11 KB of the gzipped Worker.
#[must_use]
pub fn number(text: &str) -> Option<f64> {
    match text {
        "inf" => Some(f64::INFINITY),
        "-inf" => Some(f64::NEG_INFINITY),
        text => serde_json::from_str(text).ok(),
    }
}

/// 1 and 0, as Redis says yes and no.
impl FromReply for bool {
    fn from_reply(reply: Reply) -> Result<Self, Error> {
        match reply {
            Reply::Integer(1) => Ok(true),
            Reply::Integer(0) => Ok(false),
            _ => Err(Error::UnexpectedType),
        }
    }
}

impl<T: FromReply> FromReply for Option<T> {
    fn from_reply(reply: Reply) -> Result<Self, Error> {
        match reply {
            Reply::Nil => Ok(None),
            reply => T::from_reply(reply).map(Some),
        }
    }
}

impl<T: FromReply> FromReply for Vec<T> {
    fn from_reply(reply: Reply) -> Result<Self, Error> {
        match reply {
            Reply::List(items) => items.into_iter().map(T::from_reply).collect(),
            _ => Err(Error::UnexpectedType),
        }
    }
}

/// The items of a list that has exactly `length`, one after the other.
struct Items(IntoIter<Reply>);

impl Items {
    fn of(reply: Reply, length: usize) -> Result<Self, Error> {
        match reply {
            Reply::List(items) if items.len() == length => Ok(Self(items.into_iter())),
            _ => Err(Error::UnexpectedType),
        }
    }

    fn read<T: FromReply>(&mut self) -> Result<T, Error> {
        T::from_reply(self.0.next().ok_or(Error::UnexpectedType)?)
    }
}

macro_rules! tuple {
    ($length:literal, $($type:ident),*) => {
        /// A list of exactly as many replies.
        impl<$($type: FromReply),*> FromReply for ($($type,)*) {
            fn from_reply(reply: Reply) -> Result<Self, Error> {
                let mut items = Items::of(reply, $length)?;
                Ok(($(items.read::<$type>()?,)*))
            }
        }
    };
}
tuple!(2, A, B);
tuple!(3, A, B, C);
tuple!(4, A, B, C, D);
tuple!(5, A, B, C, D, E);
tuple!(6, A, B, C, D, E, F);
tuple!(7, A, B, C, D, E, F, G);

/// A flat list of pairs, as HGETALL and WITHSCORES answer: `a, 1, b, 2`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pairs<K, V>(pub Vec<(K, V)>);

impl<K: FromReply, V: FromReply> FromReply for Pairs<K, V> {
    fn from_reply(reply: Reply) -> Result<Self, Error> {
        let Reply::List(items) = reply else { return Err(Error::UnexpectedType) };
        let mut pairs = Vec::with_capacity(items.len() / 2);
        let mut items = items.into_iter();
        while let Some(key) = items.next() {
            let value = items.next().ok_or(Error::UnexpectedType)?;
            pairs.push((K::from_reply(key)?, V::from_reply(value)?));
        }
        Ok(Self(pairs))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::ports::time::Timestamp;

    fn read(json: Value) -> Result<Reply, Error> {
        serde_json::from_value::<Told>(json).unwrap().0
    }

    #[test]
    fn the_five_shapes_of_a_reply() {
        assert_eq!(read(json!(null)), Ok(Reply::Nil));
        assert_eq!(read(json!(-3)), Ok(Reply::Integer(-3)));
        assert_eq!(read(json!("OK")), Ok(Reply::Bytes("OK".into())));
        assert_eq!(read(json!("T0s=")), Ok(Reply::Bytes("OK".into())));
        assert_eq!(read(json!([null, [1]])), Ok(Reply::List(vec![Reply::Nil, Reply::List(vec![Reply::Integer(1)])])));
        for odd in [json!(true), json!({}), json!(1.5), json!("not base64"), json!([{"error": "x"}])] {
            assert_eq!(read(odd), Err(Error::UnexpectedType));
        }
    }

    #[test]
    fn a_reply_of_another_type_is_an_error_and_no_panic() {
        assert_eq!(i64::from_reply(Reply::Nil), Err(Error::UnexpectedType));
        assert_eq!(String::from_reply(Reply::Bytes(Bytes::from_static(&[0xff]))), Err(Error::UnexpectedType));
        assert_eq!(u32::from_reply(Reply::Integer(-1)), Err(Error::UnexpectedType));
        assert_eq!(<(i64, i64)>::from_reply(Reply::List(vec![Reply::Integer(1)])), Err(Error::UnexpectedType));
        assert_eq!(Pairs::<String, f64>::from_reply(Reply::List(vec![Reply::Integer(1)])), Err(Error::UnexpectedType));
    }

    #[test]
    fn a_number_is_what_redis_writes() {
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
            assert_eq!(number(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_moment_is_read_as_it_is_written(millis in 0..10_000_000_000_000_u64) {
            let score = Timestamp::from_millis(millis);
            prop_assert_eq!(number(&score.to_string()), Some(score.as_score()));
        }

        #[test]
        fn any_bytes_survive(bytes: Vec<u8>) {
            let reply = read(json!(STANDARD.encode(&bytes))).unwrap();
            prop_assert_eq!(Bytes::from_reply(reply).unwrap(), bytes);
        }

        #[test]
        fn scores_are_strings(score: i32) {
            let reply = Reply::List(vec![Reply::Bytes("a".into()), Reply::Bytes(score.to_string().into())]);
            prop_assert_eq!(Pairs::<String, f64>::from_reply(reply).unwrap().0, vec![("a".to_owned(), f64::from(score))]);
        }
    }
}
