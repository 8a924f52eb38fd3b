//! Hashes.

use bytes::Bytes;

use super::{read, with_pairs, write};
use crate::{command::Typed, reply::Pairs};

/// HGET: the value of a field, or None if there is no such field.
#[must_use]
pub fn hget(key: impl AsRef<[u8]>, field: impl AsRef<[u8]>) -> Typed<Option<Bytes>> {
    read("HGET", key).arg(field).into()
}

/// HMGET: the value of each field.
#[must_use]
pub fn hmget<F: AsRef<[u8]>>(key: impl AsRef<[u8]>, fields: impl IntoIterator<Item = F>) -> Typed<Vec<Option<Bytes>>> {
    read("HMGET", key).args(fields).into()
}

/// HGETALL: all fields and values.
#[must_use]
pub fn hgetall(key: impl AsRef<[u8]>) -> Typed<Pairs<Bytes, Bytes>> {
    read("HGETALL", key).into()
}

/// HKEYS: all fields.
#[must_use]
pub fn hkeys(key: impl AsRef<[u8]>) -> Typed<Vec<Bytes>> {
    read("HKEYS", key).into()
}

/// HVALS: all values.
#[must_use]
pub fn hvals(key: impl AsRef<[u8]>) -> Typed<Vec<Bytes>> {
    read("HVALS", key).into()
}

/// HLEN: the number of fields.
#[must_use]
pub fn hlen(key: impl AsRef<[u8]>) -> Typed<u64> {
    read("HLEN", key).into()
}

/// HEXISTS: true if there is such a field.
#[must_use]
pub fn hexists(key: impl AsRef<[u8]>, field: impl AsRef<[u8]>) -> Typed<bool> {
    read("HEXISTS", key).arg(field).into()
}

/// HSET: sets fields. Replies with the number of new ones.
#[must_use]
pub fn hset<F: AsRef<[u8]>, V: AsRef<[u8]>>(
    key: impl AsRef<[u8]>,
    fields: impl IntoIterator<Item = (F, V)>,
) -> Typed<u64> {
    with_pairs(write("HSET", key), fields).into()
}

/// HSETNX: sets a field that does not exist. Replies true if it did so.
#[must_use]
pub fn hset_nx(key: impl AsRef<[u8]>, field: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Typed<bool> {
    write("HSETNX", key).arg(field).arg(value).into()
}

/// HDEL: deletes fields. Replies with the number of deleted ones.
#[must_use]
pub fn hdel<F: AsRef<[u8]>>(key: impl AsRef<[u8]>, fields: impl IntoIterator<Item = F>) -> Typed<u64> {
    write("HDEL", key).args(fields).into()
}

/// HINCRBY: adds to the number in a field. Replies with the new number.
#[must_use]
pub fn hincr_by(key: impl AsRef<[u8]>, field: impl AsRef<[u8]>, increment: i64) -> Typed<i64> {
    write("HINCRBY", key).arg(field).num(increment).into()
}
