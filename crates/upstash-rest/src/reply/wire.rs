//! The JSON form of a reply.
//!
//! Strings come base64-encoded, so that any bytes survive JSON. Only the status `OK` comes as it is; no base64 text has
//! two characters. Replaces a tree of `serde_json::Value`s, in which each string is copied before it is decoded: here
//! each is decoded where it stands.

use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;

use super::Reply;
use crate::error::Error;

/// The result of one command: `{"result": …}` or `{"error": …}`. With an `error`, the command failed whatever else is
/// there.
pub struct CommandResult(pub Result<Reply, Error>);

impl<'de> Deserialize<'de> for CommandResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(field_identifier, rename_all = "lowercase")]
        enum Field {
            Result,
            Error,
            #[serde(other)]
            Other,
        }
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = CommandResult;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a result or an error")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<CommandResult, A::Error> {
                let (mut result, mut error) = (Err(Error::UnexpectedType), Value::Null);
                while let Some(field) = map.next_key()? {
                    match field {
                        Field::Result => result = map.next_value::<WireReply>()?.0,
                        Field::Error => error = map.next_value()?,
                        Field::Other => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(CommandResult(match error {
                    Value::Null => result,
                    Value::String(message) => Err(Error::from_message(&message)),
                    _ => Err(Error::UnexpectedType),
                }))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// A reply with its base64 decoded; an error if it has none of a reply's shapes.
struct WireReply(Result<Reply, Error>);

impl<'de> Deserialize<'de> for WireReply {
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
                while let Some(WireReply(reply)) = list.next_element()? {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::reply::FromReply;

    fn read(json: Value) -> Result<Reply, Error> {
        serde_json::from_value::<WireReply>(json).unwrap().0
    }

    #[test]
    fn a_reply_has_one_of_five_shapes() {
        assert_eq!(read(json!(null)), Ok(Reply::Nil));
        assert_eq!(read(json!(-3)), Ok(Reply::Integer(-3)));
        assert_eq!(read(json!("OK")), Ok(Reply::Bytes("OK".into())));
        assert_eq!(read(json!("T0s=")), Ok(Reply::Bytes("OK".into())));
        assert_eq!(read(json!([null, [1]])), Ok(Reply::List(vec![Reply::Nil, Reply::List(vec![Reply::Integer(1)])])));
        for odd in [json!(true), json!({}), json!(1.5), json!("not base64"), json!([{"error": "x"}])] {
            assert_eq!(read(odd), Err(Error::UnexpectedType));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_survive(bytes: Vec<u8>) {
            let reply = read(json!(STANDARD.encode(&bytes))).unwrap();
            prop_assert_eq!(Bytes::from_reply(reply).unwrap(), bytes);
        }
    }
}
