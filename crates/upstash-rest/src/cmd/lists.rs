//! Lists. Indices count from 0; negative ones count from the end, which is -1.

use bytes::Bytes;

use super::{read, write};
use crate::command::Typed;

/// LRANGE: the values from `start` to `stop`, both included.
#[must_use]
pub fn lrange(key: impl AsRef<[u8]>, start: i64, stop: i64) -> Typed<Vec<Bytes>> {
    read("LRANGE", key).num(start).num(stop).into()
}

/// LINDEX: the value at `index`, or None if there is none.
#[must_use]
pub fn lindex(key: impl AsRef<[u8]>, index: i64) -> Typed<Option<Bytes>> {
    read("LINDEX", key).num(index).into()
}

/// LLEN: the length.
#[must_use]
pub fn llen(key: impl AsRef<[u8]>) -> Typed<u64> {
    read("LLEN", key).into()
}

/// LPUSH: adds values at the head, one after the other. Replies with the new length.
#[must_use]
pub fn lpush<V: AsRef<[u8]>>(key: impl AsRef<[u8]>, values: impl IntoIterator<Item = V>) -> Typed<u64> {
    write("LPUSH", key).args(values).into()
}

/// RPUSH: adds values at the tail. Replies with the new length.
#[must_use]
pub fn rpush<V: AsRef<[u8]>>(key: impl AsRef<[u8]>, values: impl IntoIterator<Item = V>) -> Typed<u64> {
    write("RPUSH", key).args(values).into()
}

/// LPOP: takes the value at the head, or None if the list is empty.
#[must_use]
pub fn lpop(key: impl AsRef<[u8]>) -> Typed<Option<Bytes>> {
    write("LPOP", key).into()
}

/// RPOP: takes the value at the tail, or None if the list is empty.
#[must_use]
pub fn rpop(key: impl AsRef<[u8]>) -> Typed<Option<Bytes>> {
    write("RPOP", key).into()
}

/// LSET: replaces the value at `index`, which must exist. Repeatable.
#[must_use]
pub fn lset(key: impl AsRef<[u8]>, index: i64, value: impl AsRef<[u8]>) -> Typed<()> {
    write("LSET", key).num(index).arg(value).repeatable().into()
}

/// LREM: removes up to `count` equal values from the head, from the tail if it is negative, all if it is 0. Replies with
/// the number of removed ones.
#[must_use]
pub fn lrem(key: impl AsRef<[u8]>, count: i64, value: impl AsRef<[u8]>) -> Typed<u64> {
    write("LREM", key).num(count).arg(value).into()
}

/// LTRIM: keeps the values from `start` to `stop`, both included. Not repeatable, because it would count from another
/// head.
#[must_use]
pub fn ltrim(key: impl AsRef<[u8]>, start: i64, stop: i64) -> Typed<()> {
    write("LTRIM", key).num(start).num(stop).into()
}
