//! Carts that ended with their session, as `reap` and `log_in` record them: a stream, the newest 10,000 or so.

use std::fmt;

use bytes::Bytes;

use crate::{
    carts::CartLine,
    ports::{error::Error, sort, time::Timestamp},
    schema::{ids::ItemId, redis::Redis, shard::Shard},
};
use upstash_rest::Command;

/// A cart that nobody came back for.
#[derive(Debug, Clone, PartialEq)]
pub struct AbandonedCart {
    pub id: AbandonedCursor,
    /// None for a guest's.
    pub user: Option<String>,
    /// When its session was last seen, Unix seconds; None if that is not known.
    pub seen: Option<f64>,
    pub ended: Timestamp,
    /// At least one.
    pub lines: Vec<CartLine>,
}

/// A part of the list, the cart that ended last first.
#[derive(Debug, Clone, PartialEq)]
pub struct AbandonedPage {
    pub carts: Vec<AbandonedCart>,
    /// Where the next page begins; None if this is the last.
    pub next: Option<AbandonedCursor>,
}

/// A place in the list: an id of the stream, milliseconds since the Unix epoch and a number within them; and of whose stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AbandonedCursor {
    millis: u64,
    number: u64,
    shard: u16,
}

impl AbandonedCursor {
    /// Reads what an earlier page said.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is no cursor.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (id, shard) = text.split_once('.').unwrap_or((text, "0"));
        let shard = number_of(shard).and_then(|shard| u16::try_from(shard).ok());
        let cursor = shard.and_then(|shard| Self::of_entry(id, shard));
        cursor.ok_or_else(|| Error::invalid("before", "must be the `next` of another page"))
    }

    fn of_entry(id: &str, shard: u16) -> Option<Self> {
        let (millis, number) = id.split_once('-')?;
        Some(Self { millis: number_of(millis)?, number: number_of(number)?, shard })
    }

    /// From where what comes after it in the list is to be read, in another shard's stream or its own. Of carts with the same id the
    /// one in the last shard comes first.
    fn from(self, shard: Shard) -> String {
        let Self { millis, number, .. } = self;
        format!("{}{millis}-{number}", if shard.number() < self.shard { "" } else { "(" })
    }
}

/// Digits only: a sign is none of a cursor's.
fn number_of(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

impl fmt::Display for AbandonedCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.millis, self.number)?;
        if self.shard == 0 { Ok(()) } else { write!(f, ".{}", self.shard) }
    }
}

/// The `limit` carts that ended last, or last before `before`. What other code wrote there and is no cart is left out, so a page may
/// be shorter than asked for, even empty, and not be the last.
///
/// # Errors
/// [`Error::Redis`].
pub async fn page(redis: &Redis, before: Option<AbandonedCursor>, limit: usize) -> Result<AbandonedPage, Error> {
    let read = |shard: Shard| {
        let from = before.map_or_else(|| "+".to_owned(), |cursor| cursor.from(shard));
        // One more than asked for: if it is there, so is another page.
        Command::read("XREVRANGE").arg(shard.abandoned()).arg(from).arg("-").arg("COUNT").num(limit + 1)
    };
    let shards = redis.keys().shards();
    let lists: Vec<Vec<(String, Vec<Bytes>)>> = redis.all(&shards.clone().map(read).collect::<Vec<_>>()).await?;
    let place =
        |shard: Shard, (id, fields)| Some((AbandonedCursor::of_entry(String::as_str(&id), shard.number())?, fields));
    let entries =
        shards.zip(lists).flat_map(|(shard, list)| list.into_iter().filter_map(move |entry| place(shard, entry)));
    let mut entries: Vec<_> = entries.collect();
    sort::sort_by(&mut entries, |(one, _), (other, _)| other.cmp(one));
    let is_last = entries.len() <= limit;
    entries.truncate(limit);
    let next = if is_last { None } else { entries.last().map(|(cursor, _)| *cursor) };
    Ok(AbandonedPage {
        carts: entries.iter().filter_map(|(cursor, fields)| read_cart(*cursor, fields)).collect(),
        next,
    })
}

fn read_cart(id: AbandonedCursor, fields: &[Bytes]) -> Option<AbandonedCart> {
    let field = |name: &str| {
        let mut pairs = fields.chunks_exact(2);
        pairs.find_map(|pair| match pair {
            [key, value] if key == name => std::str::from_utf8(value).ok(),
            _ => None,
        })
    };
    // The hash as it was: what in it is no line of a cart was put there by other code.
    let items: Vec<String> = serde_json::from_str(field("items")?).ok()?;
    let line = |pair: &[String]| match pair {
        [item, quantity] => Some(CartLine { item: ItemId::parse(item).ok()?, quantity: quantity.parse().ok()? }),
        _ => None,
    };
    let mut lines: Vec<_> = items.chunks(2).filter_map(line).filter(|line| line.quantity > 0).collect();
    sort::sort_by(&mut lines, |one, other| one.item.cmp(&other.item));
    if lines.is_empty() {
        return None;
    }
    Some(AbandonedCart {
        id,
        user: field("user").filter(|user| !user.is_empty()).map(str::to_owned),
        seen: field("seen").and_then(upstash_rest::parse_f64).filter(|seen| seen.is_finite()),
        ended: Timestamp::from_millis(id.millis),
        lines,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_back_and_nothing_else_is() {
        for (shard, text) in [(0, "1795000000000-3"), (7, "1795000000000-3.7")] {
            let cursor = AbandonedCursor { millis: 1_795_000_000_000, number: 3, shard };
            assert_eq!((cursor.to_string().as_str(), AbandonedCursor::parse(text)), (text, Ok(cursor)));
        }
        for text in [
            "",
            "-",
            "1-1.",
            "1-1.x",
            "1-1.1.1",
            "1-1.65536",
            "1",
            "1-",
            "-1",
            "1-x",
            "+1-1",
            "1-1-1",
            "1 - 1",
            "99999999999999999999-0",
        ] {
            assert!(AbandonedCursor::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_no_cart_is_left_out() {
        let entry = |fields: &[&str]| {
            let fields: Vec<_> = fields.iter().map(|field| Bytes::copy_from_slice(field.as_bytes())).collect();
            read_cart(AbandonedCursor { millis: 5, number: 0, shard: 0 }, &fields)
        };
        let cart =
            entry(&["user", "", "seen", "x", "items", r#"["mug","2","a:b","1","cup","0","pan","x","pot"]"#]).unwrap();
        assert_eq!((cart.user, cart.seen, cart.lines.len()), (None, None, 1));
        for fields in [
            &[][..],
            &["items"],
            &["user", "ada"],
            &["items", ""],
            &["items", "[]"],
            &["items", r#"{"mug":1}"#],
            &["items", r#"["mug","-1"]"#],
            &["items", r#"["mug",2]"#],
        ] {
            assert_eq!(entry(fields), None, "{fields:?}");
        }
    }
}
