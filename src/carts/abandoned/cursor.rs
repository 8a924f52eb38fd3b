//! A position in the list of abandoned carts.

use std::fmt;

use crate::ports::error::Error;

/// A position in the list of abandoned carts: an entry of the stream of a shard.
///
/// Its text is `<milliseconds>-<sequence>`, the id of the entry, followed by `.<shard>` unless the shard is 0. The shard
/// is its place among all shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AbandonedCursor {
    /// Milliseconds since the Unix epoch.
    pub(super) millis: u64,
    /// Tells entries of the same millisecond apart.
    sequence: u64,
    shard: u16,
}

impl AbandonedCursor {
    /// Reads the `next` cursor of an earlier page.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the text is not a cursor.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (id, shard) = text.split_once('.').unwrap_or((text, "0"));
        let shard = parse_digits(shard).and_then(|shard| u16::try_from(shard).ok());
        let cursor = shard.and_then(|shard| Self::of_entry(id, shard));
        cursor.ok_or_else(|| Error::invalid("before", "must be the `next` of another page"))
    }

    /// The position of the entry `id` in the stream of a shard. `None` if `id` is not an id of a stream entry.
    pub(super) fn of_entry(id: &str, shard: u16) -> Option<Self> {
        let (millis, sequence) = id.split_once('-')?;
        let cursor = Self { millis: parse_digits(millis)?, sequence: parse_digits(sequence)?, shard };
        // Redis refuses `(0-0`, and no entry has this id.
        ((cursor.millis, cursor.sequence) != (0, 0)).then_some(cursor)
    }

    /// The start argument for `XREVRANGE` that reads the entries after this position from the stream of `shard`.
    ///
    /// If entries have the same id, the one in the highest shard comes first in the list. `(` excludes the id itself.
    pub(super) fn range_start(self, shard: u16) -> String {
        let Self { millis, sequence, .. } = self;
        format!("{}{millis}-{sequence}", if shard < self.shard { "" } else { "(" })
    }
}

/// Parses digits only: `u64::from_str` also accepts a sign.
fn parse_digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

impl fmt::Display for AbandonedCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.millis, self.sequence)?;
        if self.shard == 0 { Ok(()) } else { write!(f, ".{}", self.shard) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_back() {
        for (shard, text) in [(0, "1795000000000-3"), (7, "1795000000000-3.7")] {
            let cursor = AbandonedCursor { millis: 1_795_000_000_000, sequence: 3, shard };
            assert_eq!((cursor.to_string().as_str(), AbandonedCursor::parse(text)), (text, Ok(cursor)));
        }
    }

    #[test]
    fn other_text_is_not_a_cursor() {
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
}
