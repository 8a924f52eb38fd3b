//! Streams. An id is `milliseconds-sequence`; `-` and `+` are the lowest and the highest one.

use bytes::Bytes;

use super::{read, with_pairs, write};
use crate::{command::Typed, reply::Pairs};

/// An entry of a stream: its id, and its fields with their values.
pub type StreamEntry = (String, Pairs<Bytes, Bytes>);

/// XADD: adds an entry with an id of the server. Replies with the id.
#[must_use]
pub fn xadd<F: AsRef<[u8]>, V: AsRef<[u8]>>(
    key: impl AsRef<[u8]>,
    fields: impl IntoIterator<Item = (F, V)>,
) -> Typed<String> {
    with_pairs(write("XADD", key).arg("*"), fields).into()
}

/// XRANGE: the entries from `start` to `end`, both included, oldest first. Limit it by `.arg("COUNT").num(count)`.
#[must_use]
pub fn xrange(key: impl AsRef<[u8]>, start: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Typed<Vec<StreamEntry>> {
    read("XRANGE", key).arg(start).arg(end).into()
}

/// XREVRANGE: the entries from `end` back to `start`, both included, newest first. Limit it by
/// `.arg("COUNT").num(count)`.
#[must_use]
pub fn xrevrange(key: impl AsRef<[u8]>, end: impl AsRef<[u8]>, start: impl AsRef<[u8]>) -> Typed<Vec<StreamEntry>> {
    read("XREVRANGE", key).arg(end).arg(start).into()
}

/// XLEN: the number of entries.
#[must_use]
pub fn xlen(key: impl AsRef<[u8]>) -> Typed<u64> {
    read("XLEN", key).into()
}

/// XDEL: deletes entries. Replies with the number of deleted ones.
#[must_use]
pub fn xdel<I: AsRef<[u8]>>(key: impl AsRef<[u8]>, ids: impl IntoIterator<Item = I>) -> Typed<u64> {
    write("XDEL", key).args(ids).into()
}

/// XTRIM with MAXLEN: deletes the oldest entries beyond `length`. Replies with their number.
#[must_use]
pub fn xtrim(key: impl AsRef<[u8]>, length: u64) -> Typed<u64> {
    write("XTRIM", key).arg("MAXLEN").num(length).into()
}
