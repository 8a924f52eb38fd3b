//! Abandoned carts: carts that ended with their session.
//!
//! The scripts `reap` and `log_in` record them in a stream, which keeps about the newest 10,000 per shard.

mod cursor;

use upstash_rest::Command;

pub use self::cursor::AbandonedCursor;
use super::{CartLine, cart::sort_lines};
use crate::{
    ports::{error::Error, sort, time::Timestamp},
    schema::{redis::Redis, shard::Shard},
};

/// A cart whose session has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct AbandonedCart {
    pub id: AbandonedCursor,
    /// `None` for a guest.
    pub user: Option<String>,
    /// The last activity of the session, in Unix seconds, if known.
    pub last_seen: Option<f64>,
    pub ended: Timestamp,
    /// At least one line.
    pub lines: Vec<CartLine>,
}

/// A part of the list, the latest end first.
#[derive(Debug, Clone, PartialEq)]
pub struct AbandonedPage {
    pub carts: Vec<AbandonedCart>,
    /// The cursor of the next page; `None` if this page is the last.
    pub next: Option<AbandonedCursor>,
}

/// The `limit` carts that ended last, or that ended last before `before`.
///
/// Skips entries that are not a cart, which other code may have written. So a page may hold fewer than `limit` carts,
/// even none, without being the last.
///
/// # Errors
/// [`Error::Redis`].
pub async fn read_page(redis: &Redis, before: Option<AbandonedCursor>, limit: usize) -> Result<AbandonedPage, Error> {
    let read = |(place, shard): (u16, Shard)| {
        let start = before.map_or_else(|| "+".to_owned(), |cursor| cursor.range_start(place));
        // One more than the limit: if it exists, so does another page.
        Command::read("XREVRANGE").arg(shard.abandoned()).arg(start).arg("-").arg("COUNT").num(limit + 1)
    };
    let shards = (0_u16..).zip(redis.keys().shards());
    let lists: Vec<Vec<(String, Vec<String>)>> = redis.all(&shards.clone().map(read).collect::<Vec<_>>()).await?;
    let with_cursor = |place, (id, fields)| Some((AbandonedCursor::of_entry(String::as_str(&id), place)?, fields));
    let entries = shards
        .zip(lists)
        .flat_map(|((place, _), list)| list.into_iter().filter_map(move |entry| with_cursor(place, entry)));
    let mut entries: Vec<_> = entries.collect();
    sort::sort_by(&mut entries, |(one, _), (other, _)| other.cmp(one));
    let is_last = entries.len() <= limit;
    entries.truncate(limit);
    let next = if is_last { None } else { entries.last().map(|(cursor, _)| *cursor) };
    let carts = entries.iter().filter_map(|(cursor, fields)| parse_entry(*cursor, fields)).collect();
    Ok(AbandonedPage { carts, next })
}

/// The cart in an entry of the stream; `None` if it is not a cart or has no valid line.
fn parse_entry(id: AbandonedCursor, fields: &[String]) -> Option<AbandonedCart> {
    let field = |name: &str| {
        let mut pairs = fields.chunks_exact(2);
        pairs.find_map(|pair| match pair {
            [key, value] if key == name => Some(value.as_str()),
            _ => None,
        })
    };
    // The scripts record the hash as it was: item, quantity, item, … Lines that other code wrote may be invalid.
    let items: Vec<String> = serde_json::from_str(field("items")?).ok()?;
    let line = |pair: &[String]| match pair {
        [item, quantity] => CartLine::parse(item, quantity),
        _ => None,
    };
    let mut lines: Vec<_> = items.chunks(2).filter_map(line).collect();
    sort_lines(&mut lines);
    if lines.is_empty() {
        return None;
    }
    Some(AbandonedCart {
        id,
        user: field("user").filter(|user| !user.is_empty()).map(str::to_owned),
        last_seen: field("seen").and_then(upstash_rest::parse_f64).filter(|seconds| seconds.is_finite()),
        ended: Timestamp::from_millis(id.millis),
        lines,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(fields: &[&str]) -> Option<AbandonedCart> {
        let fields: Vec<_> = fields.iter().map(ToString::to_string).collect();
        parse_entry(AbandonedCursor::parse("5-0").unwrap(), &fields)
    }

    #[test]
    fn invalid_fields_and_lines_of_an_entry_are_skipped() {
        let items = r#"["mug","2","a:b","1","cup","0","pan","x","pot"]"#;
        let cart = parse(&["user", "", "seen", "x", "items", items]).unwrap();
        assert_eq!((cart.user, cart.last_seen, cart.lines.len()), (None, None, 1));
    }

    #[test]
    fn an_entry_without_a_valid_line_is_not_a_cart() {
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
            assert_eq!(parse(fields), None, "{fields:?}");
        }
    }
}
